//! One event, its changes: the only writer of the graph.
//!
//! Changes are applied one after the other, each seeing what the ones before it did; the old state
//! of what they touch goes into the delta. If one cannot be applied, the delta so far is taken
//! back.

mod ahead;
mod change;
mod derived;
mod properties;

use log::{Event, Head};

use crate::delta::Delta;
use crate::graph::Graph;
use crate::refusal::Refusal;
use change::Fold;
pub(crate) use properties::Scratch;

impl Graph {
    /// Applies all changes of an event, or none.
    ///
    /// # Errors
    /// The first change that cannot be applied; the graph is exactly as before.
    pub fn apply(&mut self, event: &Event) -> Result<Delta, Refusal> {
        let mut delta = Delta::default();
        self.apply_into(event, &mut delta)?;
        Ok(delta)
    }

    /// The same, into a delta whose memory is used again: for folding many events.
    ///
    /// # Errors
    /// As `apply`; then the delta means nothing.
    pub fn apply_into(&mut self, event: &Event, delta: &mut Delta) -> Result<(), Refusal> {
        let (expected, found) = (self.head.next(), event.offset());
        if expected != found {
            return Err(Refusal::Gap { expected, found });
        }
        delta.begin(found, self.counters());
        let done = Fold::new(self, delta, event).all();
        delta.finish(self);
        let done = done.and_then(|()| self.apply_schemas(event, delta));
        if let Err(refusal) = done {
            self.turn_back(delta);
            return Err(refusal);
        }
        self.head = Head::after(found);
        Ok(())
    }

    /// Takes back the last applied event: the graph is exactly as before it.
    ///
    /// # Panics
    /// The delta is not that of the last applied event.
    pub fn undo(&mut self, mut delta: Delta) {
        assert_eq!(self.head, Head::after(delta.offset), "only the last event can be taken back");
        self.turn_back(&mut delta);
        self.head = Head::of_count(delta.offset.get());
    }

    fn turn_back(&mut self, delta: &mut Delta) {
        // What was created goes first, edges before nodes, so that an id is free when what had it
        // before comes back.
        for (element, before) in delta.touched.iter().rev() {
            if before.is_none() {
                self.remove_element(*element);
            }
        }
        for (reference, before) in delta.touched.drain(..) {
            let Some(element) = before else { continue };
            if self.stored(reference).is_some() {
                self.replace_element(reference, element);
            } else {
                let free = self.insert_element(reference, element);
                assert!(free, "what had the id meanwhile is gone");
            }
        }
        self.reset_counters(delta.counters);
        if let Some(schemas) = delta.schemas.take() {
            self.schemas = schemas;
        }
    }
}
