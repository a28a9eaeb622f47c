//! What happened on a branch since the base, besides what its world became: keys that were used,
//! actions that left, firings that took place, and writes on the condition of a version.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use log::{Branch, ChangeRef, Event, EventId, Log, LogError, ValueRef, element_id, read_one};
use projection::{ElementRef, ElementView, World};
use smol_str::SmolStr;

use super::conflict::{Disagreement, Side, cause};
use super::landing::{MARKER, PART, keyed_at};
use super::{Sides, events_after};
use crate::effect::{action_of, is_inner};
use crate::engine::activation::firing_of;
use crate::engine::resolved;
use crate::engine::state::State;

/// What happened on a branch since the base.
#[derive(Default)]
pub(super) struct Facts {
    /// Keyed events, by key.
    pub(super) keys: BTreeMap<SmolStr, Event>,
    /// The first attempt of each action that left.
    dispatched: Vec<Event>,
    /// The firings that emitted something, each with an event of it.
    fired: HashMap<EventId, Event>,
    pub(super) by_version: BTreeSet<SmolStr>,
    /// The types whose schema was declared.
    declared: BTreeMap<SmolStr, Event>,
}

/// The types of the runtime whose elements travel: what became of an effect is a fact. A grant, a
/// budget or a behavior holds for its branch alone.
const TRAVELLING: [&str; 6] =
    ["_Effect", "_Attempt", "_Outcome", "_ATTEMPT", "_OUTCOME", "_LINKED"];

/// Whether an element is a fact that travels. `open` are those of effects that are not settled.
pub(super) fn travels(view: ElementView<'_>, open: &BTreeSet<SmolStr>) -> bool {
    let of_runtime = view.type_name().starts_with('_');
    !of_runtime || TRAVELLING.contains(&view.type_name()) && !open.contains(view.id())
}

impl Facts {
    pub(super) fn of(log: &dyn Log, from: &Branch, sides: &Sides) -> Result<Facts, LogError> {
        let mut facts = Facts::default();
        for event in events_after(log, from, sides.since)? {
            facts.note(event);
        }
        Ok(facts)
    }

    fn note(&mut self, event: Event) {
        let kept = |kind: &str| kind == MARKER || kind == PART || kind == "branch.follows";
        if let Some(key) = event.key().filter(|_| !kept(event.kind())) {
            self.keys.insert(key.into(), event.clone());
        }
        if event.is_kind("effect.dispatched") {
            self.dispatched.push(event.clone());
        }
        if event.is_kind(projection::SCHEMA_DECLARED)
            && let Some(name) = event.payload().get("type").and_then(ValueRef::as_str)
        {
            self.declared.insert(name.into(), event.clone());
        }
        let by_version = resolved(&event)
            .into_iter()
            .filter(|change| matches!(change.change, ChangeRef::Write { if_version: Some(_), .. }));
        self.by_version.extend(by_version.map(|change| change.target));
        if let Some(label) = event.cause().as_ref().and_then(firing_of) {
            self.fired.entry(label).or_insert(event);
        }
    }

    /// The elements of effects that are open on the branch: they stay there.
    pub(super) fn open_elements(&self, theirs: &State) -> BTreeSet<SmolStr> {
        let graph = &theirs.graph;
        let mut open = BTreeSet::new();
        for action in theirs.effects.iter() {
            let node = graph.element(&action.facts.node).and_then(|node| node.reference().node());
            open.insert(action.facts.node.clone());
            for edge in node.into_iter().flat_map(|node| graph.out_edges(node, None)) {
                let Some(edge) = graph.at(ElementRef::Edge(edge)) else { continue };
                open.insert(edge.id().into());
                let end = edge.ends().and_then(|(_, to)| graph.at(ElementRef::Node(to)));
                open.extend(
                    end.filter(|end| end.type_name() != "_Effect").map(|end| end.id().into()),
                );
            }
        }
        open
    }

    /// The keyed events whose keys the other branch does not have. One that it has with other
    /// content is a conflict.
    pub(super) fn keys_to_travel(
        &self,
        log: &dyn Log,
        (from, into): (&Branch, &Branch),
        standing: &mut Vec<Disagreement>,
    ) -> Result<Vec<Event>, LogError> {
        let mut travel = Vec::new();
        for (key, event) in &self.keys {
            let Some(offset) = log.find_key(into.id, key)? else {
                travel.push(event.clone());
                continue;
            };
            let first = keyed_at(log, into.id, offset)?;
            if first.same_content(&keyed_at(log, from.id, event.offset())?) {
                continue;
            }
            standing.push(Disagreement {
                kind: "key",
                what: key.to_string(),
                why: "both branches used the key, with other content".to_owned(),
                ours: Side { value: None, cause: Some(cause(into.name.as_str(), &first)) },
                theirs: Side { value: None, cause: Some(cause(from.name.as_str(), event)) },
            });
        }
        Ok(travel)
    }

    /// What cannot be brought together though no element says so: actions that left on both
    /// branches, firings that are still due here, schemas.
    pub(super) fn clash(
        &self,
        log: &dyn Log,
        (from, into): (&Branch, &Branch),
        sides: &Sides,
        standing: &mut Vec<Disagreement>,
    ) -> Result<(), LogError> {
        let side = |branch: &Branch, event: &Event| Side {
            value: None,
            cause: Some(cause(branch.name.as_str(), event)),
        };
        for theirs in &self.dispatched {
            let Some(ours) = dispatched_here(log, into, sides, theirs)? else { continue };
            if ours.same_content(theirs) || !left(theirs) {
                continue;
            }
            standing.push(Disagreement {
                kind: "action",
                what: action_of(theirs).map(|id| id.to_string()).unwrap_or_default(),
                why: format!("it left on {} and on {}", into.name, from.name),
                ours: side(into, &ours),
                theirs: side(from, theirs),
            });
        }
        for waiting in sides.ours.agenda.all().chain(sides.ours.round.rest()) {
            let Some(fired) = self.fired.get(&waiting.label()) else { continue };
            let name = &waiting.behavior;
            standing.push(Disagreement {
                kind: "firing",
                what: name.to_string(),
                why: format!(
                    "it waits on {} to do what it has done on {}; run {} to rest first",
                    into.name, from.name, into.name
                ),
                ours: side(into, &waiting.event),
                theirs: side(from, fired),
            });
        }
        for (type_name, event) in &self.declared {
            if sides.ours.graph.schema(type_name) != sides.theirs.graph.schema(type_name) {
                standing.push(Disagreement {
                    kind: "schema",
                    what: type_name.to_string(),
                    why: format!("{} declared it; declare it on {} first", from.name, into.name),
                    ours: Side::default(),
                    theirs: side(from, event),
                });
            }
        }
        Ok(())
    }
}

/// The event of the other side by which the same attempt left there since the base.
fn dispatched_here(
    log: &dyn Log,
    into: &Branch,
    sides: &Sides,
    theirs: &Event,
) -> Result<Option<Event>, LogError> {
    let attempt = element_id("_Attempt", &theirs.id(), 1);
    if sides.base.element(&attempt).is_some() {
        return Ok(None);
    }
    let Some(here) = sides.ours.graph.element(&attempt) else { return Ok(None) };
    read_one(log, into.id, here.born().offset).map(Some)
}

/// Whether an attempt left: what is served from a log went nowhere.
fn left(dispatched: &Event) -> bool {
    let text = |name: &str| dispatched.payload().get(name).and_then(ValueRef::as_str);
    let here = |by: &str| is_inner(by) || by == "recorded" || by == "override";
    text("served").is_none() && !text("executor").is_some_and(here)
}
