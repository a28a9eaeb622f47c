//! Running a reaction: binding what it declared to read, and handing back what it proposes. Pure.

use std::borrow::Cow;

use behaviors::{
    Behavior, Binding, ElementView, Firing, Proposals, ReactError, Read, Reply, Stream, Texts,
};
use log::{Bound, MapRef};
use projection::{Delta, Graph, Row, Steps, World};
use smol_str::SmolStr;

use super::activation::{Activation, Carried};
use super::library::Library;
use super::state::State;
use super::subscription::{Bindings, Subscription};

/// How many steps of matching the reads of one firing may cost.
const READ_STEPS_MAX: u64 = 1_000_000;

/// What an activation proposes on the world it may see.
pub(crate) fn evaluate(
    state: &State,
    activation: &Activation,
    library: &Library,
    texts: Texts<'_>,
) -> Result<Reply, ReactError> {
    bind(state, activation, library, texts, |behavior, firing| {
        let metadata = behavior.metadata();
        // Where a flock wants all declared, who declares nothing may do nothing.
        let silent = metadata.emits.is_none() || metadata.writes.is_none();
        let strict = (state.settings.strict && silent).then(|| metadata.strict());
        let mut out = Proposals::new(strict.as_ref().unwrap_or(metadata), firing);
        behavior.react(firing, &mut out)?;
        out.finish()
    })
}

/// Shows an activation to a behavior that reacts elsewhere, before its turn. If the world it may
/// see is another by then, it was in vain.
pub(crate) fn prepare(state: &State, activation: &Activation, library: &Library) {
    let subscription = state.subscriptions.get(&activation.behavior);
    let loaded = subscription.and_then(|of| library.get(&activation.behavior, &of.hash));
    if !activation.answered && loaded.is_some_and(|loaded| loaded.behavior().is_remote()) {
        // What cannot be bound fails when its turn has come.
        let _ = bind(state, activation, library, Texts::none(), |behavior, firing| {
            behavior.prepare(firing);
            Ok(())
        });
    }
}

/// Binds all that a reaction may see.
fn bind<T>(
    state: &State,
    activation: &Activation,
    library: &Library,
    texts: Texts<'_>,
    then: impl FnOnce(&dyn Behavior, &Firing<'_>) -> Result<T, ReactError>,
) -> Result<T, ReactError> {
    let subscription = state.subscriptions.get(&activation.behavior);
    let subscription = subscription.expect("what fires is loaded");
    let loaded = library.get(&activation.behavior, &subscription.hash);
    let loaded = loaded.expect("the code of what is loaded was found when the log was opened");
    let world = state.round.base.as_ref().unwrap_or(&state.graph);
    if activation.answered {
        still_stands(state, world, activation)?;
    }
    let seen = Seen { world, activation, subscription };
    let env = state.env(Some(activation.seen()));
    let rows = seen.read_rows(&env)?;
    let firing = Firing {
        event: activation.seen().into(),
        bound: seen.bound(),
        reads: rows.iter().map(|rows| seen.read(rows)).collect(),
        settings: Cow::Borrowed(&state.settings.values),
        rand: Stream::of_firing(
            state.settings.seed,
            activation.event.id(),
            &activation.behavior,
            &activation.row.bound[..],
        ),
        now: activation.now(),
        answer: activation.answered.then(|| activation.event.payload()),
        texts,
    };
    then(&**loaded.behavior(), &firing)
}

/// Refuses an answer whose match is gone: it was given about a world that is no more.
fn still_stands(state: &State, world: &Graph, activation: &Activation) -> Result<(), ReactError> {
    match state.stands_in(world, activation) {
        Ok(true) => Ok(()),
        Ok(false) => Err(ReactError::new(format!(
            "the answer came when the match that it is about no longer stood, so it changes nothing; \
             it is kept in @{}",
            activation.event.offset()
        ))),
        Err(_) => Err(ReactError::new(
            "whether its match still stands takes too many steps; start the pattern narrower",
        )),
    }
}

/// The rows of one declared read.
pub(super) struct ReadRows<'s> {
    pub(super) name: &'s str,
    pattern: &'s Bindings,
    pub(super) rows: Vec<Row>,
    /// Where in a row the variables stand that the match does not bind.
    pub(super) free: Vec<usize>,
}

/// What one firing may see.
pub(super) struct Seen<'s> {
    pub(super) world: &'s Graph,
    pub(super) activation: &'s Activation,
    pub(super) subscription: &'s Subscription,
}

impl<'s> Seen<'s> {
    fn bound(&self) -> Vec<(&'s str, Binding<'s>)> {
        let Some(pattern) = &self.subscription.pattern else { return Vec::new() };
        let row = pattern.variables.iter().zip(&self.activation.row.bound);
        row.filter_map(|(variable, bound)| Some((variable.name.as_deref()?, self.binding(bound))))
            .collect()
    }

