//! What may be appended: an event that can be applied, and ids that may be chosen.

use log::Event;

use crate::graph::Graph;
use crate::refusal::Refusal;

/// The longest id that may be chosen, in characters.
const CHOSEN_MAX: usize = 200;

impl Graph {
    /// Whether `event` can be applied, without applying it. It is tried on a copy, so the answer is
    /// exactly that of `apply`.
    ///
    /// # Errors
    /// As `apply`.
    pub fn validate(&self, event: &Event) -> Result<(), Refusal> {
        self.clone().apply(event).map(drop)
    }
}

/// Whether a person or a script may choose this id for a new element: 1 to 200 characters, no `#`,
/// which marks derived ids, and no control characters. Ids that came with an import need not pass.
///
/// # Errors
/// Says what is wrong with the id.
pub fn check_chosen_id(id: &str) -> Result<(), Refusal> {
    let what = if id.is_empty() {
        "it is empty"
    } else if id.contains('#') {
        "`#` marks ids that are derived from events"
    } else if id.chars().any(char::is_control) {
        "it has control characters"
    } else if id.chars().count() > CHOSEN_MAX {
        "it is longer than 200 characters"
    } else {
        return Ok(());
    };
    Err(Refusal::ChosenId { id: id.chars().take(CHOSEN_MAX).collect(), what })
}
