//! Folding many events, with a look ahead at what they will touch.
//!
//! A fold of a large graph mostly waits for memory. The elements that some events will touch are
//! known before the first of them is applied, so they are all looked at first: the processor waits
//! for them together and not one after the other. Nothing depends on it but time.

use log::{ChangeRef, Event, change_reference};

use crate::delta::Delta;
use crate::graph::Graph;
use crate::refusal::Refusal;

/// How many events are looked at before the first of them is applied.
const EVENTS: usize = 16;
/// How many ids of those are looked at.
const IDS: usize = 64;

impl Graph {
    /// Applies events in order, as `apply` does each; the way to fold a stored log.
    ///
    /// # Errors
    /// The first event that cannot be applied; those before it are, as `head` tells.
    pub fn fold(&mut self, events: &[Event]) -> Result<(), Refusal> {
        let mut delta = Delta::default();
        for some in events.chunks(EVENTS) {
            let mut ids = [""; IDS];
            let count = named(some, &mut ids);
            self.look_ahead(&ids[..count]);
            for event in some {
                self.apply_into(event, &mut delta)?;
            }
        }
        Ok(())
    }
}

/// The ids that the changes of `events` name; how many there are.
fn named<'e>(events: &'e [Event], ids: &mut [&'e str; IDS]) -> usize {
    let mut count = 0;
    let mut add = |id: &'e str| {
        if count < IDS && change_reference(id).is_none() {
            ids[count] = id;
            count += 1;
        }
    };
    for change in events.iter().flat_map(|event| event.changes().iter()) {
        match change {
            ChangeRef::Link { from, to, .. } | ChangeRef::EnsureLink { from, to, .. } => {
                add(from);
                add(to);
            }
            ChangeRef::Create { id: Some(id), .. }
            | ChangeRef::Ensure { id, .. }
            | ChangeRef::Write { id, .. }
            | ChangeRef::Unset { id, .. }
            | ChangeRef::Remove { id } => add(id),
            ChangeRef::Create { id: None, .. } => {}
        }
    }
    count
}
