//! What only the runtime writes, the graph included: nodes and edges whose type begins with `_`.

use log::ChangeRef;
use log::Event;
use projection::Graph;

use super::resolve::resolved;

/// The element of the runtime that an event would make or touch, though it is no event of the
/// runtime. The id of such an element begins with its type, so any other is told at a glance.
pub(crate) fn forged(event: &Event, graph: &Graph) -> Option<String> {
    let mut touched = Vec::new();
    for change in event.changes().iter() {
        match change {
            ChangeRef::Create { type_name, .. }
            | ChangeRef::Ensure { type_name, .. }
            | ChangeRef::Link { type_name, .. }
            | ChangeRef::EnsureLink { type_name, .. } => {
                if type_name.starts_with('_') {
                    return Some(type_name.to_owned());
                }
            }
            ChangeRef::Write { id, .. }
            | ChangeRef::Unset { id, .. }
            | ChangeRef::Remove { id } => {
                if id.starts_with('_') {
                    touched.push(id.to_owned());
                }
            }
        }
    }
    if touched.is_empty() {
        return None;
    }
    let of_runtime = |id: &str| graph.element(id).is_some_and(|e| e.type_name().starts_with('_'));
    let mut all = resolved(event).into_iter().map(|change| change.target.to_string());
    all.find(|id| touched.contains(id) && of_runtime(id))
}
