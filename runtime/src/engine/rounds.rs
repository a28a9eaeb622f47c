//! A round: what was due at its start, all of it seeing that world, landing in canonical order.
//!
//! Two firings of a round agree where they add, append or set the same value; any other second
//! write of one property refuses the later firing whole, and so does a write to what the round
//! removed, the removal of what it wrote or linked, and a chosen id or a key it took. A refused
//! firing is tried again at the end of the round, alone, on the world it appends to: N writers of
//! one property cost N-1 conflicts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use log::{ChangeRef, Event, MapRef, WriteOp};
use projection::{Before, Delta, Graph, World};
use serde::{Deserialize, Serialize};
use smol_str::{SmolStr, format_smolstr};

use super::activation::Activation;
use super::resolve::resolved;

/// What is left of a round, the world at its start, and its writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    pub(crate) left: VecDeque<Activation>,
    /// Refused firings, to be tried again when nothing else is left.
    pub(crate) refused: VecDeque<Activation>,
    /// The world at the start; none when the firings see the world they append to.
    pub(crate) base: Option<Graph>,
    pub(crate) writes: Writes,
}

impl Round {
    /// What of it is still to be taken.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &Activation> {
        self.left.iter().chain(&self.refused)
    }
}

/// What the landed firings of a round wrote.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Writes {
    /// By element: how each property was written last.
    pub(crate) properties: BTreeMap<SmolStr, BTreeMap<SmolStr, Operation>>,
    /// Elements as a whole: made, linked or removed.
    pub(crate) elements: BTreeMap<SmolStr, Touch>,
    pub(crate) keys: BTreeSet<SmolStr>,
}

/// How a property was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Operation {
    Set,
    Add,
    Append,
    Unset,
}

/// What happened to an element as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Touch {
    Made,
    Linked,
    Removed,
}

impl From<WriteOp> for Operation {
    fn from(op: WriteOp) -> Self {
        match op {
            WriteOp::Set => Operation::Set,
            WriteOp::Add => Operation::Add,
            WriteOp::Append => Operation::Append,
        }
    }
}

impl Round {
    /// A new round over what is due.
    pub(crate) fn open(&mut self, due: Vec<Activation>, world: Graph) {
        assert!(self.left.is_empty() && self.refused.is_empty(), "the last round is over");
        self.left.extend(due);
        self.base = Some(world);
    }

    /// From now on each firing sees the world it appends to, so nothing can conflict.
    pub(crate) fn alone(&mut self) {
        self.base = None;
        self.writes = Writes::default();
    }

    pub(crate) fn close(&mut self) {
        assert!(self.left.is_empty() && self.refused.is_empty(), "nothing of the round is left");
        self.alone();
    }

    /// Whether firings see the world at the start of a round.
    pub(crate) fn is_open(&self) -> bool {
        self.base.is_some()
    }

    /// Remembers what a landed event of the round wrote.
    pub(crate) fn note_writes(&mut self, event: &Event, graph: &Graph, delta: &Delta) {
        if !self.is_open() {
            return;
        }
        if let Some(key) = event.key() {
            self.writes.keys.insert(key.into());
        }
        let before = Before::new(graph, delta);
        for change in resolved(event) {
            let id = &change.target;
            match change.change {
                ChangeRef::Create { properties, .. } | ChangeRef::Ensure { properties, .. } => {
                    self.note_made(&before, id, properties);
                }
                ChangeRef::Link { properties, .. } | ChangeRef::EnsureLink { properties, .. } => {
                    self.note_made(&before, id, properties);
                    for end in change.ends.iter().flatten() {
                        self.writes.elements.insert(end.clone(), Touch::Linked);
                    }
                }
                ChangeRef::Write { op, properties, .. } => {
                    let written = self.writes.properties.entry(id.clone()).or_default();
                    written.extend(properties.iter().map(|(name, _)| (name.into(), op.into())));
                }
                ChangeRef::Unset { names, .. } => {
                    let written = self.writes.properties.entry(id.clone()).or_default();
                    written.extend(names.iter().map(|name| (name.into(), Operation::Unset)));
                }
                ChangeRef::Remove { .. } => {}
            }
        }
        for element in delta.touched().filter(|element| graph.at(*element).is_none()) {
            if let Some(gone) = delta.before(graph, element) {
                self.writes.elements.insert(gone.id().into(), Touch::Removed);
            }
        }
    }

