//! What can be asked of any log: where two histories part, who wrote a value, what an event
//! followed from and what followed from it, when a pattern became true. All of it reads and nothing
//! writes.
//!
//! Worlds at an offset come from the nearest snapshot, so an answer costs what lies between it and
//! the question. Where several worlds are needed they are one fold, copied where it is needed
//! twice.

mod bisect;
mod causes;
mod first_difference;
mod proof;
mod sides;
mod verify;
mod writers;

pub use bisect::{Turned, Turning, bisect, first_true};
pub(crate) use causes::{ancestry, backwards, cause_of, event_by_id, fired_on, followers};
pub use first_difference::first_difference;
pub(crate) use proof::{Proof, Prover};
pub(crate) use sides::{Figures, Side, figures, sides};
pub use verify::{Unsound, Verified, verify};
pub(crate) use writers::{Changed, changes};
pub use writers::{Part, writers};

use std::ops::ControlFlow;

use log::{BranchId, Event, Head, Log, LogError, read_ahead};
use projection::{Delta, Graph};

use crate::engine::FoldError;

/// Folds a branch on to `until`, and shows every event with the world after it and what it changed,
/// until `each` has seen enough.
pub(crate) fn trace(
    log: &dyn Log,
    branch: BranchId,
    graph: &mut Graph,
    until: Head,
    mut each: impl FnMut(&Event, &Graph, &Delta) -> ControlFlow<()>,
) -> Result<(), FoldError> {
    let mut delta = Delta::default();
    let rest = graph.head().next()..until.next();
    let traced = read_ahead(log, branch, rest, |events| {
        for event in events {
            graph.apply_into(event, &mut delta).map_err(FoldError::refused(event.offset()))?;
            if each(event, graph, &delta).is_break() {
                return Err(Stop::Enough);
            }
        }
        Ok(())
    });
    match traced {
        Err(Stop::Fold(error)) => Err(error),
        Err(Stop::Enough) | Ok(()) => Ok(()),
    }
}

/// Why a fold stops before its end.
enum Stop {
    Enough,
    Fold(FoldError),
}

impl From<FoldError> for Stop {
    fn from(error: FoldError) -> Self {
        Stop::Fold(error)
    }
}

impl From<LogError> for Stop {
    fn from(error: LogError) -> Self {
        Stop::Fold(error.into())
    }
}
