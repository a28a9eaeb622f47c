//! Which events of a log are told.

use std::collections::BTreeSet;

use behaviors::KindPattern;
use log::{Address, Branch, Event, EventId, Head, Store, Time};
use projection::{Env, Graph, Pattern, Steps};

use super::super::failure::Failure;
use super::super::shell::Shell;
use super::super::world;
use crate::engine::{EngineError, FoldError, resolved};
use crate::history::{ancestry, fired_on};
use crate::snapshot::Snapshots;

/// How many elements one event may cost a pattern.
const STEPS_MAX: u64 = 100_000_000;

/// What an event has to be; of several, all.
#[derive(Debug, clap::Args)]
pub(super) struct Filter {
    /// Only this kind: exactly, as a glob such as 'effect.*', or as ~EXPRESSION
    #[arg(long, value_name = "KIND", value_parser = KindPattern::parse)]
    kind: Option<KindPattern>,
    /// Only by this actor, such as user:ann or 'behavior:*'
    #[arg(long, value_name = "ACTOR", value_parser = KindPattern::parse)]
    actor: Option<KindPattern>,
    /// Only what wrote this node or edge, linked to it or fired on it
    #[arg(long, value_name = "ID")]
    node: Option<String>,
    /// Only the chain of causes that led to this event, and itself
    #[arg(long, value_name = "ADDRESS|ID")]
    cause: Option<String>,
    /// Only what made a match of this pattern true or false
    #[arg(long = "match", value_name = "PATTERN")]
    pattern: Option<String>,
    /// Only what is said to have happened at this time or later
    #[arg(long, value_name = "TIME")]
    since: Option<Time>,
    /// Only what is said to have happened before this time
    #[arg(long, value_name = "TIME")]
    until: Option<Time>,
}

/// A filter over one branch.
pub(super) struct Chosen {
    kind: Option<KindPattern>,
    actor: Option<KindPattern>,
    node: Option<String>,
    chain: Option<BTreeSet<EventId>>,
    pattern: Option<(Pattern, Box<Graph>)>,
    since: Option<Time>,
    until: Option<Time>,
}

impl Filter {
    /// Looks up what the filter names.
    pub(super) fn choose(
        self,
        store: &Store,
        branch: &Branch,
        address: &Address,
        shell: &Shell<'_>,
    ) -> Result<Chosen, Failure> {
        let chain = match &self.cause {
            None => None,
            Some(text) => {
                let missing = || {
                    let what = "write an address such as main@42, or an event's id";
                    Failure::NotFound(format!("there is no event `{text}` at {address}: {what}"))
                };
                let (_, event) = world::event(store, text, address, shell)?.ok_or_else(missing)?;
                Some(ancestry(store, branch.id, &[event])?.into_keys().collect())
            }
        };
        let pattern = match &self.pattern {
            None => None,
            Some(text) => {
                let pattern = Pattern::parse(text).map_err(|e| Failure::Usage(e.to_string()))?;
                let none = Snapshots::none().graph_at(store, branch.id, Head::EMPTY);
                let mut graph = none.map_err(EngineError::from)?;
                for (type_name, property) in pattern.indexes_for_delta() {
                    graph.declare_index(&type_name, &property);
                }
                Some((pattern, Box::new(graph)))
            }
        };
        let Filter { kind, actor, node, since, until, .. } = self;
        Ok(Chosen { kind, actor, node, chain, pattern, since, until })
    }
}

impl Chosen {
    /// Whether nothing is left out.
    pub(super) fn is_all(&self) -> bool {
        let Chosen { kind, actor, node, chain, pattern, since, until } = self;
        let none = kind.is_none() && actor.is_none() && node.is_none() && chain.is_none();
        none && pattern.is_none() && since.is_none() && until.is_none()
    }

    /// Whether the next event is chosen. With a pattern, every event of the branch has to be asked.
    pub(super) fn accepts(&mut self, event: &Event) -> Result<bool, Failure> {
        let turns = match &mut self.pattern {
            None => true,
            Some((pattern, graph)) => turns(pattern, graph, event)?,
        };
        let kind = self.kind.as_ref().is_none_or(|kind| kind.fits(event.kind()));
        // Without the hash, a behavior is meant in all its versions.
        let name = event.actor().split('@').next().unwrap_or_default();
        let actor = self.actor.as_ref();
        let actor = actor.is_none_or(|actor| actor.fits(event.actor()) || actor.fits(name));
        let node = self.node.as_ref().is_none_or(|id| concerns(event, id));
        let chain = self.chain.as_ref().is_none_or(|chain| chain.contains(&event.id()));
        let since = self.since.is_none_or(|since| event.time() >= since);
        let until = self.until.is_none_or(|until| event.time() < until);
        Ok(turns && kind && actor && node && chain && since && until)
    }
}

/// Whether an event makes a match true or false; the world goes on to it.
fn turns(pattern: &Pattern, graph: &mut Graph, event: &Event) -> Result<bool, Failure> {
    let delta = graph.apply(event).map_err(FoldError::refused(event.offset()));
    let delta = delta.map_err(EngineError::from)?;
    let rows = pattern.delta(graph, &delta, &Env::EMPTY, &Steps::up_to(STEPS_MAX));
    let rows = rows.map_err(|exhausted| Failure::Failed(exhausted.to_string()))?;
    Ok(!rows.risen.is_empty() || !rows.fallen.is_empty())
}

/// Whether an event wrote an element, linked to it, or is of a firing on a match that holds it. The
/// beginning of a derived id will do.
fn concerns(event: &Event, id: &str) -> bool {
    let is_it = |other: &str| other == id || id.contains('#') && other.starts_with(id);
    let written = resolved(event)
        .into_iter()
        .any(|change| is_it(&change.target) || change.ends.iter().flatten().any(|end| is_it(end)));
    written || fired_on(event, is_it)
}
