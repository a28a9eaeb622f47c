//! How far a pattern leads from what is bound, without looking through a whole type.

use smol_str::SmolStr;

use crate::pattern::outer_slots;
use crate::pattern::program::{AnchorKey, Kind, Program, Scope, SlotSet, bit, slots_of};

/// Which ways of finding an element count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// Edges and ids.
    Edges,
    /// Indexes as well.
    Indexes,
}

impl Scope {
    /// Everything that is found from what is bound.
    fn reach(&self, bound: SlotSet, by: By) -> SlotSet {
        let mut reached = bound;
        loop {
            let mut more = reached;
            for step in &self.edges {
                let ends = bit(step.from) | bit(step.to);
                // A path cannot be entered in its middle.
                let entry = if step.length.is_some() { ends } else { ends | bit(step.slot) };
                if more & entry != 0 {
                    more |= ends | bit(step.slot);
                }
            }
            for anchor in &self.anchors {
                let counts = by == By::Indexes || anchor.key == AnchorKey::Id;
                if counts && anchor.needs & !more == 0 {
                    more |= bit(anchor.slot);
                }
            }
            if more == reached {
                return reached;
            }
            reached = more;
        }
    }

    /// The entry for a change of what is in a slot: its ends for a path, else the slot itself.
    fn entry(&self, slot: usize) -> SlotSet {
        let path = self.edges.iter().find(|step| step.slot == slot && step.length.is_some());
        path.map_or(bit(slot), |step| bit(step.from))
    }
}

/// Whether a search that has the given variables bound never looks through a whole type.
pub(super) fn is_anchored(program: &Program, given: &[&str]) -> bool {
    let reached = program.scopes[0].reach(given_slots(program, given), By::Indexes);
    reached & program.scopes[0].own == program.scopes[0].own && inside_is_anchored(program)
}

fn given_slots(program: &Program, given: &[&str]) -> SlotSet {
    let named = |slot: &usize| {
        let slot = &program.slots[*slot];
        slot.kind != Kind::Path && slot.name.as_deref().is_some_and(|name| given.contains(&name))
    };
    (0..outer_slots(program)).filter(named).fold(0, |set, slot| set | bit(slot))
}

fn inside_is_anchored(program: &Program) -> bool {
    program
        .scopes
        .iter()
        .skip(1)
        .all(|scope| scope.reach(scope.imports, By::Indexes) & scope.own == scope.own)
}

/// The first slot from which a change does not lead to the whole pattern.
pub(super) fn loose_slot(program: &Program) -> Option<usize> {
    if program.slots.len() == 1 {
        return None;
    }
    (0..program.slots.len())
        .find(|slot| !leads_everywhere(program, *slot, By::Indexes))
        .or_else(|| if inside_is_anchored(program) { None } else { first_inside(program) })
}

fn first_inside(program: &Program) -> Option<usize> {
    program.scopes.iter().skip(1).find_map(|scope| slots_of(scope.own).next())
}

/// Whether a change in a slot leads to everything around it, scope by scope.
fn leads_everywhere(program: &Program, slot: usize, by: By) -> bool {
    let mut at = program.slots[slot].scope;
    let mut bound = program.scopes[at].entry(slot);
    loop {
        let scope = &program.scopes[at];
        let reached = scope.reach(bound, by);
        if reached & scope.own != scope.own {
            return false;
        }
        let Some(parent) = scope.parent else { return true };
        (at, bound) = (parent, reached & !scope.own);
    }
}

/// The types and properties whose index keeps delta matching from looking through a type.
pub(super) fn indexes_for_delta(program: &Program) -> Vec<(SmolStr, SmolStr)> {
    let by_edges = (0..program.slots.len()).all(|slot| leads_everywhere(program, slot, By::Edges))
        && inside_by_edges(program);
    if by_edges { Vec::new() } else { anchored_properties(program) }
}

/// The same for full matching with the given variables bound.
pub(super) fn indexes_for_matches(program: &Program, given: &[&str]) -> Vec<(SmolStr, SmolStr)> {
    let scope = &program.scopes[0];
    let reached = scope.reach(given_slots(program, given), By::Edges);
    let by_edges = reached & scope.own == scope.own && inside_by_edges(program);
    if by_edges { Vec::new() } else { anchored_properties(program) }
}

fn inside_by_edges(program: &Program) -> bool {
    program
        .scopes
        .iter()
        .skip(1)
        .all(|scope| scope.reach(scope.imports, By::Edges) & scope.own == scope.own)
}

fn anchored_properties(program: &Program) -> Vec<(SmolStr, SmolStr)> {
    let mut pairs = Vec::new();
    for anchor in program.scopes.iter().flat_map(|scope| &scope.anchors) {
        if let AnchorKey::Property(property) = &anchor.key {
            let types = program.type_names(anchor.slot).unwrap_or_default();
            pairs.extend(types.into_iter().map(|type_name| (type_name, property.clone())));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}