    fn note_made(&mut self, before: &Before<'_>, id: &SmolStr, properties: MapRef<'_>) {
        if before.find(id).is_some() {
            return;
        }
        self.writes.elements.insert(id.clone(), Touch::Made);
        let written = self.writes.properties.entry(id.clone()).or_default();
        written.extend(properties.iter().map(|(name, _)| (name.into(), Operation::Set)));
    }

    /// Why an event may not land after what has landed before it in its round.
    pub(crate) fn clash(&self, event: &Event, now: &Graph) -> Option<SmolStr> {
        let base = self.base.as_ref()?;
        resolved(event).iter().find_map(|change| {
            let id = &change.target;
            let touched = change.ends.iter().flatten().chain([id]);
            let removes = matches!(change.change, ChangeRef::Remove { .. });
            if !removes && let Some(gone) = touched.into_iter().find(|id| removed(base, now, id)) {
                return Some(format_smolstr!("{gone} was removed"));
            }
            match change.change {
                ChangeRef::Create { .. } | ChangeRef::Link { .. } => {
                    let taken = now.find(id).is_some() && base.find(id).is_none();
                    taken.then(|| format_smolstr!("{id} was created"))
                }
                ChangeRef::Remove { .. } => {
                    let written = fallen(now, id).into_iter().find(|id| self.was_written(id));
                    written.map(|id| format_smolstr!("{id} was written"))
                }
                ChangeRef::Write { op, properties, .. } => {
                    properties.iter_encoded().find_map(|(name, value)| {
                        self.disagrees(now, id, name, op.into(), Some(value))
                    })
                }
                ChangeRef::Unset { names, .. } => names
                    .iter()
                    .find_map(|name| self.disagrees(now, id, name, Operation::Unset, None)),
                ChangeRef::Ensure { .. } | ChangeRef::EnsureLink { .. } => None,
            }
        })
    }

    fn was_written(&self, id: &str) -> bool {
        let touched = self.writes.elements.get(id).is_some_and(|touch| *touch != Touch::Removed);
        touched || self.writes.properties.get(id).is_some_and(|written| !written.is_empty())
    }

    /// Whether a second write of one property is another one.
    fn disagrees(
        &self,
        now: &Graph,
        id: &str,
        name: &str,
        op: Operation,
        value: Option<&[u8]>,
    ) -> Option<SmolStr> {
        let before = *self.writes.properties.get(id)?.get(name)?;
        let same_value = || {
            let there = now.element(id).and_then(|e| e.properties().get_encoded(name));
            there == value
        };
        let agrees = before == op
            && match op {
                Operation::Add | Operation::Append | Operation::Unset => true,
                Operation::Set => same_value(),
            };
        if agrees { None } else { Some(format_smolstr!("{id}.{name} was written")) }
    }
}

/// Whether an element of the start of the round is gone, or is another of the same id.
fn removed(base: &Graph, now: &Graph, id: &str) -> bool {
    let born = |graph: &Graph| graph.element(id).map(|element| element.born());
    match (born(base), born(now)) {
        (Some(then), Some(now)) => then != now,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// What goes when `id` is removed: itself, and the edges at it.
fn fallen(graph: &Graph, id: &str) -> Vec<SmolStr> {
    let Some(element) = graph.find(id) else { return Vec::new() };
    let mut gone = vec![SmolStr::from(id)];
    if let Some(node) = element.node() {
        let edges = graph.out_edges(node, None).chain(graph.in_edges(node, None));
        gone.extend(edges.filter_map(|edge| graph.at(edge.into())).map(|edge| edge.id().into()));
    }
    gone
}
