//! Events as lines of JSON: how a branch leaves a store, and how it comes back with the same
//! hashes.
//!
//! `JSONL.md` describes the lines. A line holds all of an event, long texts included, so a branch
//! that was exported and imported ends in the identical link of the hash chain. Both directions
//! stream: memory does not grow with the branch.

mod import;
mod read;
mod write;

use std::io::Write;
use std::ops::Range;

use crate::error::LogError;
use crate::id::{BranchId, Offset};
use crate::log::Log;

pub use import::{ImportError, Imported, import};
pub use read::{LineError, read_line};
pub use write::{Escapes, write_line};

/// The longest line that is written or read, in bytes: long texts are part of it.
pub const LINE_MAX: usize = 256 << 20;

/// Writes the events of `range` as lines, through the ancestors of the branch, and says how many.
///
/// # Errors
/// There is no such branch, it is damaged, or `out` does not take the lines.
pub fn export(
    log: &dyn Log,
    branch: BranchId,
    range: Range<Offset>,
    out: &mut dyn Write,
    escapes: Escapes,
) -> Result<u64, LogError> {
    let failed = |source| LogError::Io { doing: "writing the export", source };
    let mut line = Vec::with_capacity(1024);
    let mut count = 0;
    for event in crate::read::read(log, branch, range)? {
        line.clear();
        write_line(log, &event?, escapes, &mut line)?;
        out.write_all(&line).map_err(failed)?;
        count += 1;
    }
    out.flush().map_err(failed)?;
    Ok(count)
}
