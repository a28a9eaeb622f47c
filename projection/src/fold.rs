//! One event, its changes: the only writer of the graph.

use log::Event;

use crate::delta::Delta;
use crate::graph::Graph;
use crate::refusal::Refusal;

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

    /// The same, into a delta whose memory is used again.
    ///
    /// # Errors
    /// As `apply`.
    pub fn apply_into(&mut self, _event: &Event, _delta: &mut Delta) -> Result<(), Refusal> {
        todo!("skeleton")
    }

    /// Takes back the last applied event: the graph is exactly as before it.
    pub fn undo(&mut self, _delta: Delta) {
        todo!("skeleton")
    }
}
