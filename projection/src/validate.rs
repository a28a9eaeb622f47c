//! What may be appended.

use log::Event;

use crate::graph::Graph;
use crate::refusal::Refusal;

impl Graph {
    /// Whether `event` can be applied, without applying it.
    ///
    /// # Errors
    /// As `apply`.
    pub fn validate(&self, event: &Event) -> Result<(), Refusal> {
        self.clone().apply(event).map(drop)
    }
}

/// Whether a person or a script may choose this id for a new element. Ids that came with an import
/// need not pass.
///
/// # Errors
/// Says what is wrong with the id.
pub fn check_chosen_id(_id: &str) -> Result<(), Refusal> {
    todo!("skeleton")
}
