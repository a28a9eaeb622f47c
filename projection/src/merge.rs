//! What one world has become since a base, brought into another that went on from it as well: a
//! three-way merge at the level of properties, as a pure function over graphs.
//!
//! A change made on one side only is taken over, the same change made on both agrees, and what both
//! changed otherwise is a conflict by name. Nothing is decided: where there is a conflict, there is
//! nothing to apply. What costs is the difference, not the size of the worlds.

use std::collections::{BTreeMap, BTreeSet};

use log::{Change, ValueRef, WriteOp};
use serde_json::{Map, Value};
use smol_str::SmolStr;

use crate::diff::{Difference, diff};
use crate::graph::{ElementRef, ElementView, Graph};

/// Why a change of one side cannot be brought into the other.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Clash {
    /// Both sides gave a property another value; none is a missing property.
    Property {
        /// The property.
        property: String,
        /// Its value on the side that is merged into.
        ours: Option<Value>,
        /// Its value on the side that is brought in.
        theirs: Option<Value>,
    },
    /// One side changed what the other removed.
    Removed {
        /// Whether the side that is merged into is the one that removed it.
        here: bool,
    },
    /// Both sides made an element with this id, and it is not the same: another type or other ends.
    Made,
    /// An edge would begin or end at a node that the side merged into does not have.
    Dangling {
        /// The missing node.
        end: String,
    },
    /// A node is removed at which the other side has put this edge.
    Orphan {
        /// The edge.
        edge: String,
    },
    /// It was written on the condition of its version, which the other side has changed.
    Version,
}

/// A conflict: the element, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// The element's id.
    pub id: String,
    /// What stands in the way.
    pub clash: Clash,
}

/// What a merge comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// What brings one side into the other, in an order in which it can be applied.
    pub changes: Vec<Change>,
    /// What stands in the way; then nothing is to be applied.
    pub conflicts: Vec<Conflict>,
}

/// What is asked of a merge besides the three worlds.
#[derive(Clone, Copy)]
pub struct Wanted<'w> {
    /// Whether an element that differs is to be merged; one that is gone is given as it was.
    pub merges: &'w dyn Fn(ElementView<'_>) -> bool,
    /// Elements that were written on the condition of their version.
    pub by_version: &'w BTreeSet<SmolStr>,
}

/// What brings the changes from `base` to `theirs` into `ours`, or what stands in the way.
#[must_use]
pub fn merge(base: &Graph, ours: &Graph, theirs: &Graph, wanted: Wanted<'_>) -> Merged {
    let (parts, merged) = (Parts::default(), Merged::default());
    let mut merge = Merge { base, ours, theirs, parts, merged };
    for difference in diff(base, theirs) {
        let view = difference.after.or(difference.before).expect("one side is there");
        if !(wanted.merges)(view) {
            continue;
        }
        let (id, here) = (difference.id, ours.element(difference.id));
        let is_here = |world, view| same((world, view), (ours, here));
        let changed_here = !is_here(base, difference.before) && !is_here(theirs, difference.after);
        if changed_here && wanted.by_version.contains(id) {
            merge.clash(id, Clash::Version);
        } else {
            merge.element(&difference);
        }
    }
    merge.check_ends();
    let Merge { parts, mut merged, .. } = merge;
    if merged.conflicts.is_empty() {
        merged.changes = parts.in_order();
    }
    merged
}

struct Merge<'g> {
    base: &'g Graph,
    ours: &'g Graph,
    theirs: &'g Graph,
    parts: Parts,
    merged: Merged,
}

/// The changes by when they can be applied. What is made is ordered as it was made.
#[derive(Default)]
struct Parts {
    removed_edges: Vec<Change>,
    removed_nodes: Vec<SmolStr>,
    nodes: BTreeMap<(log::Offset, u32), Change>,
    written: Vec<Change>,
    edges: BTreeMap<(log::Offset, u32), (SmolStr, Change)>,
}

impl Parts {
    fn in_order(self) -> Vec<Change> {
        let mut changes = self.removed_edges;
        changes.extend(self.removed_nodes.into_iter().map(|id| Change::Remove { id }));
        changes.extend(self.nodes.into_values());
        changes.extend(self.written);
        changes.extend(self.edges.into_values().map(|(_, change)| change));
        changes
    }
}

impl<'g> Merge<'g> {
    fn clash(&mut self, id: &str, clash: Clash) {
        self.merged.conflicts.push(Conflict { id: id.to_owned(), clash });
    }

    fn element(&mut self, difference: &Difference<'g>) {
        let id = difference.id;
        let ours = self.ours.element(id);
        match (difference.before, difference.after, ours) {
            // Gone on both sides.
            (Some(_), None, None) => {}
            (Some(before), None, Some(ours)) if self.is_as_it_was(before, ours) => {
                self.remove(ours);
            }
            (Some(_), None, Some(_)) => self.clash(id, Clash::Removed { here: false }),
            (Some(_), Some(_), None) => self.clash(id, Clash::Removed { here: true }),
            (None, Some(after), None) => self.make(after),
            (before, Some(after), Some(ours)) => {
                self.both(before.filter(|before| alike(*before, after)), after, ours, before);
            }
            (None, None, _) => unreachable!("a difference has a side"),
        }
    }

