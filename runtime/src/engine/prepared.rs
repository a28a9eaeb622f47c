//! Firings handed over before their turn, to behaviors that react elsewhere.
//!
//! What is due is known before it is taken, so while one firing lands, the next ones are already
//! being run. Whether an answer counts is decided when its turn has come, by comparing all that the
//! firing may see with what was shown: nothing here can change a result.

use super::activation::{Activation, Place};
use super::evaluate::prepare;
use super::library::Library;
use super::state::State;

/// How many are handed over at once, at most.
pub(crate) const PREPARED_MAX: usize = 32;

/// What was handed over.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// The last activation that was.
    last: Option<Place>,
    /// How many of them are still to be taken, as far as is known.
    left: usize,
}

impl Prepared {
    /// Hands over the next activations, with the one whose turn it is, when few are left.
    pub(crate) fn before(&mut self, state: &State, library: &Library, current: &Activation) {
        self.left = self.left.saturating_sub(1);
        if !library.any_remote() || self.left > PREPARED_MAX / 2 {
            return;
        }
        let mut next = state.agenda.upcoming(state.head, self.last.as_ref()).peekable();
        if next.peek().is_none() {
            return;
        }
        if self.left == 0 {
            prepare(state, current, library);
        }
        let mut last = None;
        for (place, activation) in next.take(PREPARED_MAX - self.left) {
            prepare(state, activation, library);
            self.left += 1;
            last = Some(place.clone());
        }
        self.last = last.or(self.last.take());
    }
}
