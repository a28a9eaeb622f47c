//! What a search does next: the cheapest of everything that can be done.

use super::{Aim, Search, Task};
use crate::graph::TypeId;
use crate::pattern::program::{
    Anchor, AnchorKey, EdgeStep, Kind, Scope, SlotSet, Ways, bit, slots_of,
};
use crate::pattern::steps::Exhausted;
use crate::pattern::value::Val;
use crate::world::World;

/// How far an index is counted before it is called large.
const COUNT_MAX: usize = 1024;

/// One thing to do next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Choice {
    /// Everything is bound.
    Done,
    /// Follow an edge of the scope, by its number.
    Edge(usize),
    /// Look an element up by an anchor of the scope.
    Anchor(usize),
    /// Try every node that a slot may be.
    Nodes(usize),
    /// Try every edge that a slot may be.
    Edges(usize),
}

impl<'a, W: World> Search<'a, W> {
    pub(super) fn choose(
        &mut self,
        task: Task,
        bound: SlotSet,
        pending: SlotSet,
    ) -> Result<Choice, Exhausted> {
        let scope = &self.program.scopes[task.scope];
        if scope.anchors.is_empty() {
            if pending == 0 && scope.nodes & !bound == 0 {
                return Ok(Choice::Done);
            }
            if pending.is_power_of_two() {
                let edge = pending.trailing_zeros() as usize;
                if reached(&scope.edges[edge], bound) {
                    return Ok(Choice::Edge(edge));
                }
            }
        }
        let mut best: Option<(usize, Choice)> = None;
        for edge in slots_of(pending) {
            let step = &scope.edges[edge];
            if bound & bit(step.slot) != 0 {
                return Ok(Choice::Edge(edge));
            }
            if reached(step, bound) {
                keep(&mut best, self.edge_cost(step, bound), Choice::Edge(edge));
            }
        }
        let by_edge = best.is_some();
        for (number, anchor) in scope.anchors.iter().enumerate() {
            if wanted(task, scope, anchor.slot, bound, pending) && anchor.needs & !bound == 0 {
                let most = best.map_or(COUNT_MAX, |(cost, _)| cost.min(COUNT_MAX));
                if let Some(cost) = self.anchor_cost(anchor, most)? {
                    keep(&mut best, cost, Choice::Anchor(number));
                }
            }
        }
        if !by_edge {
            self.consider_scans(scope, bound, pending, &mut best);
        }
        Ok(best.map_or(Choice::Done, |(_, choice)| choice))
    }

    /// Looks through whole types, where nothing leads on from what is bound.
    fn consider_scans(
        &mut self,
        scope: &'a Scope,
        bound: SlotSet,
        pending: SlotSet,
        best: &mut Option<(usize, Choice)>,
    ) {
        let graph = self.graph;
        for slot in slots_of(scope.nodes & !bound) {
            let cost = match &self.program.slots[slot].types {
                None => graph.node_count(),
                Some(_) => self.known_types(slot).map(|id| graph.node_count_of_type(id)).sum(),
            };
            keep(best, cost, Choice::Nodes(slot));
        }
        for edge in slots_of(pending) {
            let step = &scope.edges[edge];
            if step.length.is_none() {
                let cost = match &self.program.slots[step.slot].types {
                    None => graph.edge_count(),
                    Some(_) => {
                        let types = self.known_types(step.slot);
                        types.map(|id| graph.edge_count_of_type(id)).sum()
                    }
                };
                keep(best, cost, Choice::Edges(step.slot));
            }
        }
    }

    /// The types of a slot that this graph has met.
    fn known_types(&mut self, slot: usize) -> impl Iterator<Item = TypeId> {
        self.type_ids(slot).flatten()
    }

    fn edge_cost(&mut self, step: &EdgeStep, bound: SlotSet) -> usize {
        let ends = [step.from, step.to].into_iter().filter(|end| bound & bit(*end) != 0);
        let mut least = usize::MAX;
        for end in ends {
            least = least.min(self.degree(step, end));
        }
        // The length of a path multiplies; any guess above one edge will do.
        if step.length.is_some() { least.saturating_mul(4) } else { least }
    }

    /// How many edges of a step there are at one of its ends, as far as the graph knows.
    pub(super) fn degree(&mut self, step: &EdgeStep, end: usize) -> usize {
        let node = self.frame[end].node().expect("an edge ends at nodes");
        let outward = match step.ways {
            Ways::Forward => end == step.from,
            Ways::Backward => end == step.to,
            Ways::Both => true,
        };
        let inward = step.ways == Ways::Both || !outward;
        let mut degree = 0;
        for type_id in self.type_ids(step.slot) {
            if outward {
                degree += self.graph.out_degree(node, type_id);
            }
            if inward {
                degree += self.graph.in_degree(node, type_id);
            }
        }
        degree
    }

    /// How many elements an anchor gives, counted up to `most`; `None` if it cannot be used.
    fn anchor_cost(&mut self, anchor: &'a Anchor, most: usize) -> Result<Option<usize>, Exhausted> {
        let AnchorKey::Property(property) = &anchor.key else { return Ok(Some(1)) };
        let value = self.value(&anchor.value)?;
        // A null equals nothing; a list may equal another whose numbers are written otherwise.
        let Some(key) = value.as_key() else {
            return Ok(matches!(value, Val::Null).then_some(0));
        };
        let slot = &self.program.slots[anchor.slot];
        let mut count = 0;
        for number in slot.types.as_ref().expect("an index is asked by type") {
            let Some(type_id) = self.type_id(*number) else { continue };
            let world = self.world;
            count += if slot.kind == Kind::Node {
                let Some(found) = world.nodes_with(type_id, property, key) else { return Ok(None) };
                found.take(most).count()
            } else {
                let Some(found) = world.edges_with(type_id, property, key) else { return Ok(None) };
                found.take(most).count()
            };
        }
        Ok(Some(count))
    }
}

/// Whether one end of an edge is bound.
fn reached(step: &EdgeStep, bound: SlotSet) -> bool {
    bound & (bit(step.slot) | bit(step.from) | bit(step.to)) != 0
}

/// Whether a slot is one to be bound by this task.
fn wanted(task: Task, scope: &Scope, slot: usize, bound: SlotSet, pending: SlotSet) -> bool {
    let ours = match task.aim {
        Aim::Match => scope.own,
        Aim::Seeds => scope.own | scope.imports,
    };
    // Everything of the scope itself is bound once no edge and no node is left.
    let open = pending != 0 || scope.nodes & !bound != 0 || task.aim == Aim::Seeds;
    open && ours & bit(slot) & !bound != 0
}

/// Keeps the cheaper of two choices, the earlier of equal ones.
fn keep(best: &mut Option<(usize, Choice)>, cost: usize, choice: Choice) {
    if best.is_none_or(|(least, _)| cost < least) {
        *best = Some((cost, choice));
    }
}
