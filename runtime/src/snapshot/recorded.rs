//! Recorded state hashes: what a branch folded into when it was written, one line every so many
//! events. They are what a later fold is compared with; without them it is compared with nothing,
//! and no result depends on them.
//!
//! A line is `COUNT STATE LINK`: how many events, the hash of their world, and the link of the last
//! of them, which says whether the line is about this history.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use log::{BranchId, Hash, Head, Lineage, Log, LogError, link_at};

/// How many events lie between two of them.
pub(super) const EVERY: u64 = 65_536;

fn path(folder: &Path, branch: BranchId) -> PathBuf {
    folder.join(format!("{:010}.states", branch.get()))
}

/// Adds state hashes of durable heads.
pub(super) fn append(
    folder: &Path,
    log: &dyn Log,
    branch: BranchId,
    noted: &[(Head, Hash)],
) -> std::io::Result<()> {
    let mut lines = String::new();
    for (head, state) in noted {
        let link = link_at(log, branch, *head).map_err(std::io::Error::other)?;
        lines.push_str(&format!("{} {state} {link}\n", head.count()));
    }
    if lines.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let file = fs::OpenOptions::new().create(true).append(true).open(path(folder, branch));
    file?.write_all(lines.as_bytes())
}

/// The recorded state hashes that are about this history, in order.
pub(super) fn read(
    folder: &Path,
    log: &dyn Log,
    branch: BranchId,
    until: Head,
) -> Result<Vec<(Head, Hash)>, LogError> {
    let lineage = Lineage::of(branch, |id| Ok(log.branch(id)?.fork))?;
    let mut found = Vec::new();
    for segment in lineage.segments() {
        let text = fs::read_to_string(path(folder, segment.branch)).unwrap_or_default();
        for (head, state, link) in text.lines().filter_map(parse) {
            let within = segment.to.is_none_or(|to| head.next() <= to);
            if within && head <= until && link_at(log, branch, head)? == link {
                found.push((head, state));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn parse(line: &str) -> Option<(Head, Hash, Hash)> {
    let mut words = line.split(' ');
    let count = words.next()?.parse().ok()?;
    Some((Head::of_count(count), words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}