    fn binding(&self, bound: &'s Bound) -> Binding<'s> {
        match bound {
            Bound::Element(id) => self.element(id).map_or(Binding::Null, Binding::Element),
            Bound::Path(ids) => {
                Binding::Path(ids.iter().filter_map(|id| self.element(id)).collect())
            }
        }
    }

    /// An element as it was before it vanished, or as it is in the world of the firing.
    fn element(&self, id: &str) -> Option<ElementView<'s>> {
        let carried = self.activation.carried.as_ref();
        if let Some(carried) = carried.and_then(|all| all.iter().find(|one| one.id == id)) {
            return Some(carried.view());
        }
        view(self.world, id)
    }

    /// The ids that the match binds, by the variable's name.
    fn given(&self) -> Vec<(&'s str, &'s str)> {
        let Some(pattern) = &self.subscription.pattern else { return Vec::new() };
        let row = pattern.variables.iter().zip(&self.activation.row.bound);
        row.filter_map(|(variable, bound)| match (&variable.name, bound) {
            (Some(name), Bound::Element(id)) => Some((name.as_str(), id.as_str())),
            _ => None,
        })
        .collect()
    }

    pub(super) fn read_rows(
        &self,
        env: &projection::Env<'_>,
    ) -> Result<Vec<ReadRows<'s>>, ReactError> {
        let given = self.given();
        let steps = Steps::up_to(READ_STEPS_MAX);
        let mut all = Vec::with_capacity(self.subscription.reads.len());
        for (name, pattern) in &self.subscription.reads {
            let variables = &pattern.variables;
            let is_given = |name: &str| given.iter().any(|(known, _)| *known == name);
            let named =
                |variable: &str| variables.iter().any(|v| v.name.as_deref() == Some(variable));
            let known: Vec<(&str, &str)> =
                given.iter().copied().filter(|(name, _)| named(name)).collect();
            let rows = pattern.pattern.matches(self.world, &known, env, &steps);
            let rows = rows.map_err(|_| {
                ReactError::new(format!(
                    "the read `{name}` looked at more than {READ_STEPS_MAX} elements; anchor it on \
                     the match or bound it"
                ))
            })?;
            let free = variables.iter().enumerate().filter(|(_, variable)| {
                variable.name.as_deref().is_some_and(|name| !is_given(name))
            });
            let free = free.map(|(place, _)| place).collect();
            all.push(ReadRows { name, pattern, rows, free });
        }
        Ok(all)
    }

    fn read<'r>(&self, read: &'r ReadRows<'s>) -> Read<'r>
    where
        's: 'r,
    {
        let variables = &read.pattern.variables;
        let names = read.free.iter().filter_map(|place| variables[*place].name.as_deref());
        let bindings = read.rows.iter().flat_map(|row| {
            read.free.iter().map(move |place| match &row.bound[*place] {
                Bound::Element(id) => view(self.world, id).map_or(Binding::Null, Binding::Element),
                Bound::Path(ids) => {
                    Binding::Path(ids.iter().filter_map(|id| view(self.world, id)).collect())
                }
            })
        });
        Read { name: read.name, variables: names.collect(), bindings: bindings.collect() }
    }
}

/// An element of a graph as a reaction sees it.
fn view<'g>(graph: &'g Graph, id: &str) -> Option<ElementView<'g>> {
    let element = graph.element(id)?;
    let end = |node: projection::NodeRef| graph.at(node.into()).map(|node| node.id());
    let ends = element.ends().and_then(|(from, to)| Some((end(from)?, end(to)?)));
    Some(ElementView {
        id: element.id(),
        type_name: element.type_name(),
        version: element.version(),
        ends,
        properties: element.properties(),
    })
}

impl Carried {
    /// The elements of a row as they were before the event that made it vanish.
    pub(crate) fn before(graph: &Graph, delta: &Delta, row: &Row) -> Vec<Carried> {
        let world = projection::Before::new(graph, delta);
        row.bound
            .iter()
            .flat_map(Bound::ids)
            .filter_map(|id| {
                let element = world.at(world.find(id)?)?;
                let end = |node: projection::NodeRef| {
                    world.at(node.into()).map(|node| SmolStr::from(node.id()))
                };
                let ends = element.ends().and_then(|(from, to)| Some((end(from)?, end(to)?)));
                Some(Carried {
                    id: id.clone(),
                    type_name: element.type_name().into(),
                    version: element.version(),
                    ends,
                    properties: element.properties().as_bytes().to_vec(),
                })
            })
            .collect()
    }

    fn view(&self) -> ElementView<'_> {
        ElementView {
            id: &self.id,
            type_name: &self.type_name,
            version: self.version,
            ends: self.ends.as_ref().map(|(from, to)| (from.as_str(), to.as_str())),
            properties: MapRef::from_checked(&self.properties),
        }
    }
}
