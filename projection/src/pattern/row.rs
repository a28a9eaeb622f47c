//! A match: everything that a pattern binds, and its place among other matches.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use log::Bound;

use crate::graph::{Born, ElementRef};
use crate::pattern::program::Kind;
use crate::pattern::search::Search;
use crate::world::World;

/// One match of a pattern.
///
/// Two rows are the same if they bind the same elements; rows are ordered by the creation of these.
#[derive(Clone, Debug)]
pub struct Row {
    /// Every node, edge and path of the pattern, named or not, in pattern order.
    pub bound: Vec<Bound>,
    /// Where each element was created, in the same order; the edges of a path one by one.
    pub order: Vec<Born>,
}

/// The matches that one event made true and made false, each in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeltaRows {
    /// They stand after the event and did not before.
    pub risen: Vec<Row>,
    /// They stood before the event and do not after; with the order they had.
    pub fallen: Vec<Row>,
}

impl Row {
    /// The row that a search of a whole pattern has bound.
    pub(super) fn of<W: World>(search: &Search<'_, W>) -> Row {
        let slots = super::outer_slots(search.program);
        let mut row = Row { bound: Vec::with_capacity(slots), order: Vec::with_capacity(slots) };
        for slot in 0..slots {
            if search.program.slots[slot].kind == Kind::Path {
                let mut ids = Vec::with_capacity(search.paths[slot].len());
                for edge in &search.paths[slot] {
                    let view = search.world.at(ElementRef::Edge(*edge));
                    let view = view.expect("what is bound is there");
                    ids.push(view.id().into());
                    row.order.push(view.born());
                }
                row.bound.push(Bound::Path(ids));
            } else {
                let view = search.element(slot);
                row.bound.push(Bound::Element(view.id().into()));
                row.order.push(view.born());
            }
        }
        row
    }
}

/// Puts rows in order, each once.
pub(super) fn in_order(mut rows: Vec<Row>) -> Vec<Row> {
    if rows.len() > 1 {
        rows.sort_unstable();
        rows.dedup();
    }
    rows
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.bound == other.bound
    }
}

impl Eq for Row {}

impl Hash for Row {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bound.hash(state);
    }
}

impl Ord for Row {
    fn cmp(&self, other: &Self) -> Ordering {
        // Paths of different lengths may be created alike, so the ids decide what is left.
        self.order.cmp(&other.order).then_with(|| self.bound.cmp(&other.bound))
    }
}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
