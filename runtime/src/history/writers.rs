//! Who wrote what stands: the event that gave a property its value, or made or removed an element.
//!
//! A write counts if the world became another by it; one of the value that stood counts for
//! nothing. So it is asked of folds, from the last snapshot back, and only as far as the last
//! writer is away.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use log::{BranchId, Event, Head, Log};
use projection::{Delta, ElementView, Graph};
use serde_json::Value;
use smol_str::SmolStr;

use super::trace;
use crate::engine::FoldError;
use crate::snapshot::Snapshots;

/// Something that an event can have written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// The id of a node or an edge.
    pub id: SmolStr,
    /// One of its properties; without one, that it is there or is gone.
    pub property: Option<SmolStr>,
}

/// For each part of the world before `cut.next()`, the last event that made it what it is. A
/// property that was never written has the event that made its element; what never was has none.
///
/// # Errors
/// The log is damaged or cannot be read.
pub fn writers(
    log: &dyn Log,
    snapshots: &Snapshots,
    branch: BranchId,
    world: &Graph,
    wanted: BTreeSet<Part>,
) -> Result<BTreeMap<Part, Event>, FoldError> {
    let cut = world.head();
    let mut open = Open { wanted, found: BTreeMap::new() };
    // What stands was last changed and first made at offsets that the world knows.
    let elements = |open: &Open| -> Vec<Option<ElementView<'_>>> {
        open.wanted.iter().map(|part| world.element(&part.id)).collect()
    };
    let last = elements(&open).iter().map(|e| e.map_or(cut, |e| Head::after(e.changed()))).max();
    let Some(mut until) = last else { return Ok(open.found) };
    while !open.wanted.is_empty() && until > Head::EMPTY {
        let first = elements(&open).iter().map(|e| e.map_or(0, |e| e.born().offset.get())).min();
        if first.is_none_or(|first| until.count() <= first) {
            break;
        }
        let before = Head::of_count(until.count() - 1);
        let mut graph = snapshots.nearest_graph(log, branch, before)?;
        let from = graph.head();
        let mut last = BTreeMap::new();
        trace(log, branch, &mut graph, until, |event, graph, delta| {
            open.note(event, graph, delta, &mut last);
            ControlFlow::Continue(())
        })?;
        open.wanted.retain(|part| !last.contains_key(part));
        open.found.append(&mut last);
        until = from;
    }
    for part in std::mem::take(&mut open.wanted) {
        if let Some(element) = world.element(&part.id) {
            let made = log::read_one(log, branch, element.born().offset)?;
            open.found.insert(part, made);
        }
    }
    Ok(open.found)
}

/// What is still looked for, and what was found.
struct Open {
    wanted: BTreeSet<Part>,
    found: BTreeMap<Part, Event>,
}

impl Open {
    fn note(&self, event: &Event, graph: &Graph, delta: &Delta, last: &mut BTreeMap<Part, Event>) {
        for (id, before, after) in touched(graph, delta) {
            let whole = Part { id: id.into(), property: None };
            for part in self.wanted.range(whole..).take_while(|part| part.id == id) {
                if differs(before, after, part.property.as_deref()) {
                    last.insert(part.clone(), event.clone());
                }
            }
        }
    }
}

/// Every element that an event touched: its id, and it before and after.
fn touched<'d>(
    graph: &'d Graph,
    delta: &'d Delta,
) -> impl Iterator<Item = (&'d str, Option<ElementView<'d>>, Option<ElementView<'d>>)> {
    delta.touched().filter_map(|element| {
        let before = delta.before(graph, element);
        let after = projection::World::at(graph, element);
        Some((before.or(after)?.id(), before, after))
    })
}

fn differs(
    before: Option<ElementView<'_>>,
    after: Option<ElementView<'_>>,
    property: Option<&str>,
) -> bool {
    let Some(name) = property else { return before.is_some() != after.is_some() };
    let value = |element: Option<ElementView<'_>>| {
        element.and_then(|element| element.property(name)).map(|value| value.to_json())
    };
    value(before) != value(after)
}

/// One change of an element, or of one of its properties.
#[derive(Clone, Debug)]
pub(crate) struct Changed {
    /// The event that did it.
    pub(crate) event: Event,
    /// The properties that it changed: before and after.
    pub(crate) values: Vec<(String, Option<Value>, Option<Value>)>,
}

/// Every change of an element of `world` since it was made, or of one of its properties.
pub(crate) fn changes(
    log: &dyn Log,
    snapshots: &Snapshots,
    branch: BranchId,
    element: ElementView<'_>,
    property: Option<&str>,
) -> Result<Vec<Changed>, FoldError> {
    let before = Head::of_count(element.born().offset.get());
    let mut graph = snapshots.graph_at(log, branch, before)?;
    let until = Head::after(element.changed());
    let mut found = Vec::new();
    trace(log, branch, &mut graph, until, |event, graph, delta| {
        let here = touched(graph, delta).find(|(id, ..)| *id == element.id());
        if let Some((_, before, after)) = here {
            let made = before.is_none() && property.is_none();
            let values = values(before, after, property);
            if !values.is_empty() || made {
                found.push(Changed { event: event.clone(), values });
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

fn values(
    before: Option<ElementView<'_>>,
    after: Option<ElementView<'_>>,
    only: Option<&str>,
) -> Vec<(String, Option<Value>, Option<Value>)> {
    let map = |element: Option<ElementView<'_>>| {
        element.map(ElementView::properties_json).unwrap_or_default()
    };
    let (before, after) = (map(before), map(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let wanted = names.into_iter().filter(|name| only.is_none_or(|only| only == name.as_str()));
    let pairs = wanted.map(|name| (name.clone(), before.get(name), after.get(name)));
    let differ = pairs.filter(|(_, before, after)| before != after);
    differ.map(|(name, before, after)| (name, before.cloned(), after.cloned())).collect()
}
