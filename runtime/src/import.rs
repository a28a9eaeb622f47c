//! Logs of other systems, event for event.

mod activegraph;

pub(crate) use activegraph::{
    ImportError as ActivegraphError, Options, import as import_activegraph,
};
use log::{BranchId, Head, Log, LogError, Offset, read_one};

/// The field of an event, beside those that are ours, that says where it came from.
pub(crate) const MARK: &str = "imported";

/// Whether a branch began as the log of another system.
pub(crate) fn is_imported(log: &dyn Log, branch: BranchId) -> Result<bool, LogError> {
    if log.branch(branch)?.tip.head == Head::EMPTY {
        return Ok(false);
    }
    Ok(read_one(log, branch, Offset::ZERO)?.extra().get(MARK).is_some())
}
