//! What is checked when a store is opened: that it is the one its anchor remembers, or a later one.

use std::path::Path;

use ::redb::{Database, ReadableDatabase};

use super::anchor::{Anchor, path_beside};
use super::open::Opened;
use super::state::State;
use super::tables::{BLOCKS, last_block};
use crate::block::Block;
use crate::error::{Corruption, LogError};
use crate::id::{BranchId, Hash, Head};

/// Compares a store with the anchor beside it, if there is one.
pub(super) fn check_anchor(path: &Path, opened: &Opened) -> Result<(), LogError> {
    let anchor_path = path_beside(path);
    let Some(anchor) = Anchor::read(&anchor_path)? else { return Ok(()) };
    if anchor.id != opened.id {
        return Err(LogError::Replaced { path: path.to_owned(), anchor: anchor_path });
    }
    let (anchored, found) = (anchor.commits, opened.state.commits());
    let shorter = |(branch, head, _): &(BranchId, Head, Hash)| {
        opened.state.tip(*branch).is_none_or(|tip| tip.head < *head)
    };
    if found < anchored || anchor.heads.iter().any(shorter) {
        let path = path.to_owned();
        return Err(LogError::RolledBack { path, anchor: anchor_path, anchored, found });
    }
    for (branch, head, link) in anchor.heads {
        if link_at(path, &opened.database, &opened.state, branch, head)? != Some(link) {
            let what = format!("its history up to {head} is not the one that its anchor remembers");
            return Err(Corruption { branch, offset: head.next(), what }.into());
        }
    }
    Ok(())
}

/// The link after `head`, a place where a commit of the branch ended.
fn link_at(
    path: &Path,
    database: &Database,
    state: &State,
    branch: BranchId,
    head: Head,
) -> Result<Option<Hash>, LogError> {
    let tip = state.tip(branch).filter(|tip| tip.head == head);
    if let Some(tip) = tip {
        return Ok(Some(tip.link));
    }
    let Some(last) = head.last() else { return Ok(Some(crate::chain::genesis())) };
    let owner = state.lineage(branch)?.owner(last);
    if owner.branch != branch {
        let fork = state.record(branch).and_then(|record| record.fork.as_ref());
        return Ok(fork.filter(|fork| fork.cut == head).map(|fork| fork.link));
    }
    let find = || -> Result<_, ::redb::Error> {
        let blocks = database.begin_read()?.open_table(BLOCKS)?;
        Ok(last_block(&blocks, branch, last)?)
    };
    let failed = |error: ::redb::Error| {
        let what = format!("reading it failed: {error}");
        LogError::Store { path: path.to_owned(), what }
    };
    let Some((first, bytes)) = find().map_err(failed)? else { return Ok(None) };
    let block = Block::read(branch, first, bytes)?;
    Ok(Some(block.after).filter(|_| block.head() == head))
}