    /// An element that their side has changed or made, and that is there on ours. `before` is it in
    /// the base, if it is still the same thing.
    fn both(
        &mut self,
        before: Option<ElementView<'g>>,
        after: ElementView<'g>,
        ours: ElementView<'g>,
        base: Option<ElementView<'g>>,
    ) {
        let id = after.id();
        if !alike(ours, after) || !same_ends(self.ours, ours, self.theirs, after) {
            // They made it anew as another thing; it may replace ours if ours is as it was.
            if base.is_some_and(|base| self.is_as_it_was(base, ours)) {
                self.remove(ours);
                self.make(after);
            } else {
                self.clash(id, Clash::Made);
            }
            return;
        }
        let (mut set, mut unset) = (Map::new(), Vec::new());
        let changed = Difference { id, before, after: Some(after) };
        for (name, was, is) in changed.properties() {
            let here = ours.property(name);
            if here == is {
                continue;
            }
            if here != was {
                let json = |value: Option<ValueRef<'_>>| value.map(|value| value.to_json());
                let (ours, theirs) = (json(here), json(is));
                self.clash(id, Clash::Property { property: name.to_owned(), ours, theirs });
                continue;
            }
            match is {
                Some(value) => drop(set.insert(name.to_owned(), value.to_json())),
                None => unset.push(SmolStr::from(name)),
            }
        }
        if !set.is_empty() {
            let (op, id) = (WriteOp::Set, SmolStr::from(id));
            self.parts.written.push(Change::Write { op, id, properties: set, if_version: None });
        }
        if !unset.is_empty() {
            self.parts.written.push(Change::Unset { id: id.into(), names: unset });
        }
    }

    /// Whether our side left an element of the base alone.
    fn is_as_it_was(&self, before: ElementView<'g>, ours: ElementView<'g>) -> bool {
        same((self.base, Some(before)), (self.ours, Some(ours)))
    }

    fn make(&mut self, new: ElementView<'g>) {
        let (born, properties) = (new.born(), new.properties_json());
        let (id, type_name) = (SmolStr::from(new.id()), SmolStr::from(new.type_name()));
        let place = (born.offset, born.index);
        let Some((from, to)) = new.ends() else {
            let change = Change::Create { id: Some(id), type_name, properties };
            self.parts.nodes.insert(place, change);
            return;
        };
        let end = |node| {
            let node = self.theirs.view(ElementRef::Node(node)).expect("an edge joins nodes");
            SmolStr::from(node.id())
        };
        let (from, to) = (end(from), end(to));
        let change = Change::Link { id: Some(id.clone()), type_name, from, to, properties };
        self.parts.edges.insert(place, (id, change));
    }

    fn remove(&mut self, gone: ElementView<'g>) {
        let id = SmolStr::from(gone.id());
        match gone.ends() {
            Some(_) => self.parts.removed_edges.push(Change::Remove { id }),
            None => self.parts.removed_nodes.push(id),
        }
    }

    /// Whether every edge has its ends, and no node takes an edge with it that is ours alone.
    fn check_ends(&mut self) {
        let made: BTreeSet<SmolStr> = self.parts.nodes.values().filter_map(made_id).collect();
        let gone: BTreeSet<SmolStr> = self.parts.removed_nodes.iter().cloned().collect();
        let unlinked: BTreeSet<SmolStr> =
            self.parts.removed_edges.iter().filter_map(removed_id).collect();
        let there =
            |id: &str| made.contains(id) || !gone.contains(id) && self.ours.node(id).is_some();
        let mut clashes = Vec::new();
        for (id, change) in self.parts.edges.values() {
            let Change::Link { from, to, .. } = change else { unreachable!("an edge is linked") };
            for end in [from, to].into_iter().filter(|end| !there(end)) {
                clashes.push((id.to_string(), Clash::Dangling { end: end.to_string() }));
            }
        }
        for id in &gone {
            let node = self.ours.node(id).and_then(|node| node.reference().node());
            let node = node.expect("what is removed is there");
            let keys = self.ours.out_keys(node, None).chain(self.ours.in_keys(node, None));
            for key in keys {
                let edge = self.ours.view(crate::graph::edge_of(key).into());
                let edge = edge.expect("a neighbour is there").id();
                if !unlinked.contains(edge) {
                    clashes.push((id.to_string(), Clash::Orphan { edge: edge.to_owned() }));
                }
            }
        }
        clashes.into_iter().for_each(|(id, clash)| self.clash(&id, clash));
    }
}

fn made_id(change: &Change) -> Option<SmolStr> {
    if let Change::Create { id, .. } = change { id.clone() } else { None }
}

fn removed_id(change: &Change) -> Option<SmolStr> {
    if let Change::Remove { id } = change { Some(id.clone()) } else { None }
}

/// Whether two elements are of one kind: a node or an edge, and of the same type.
fn alike(one: ElementView<'_>, other: ElementView<'_>) -> bool {
    one.ends().is_some() == other.ends().is_some() && one.type_name() == other.type_name()
}

fn same_ends(
    one_world: &Graph,
    one: ElementView<'_>,
    other_world: &Graph,
    other: ElementView<'_>,
) -> bool {
    let ends = |world: &Graph, view: ElementView<'_>| {
        let id = |node| world.view(ElementRef::Node(node)).map(|node| node.id().to_owned());
        view.ends().map(|(from, to)| (id(from), id(to)))
    };
    ends(one_world, one) == ends(other_world, other)
}

/// Whether two elements have the same type, ends and properties, or both are not there.
fn same(
    (one_world, one): (&Graph, Option<ElementView<'_>>),
    (other_world, other): (&Graph, Option<ElementView<'_>>),
) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            alike(one, other)
                && same_ends(one_world, one, other_world, other)
                && one.properties().as_bytes() == other.properties().as_bytes()
        }
        _ => false,
    }
}
