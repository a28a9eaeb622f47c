//! Work, counted: a search that would stall ends with an error that says so.

use std::cell::Cell;
use std::fmt;

/// How much a search may still look at: one step for each element it considers.
///
/// One counter is made per event and pattern, so that a hub or a dense clique cannot hold up the
/// engine longer than the bound allows.
#[derive(Clone, Debug)]
pub struct Steps {
    taken: Cell<u64>,
    max: u64,
}

/// A search needed more steps than it was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// The bound that was reached.
    pub steps: u64,
}

impl Steps {
    /// A counter that allows so many steps.
    #[must_use]
    pub fn up_to(max: u64) -> Self {
        Steps { taken: Cell::new(0), max }
    }

    /// How many were taken so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Counts one.
    pub(crate) fn take(&self) -> Result<(), Exhausted> {
        let taken = self.taken.get() + 1;
        self.taken.set(taken);
        if taken <= self.max { Ok(()) } else { Err(Exhausted { steps: self.max }) }
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the pattern looked at more than {} elements: give it a narrower start: a type, \
             a property that few elements share, or a shorter path",
            self.steps
        )
    }
}

impl std::error::Error for Exhausted {}
