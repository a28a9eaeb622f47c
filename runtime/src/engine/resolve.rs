//! What the changes of an event are about: the id that each makes or touches, with `#j` replaced by
//! what change number j of the same event makes.

use log::{ChangeRef, Event, change_reference, element_id, ensured_edge_id};
use smol_str::SmolStr;

/// A change, and the ids it is about.
#[derive(Clone, Debug)]
pub(crate) struct Resolved<'e> {
    pub(crate) change: ChangeRef<'e>,
    /// What it makes or touches.
    pub(crate) target: SmolStr,
    /// Both ends, if it makes an edge.
    pub(crate) ends: Option<[SmolStr; 2]>,
}

/// The changes of an event with the ids they are about.
pub(crate) fn resolved(event: &Event) -> Vec<Resolved<'_>> {
    let mut done: Vec<Resolved<'_>> = Vec::new();
    for (index, change) in event.changes().iter().enumerate() {
        let named = |id: &str| match change_reference(id).and_then(|j| done.get(j)) {
            Some(made) => made.target.clone(),
            None => id.into(),
        };
        let (target, ends) = match change {
            ChangeRef::Create { id, type_name, .. } => {
                (id.map_or_else(|| derived(event, type_name, index), named), None)
            }
            ChangeRef::Link { id, type_name, from, to, .. } => {
                let target = id.map_or_else(|| derived(event, type_name, index), named);
                (target, Some([named(from), named(to)]))
            }
            ChangeRef::EnsureLink { type_name, from, to, .. } => {
                let ends = [named(from), named(to)];
                (ensured_edge_id(type_name, &ends[0], &ends[1]).into(), Some(ends))
            }
            ChangeRef::Ensure { id, .. }
            | ChangeRef::Write { id, .. }
            | ChangeRef::Unset { id, .. }
            | ChangeRef::Remove { id } => (named(id), None),
        };
        done.push(Resolved { change, target, ends });
    }
    done
}

fn derived(event: &Event, type_name: &str, index: usize) -> SmolStr {
    element_id(type_name, &event.id(), index).into()
}
