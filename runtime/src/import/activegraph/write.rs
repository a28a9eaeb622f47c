//! Translated runs into branches. One that is there already, whole or in part, is compared and gone
//! on with, so an import that was interrupted is run again.

use log::{Append, Batch, BranchId, Epoch, Head, Log, LogError};

use super::translate::Line;
use super::{ImportError, Imported};

/// How many events are appended at once.
const BATCH_EVENTS: usize = 1000;

/// Writes one run.
pub(super) fn write(log: &dyn Log, line: Line, owner: &str) -> Result<Imported, ImportError> {
    let branches = log.branches()?;
    let found = branches.iter().find(|branch| branch.name == line.branch).cloned();
    let branch = match (found, &line.parent) {
        (Some(found), _) => found,
        (None, None) => log.create(&line.branch)?,
        (None, Some((parent, cut))) => {
            let parent = branches.iter().find(|branch| branch.name == *parent);
            let parent = parent.expect("parents are written first");
            log.fork(parent.id, *cut, &line.branch, "")?
        }
    };
    let claim = log.claim(branch.id, owner)?;
    let done = append(log, branch.id, claim.epoch, &line);
    log.release(branch.id, claim.epoch);
    let (found, appended) = done?;
    let forked_from = line.parent.map(|(parent, cut)| format!("{parent}@{cut}"));
    let Line { branch, run, notices, .. } = line;
    Ok(Imported { branch, run, forked_from, appended, found, notices })
}

/// Compares what is there and appends the rest; how many events of each.
fn append(
    log: &dyn Log,
    branch: BranchId,
    epoch: Epoch,
    line: &Line,
) -> Result<(u64, u64), ImportError> {
    let first = line.parent.as_ref().map_or(Head::EMPTY, |(_, cut)| *cut);
    let head = log.branch(branch)?.tip.head;
    let mut there = log::read(log, branch, first.next()..head.next())?;
    let mut rest = line.events.iter().peekable();
    let mut found = 0;
    for known in there.by_ref() {
        let known = known?;
        match rest.next() {
            Some((event, ..)) if *event == known => found += 1,
            // What came later is somebody else's.
            None => break,
            Some((event, _, place)) => {
                let (branch, place) = (line.branch.clone(), place.clone());
                return Err(ImportError::Differs { branch, offset: event.offset(), place });
            }
        }
    }
    let mut appended = 0;
    while rest.peek().is_some() {
        let mut batch = Batch::new();
        for (event, blobs, _) in rest.by_ref().take(BATCH_EVENTS) {
            batch.push(event.clone(), blobs.clone());
        }
        let expected = log.branch(branch)?.tip.head;
        appended += batch.len() as u64;
        let landed = log.submit(Append { branch, batch, expected, epoch }).wait();
        let gone = || LogError::Stopped { what: "it went away during the import".to_owned() };
        landed.ok_or_else(gone)??;
    }
    Ok((found, appended))
}
