//! The tables of a store file, and how one group of requests sees and changes them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use ::redb::{ReadableTable, Table, TableDefinition, WriteTransaction};
use bytes::Bytes;

use super::rows::{TIP_BYTES, read_blob, write_blob, write_branch, write_tip};
use super::state::State;
use crate::block::{Block, Compression};
use crate::branch::Tip;
use crate::error::LogError;
use crate::id::{BranchId, BranchName, Hash, Offset};
use crate::tables::{BranchRecord, Tables, WriteTables};

/// `format`, `id` and `commits`.
pub(super) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
/// Branch records, by number.
pub(super) const BRANCHES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("branches");
/// The tip of each branch.
pub(super) const TIPS: TableDefinition<'_, u32, &[u8; TIP_BYTES]> = TableDefinition::new("tips");
/// Blocks, by branch, first offset and piece.
pub(super) const BLOCKS: TableDefinition<'_, BlockKey, &[u8]> = TableDefinition::new("blocks");
/// Where each durable key stands on a branch itself.
pub(super) const KEYS: TableDefinition<'_, (u32, &str), u64> = TableDefinition::new("keys");
/// Texts and files, by hash.
pub(super) const BLOBS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("blobs");

pub(super) const META_FORMAT: &str = "format";
pub(super) const META_ID: &str = "id";
pub(super) const META_COMMITS: &str = "commits";

pub(super) type BlockKey = (u32, u64, u8);

/// The tables within one write transaction, over the state of the last commit.
pub(super) struct Group<'a> {
    state: &'a State,
    records: Vec<BranchRecord>,
    tips: BTreeMap<BranchId, Tip>,
    blocks: Table<'a, BlockKey, &'static [u8]>,
    keys: Table<'a, (u32, &'static str), u64>,
    blobs: Table<'a, &'static [u8; 32], &'static [u8]>,
    changed: bool,
    /// What redb answered when it failed: then the whole group has failed, whatever the one request
    /// makes of it.
    failed: RefCell<Option<String>>,
}

/// What a group adds to the state once it is durable.
pub(super) struct Changes {
    records: Vec<BranchRecord>,
    tips: BTreeMap<BranchId, Tip>,
    commits: u64,
}

impl<'a> Group<'a> {
    pub(super) fn open(
        transaction: &'a WriteTransaction,
        state: &'a State,
    ) -> Result<Group<'a>, ::redb::Error> {
        Ok(Group {
            state,
            records: Vec::new(),
            tips: BTreeMap::new(),
            blocks: transaction.open_table(BLOCKS)?,
            keys: transaction.open_table(KEYS)?,
            blobs: transaction.open_table(BLOBS)?,
            changed: false,
            failed: RefCell::new(None),
        })
    }

    /// What redb answered when it failed, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        self.failed.borrow().clone()
    }

    /// Writes what was gathered. Gives nothing when there is nothing to commit.
    pub(super) fn finish(
        self,
        transaction: &WriteTransaction,
    ) -> Result<Option<Changes>, ::redb::Error> {
        if !self.changed {
            return Ok(None);
        }
        let Group { state, records, tips, .. } = self;
        if !records.is_empty() {
            let mut table = transaction.open_table(BRANCHES)?;
            for (place, record) in records.iter().enumerate() {
                let number = (state.branch_count() + place) as u32;
                table.insert(number, write_branch(record).as_slice())?;
            }
        }
        if !tips.is_empty() {
            let mut table = transaction.open_table(TIPS)?;
            for (branch, tip) in &tips {
                table.insert(branch.get(), &write_tip(tip))?;
            }
        }
        let commits = state.commits() + 1;
        let mut table = transaction.open_table(META)?;
        table.insert(META_COMMITS, commits.to_le_bytes().as_slice())?;
        drop(table);
        Ok(Some(Changes { records, tips, commits }))
    }

    /// Notes that redb failed, and says so.
    fn note<T>(&self, result: Result<T, ::redb::StorageError>) -> Result<T, LogError> {
        result.map_err(|error| {
            let what = error.to_string();
            self.failed.borrow_mut().get_or_insert_with(|| what.clone());
            LogError::Stopped { what }
        })
    }
}

impl Changes {
    /// Makes the changes visible. Gives the branches whose tips moved.
    pub(super) fn apply(mut self, state: &mut State) -> BTreeMap<BranchId, Tip> {
        for record in self.records {
            let number = BranchId::new(state.branch_count() as u32);
            let tip = self.tips.remove(&number).expect("a branch is made with its tip");
            state.push(record, tip);
        }
        for (branch, tip) in &self.tips {
            state.set_tip(*branch, *tip);
        }
        state.set_commits(self.commits);
        self.tips
    }
}

impl Tables for Group<'_> {
    fn branch_count(&self) -> Result<u32, LogError> {
        let count = self.state.branch_count() + self.records.len();
        Ok(u32::try_from(count).expect("branch numbers have 32 bits"))
    }

    fn branch_record(&self, branch: BranchId) -> Result<Option<BranchRecord>, LogError> {
        if let Some(record) = self.state.record(branch) {
            return Ok(Some(record.clone()));
        }
        let place = (branch.get() as usize).checked_sub(self.state.branch_count());
        Ok(place.and_then(|place| self.records.get(place)).cloned())
    }

    fn has_branch(&self, name: &BranchName) -> Result<bool, LogError> {
        let new = self.records.iter().any(|record| record.name == *name);
        Ok(new || self.state.has_branch(name))
    }

    fn tip(&self, branch: BranchId) -> Result<Option<Tip>, LogError> {
        Ok(self.tips.get(&branch).or_else(|| self.state.tip(branch)).copied())
    }

    fn own_block(&self, branch: BranchId, offset: Offset) -> Result<Option<Block>, LogError> {
        match self.note(last_block(&self.blocks, branch, offset))? {
            None => Ok(None),
            Some((first, bytes)) => Ok(Some(Block::read(branch, first, bytes)?)),
        }
    }

    fn own_key(&self, branch: BranchId, key: &str) -> Result<Option<Offset>, LogError> {
        let found = self.note(self.keys.get((branch.get(), key)))?;
        Ok(found.map(|offset| Offset::new(offset.value())))
    }
}

impl WriteTables for Group<'_> {
    fn has_blob(&self, hash: &Hash) -> Result<bool, LogError> {
        Ok(self.note(self.blobs.get(hash.as_bytes()))?.is_some())
    }

    fn blob(&self, hash: &Hash) -> Result<Option<Bytes>, LogError> {
        let row = self.note(self.blobs.get(hash.as_bytes()))?;
        let damaged = |what| LogError::Blob { hash: *hash, what };
        let row = row.map(|row| Bytes::copy_from_slice(row.value()));
        row.map(|row| read_blob(hash, &row).map_err(damaged)).transpose()
    }

    fn compression(&self) -> Compression {
        Compression::WherePays
    }

    fn put_branch(&mut self, branch: BranchId, record: &BranchRecord) -> Result<(), LogError> {
        assert_eq!(branch.get(), self.branch_count()?, "branches are numbered in order");
        self.records.push(record.clone());
        self.changed = true;
        Ok(())
    }

    fn put_tip(&mut self, branch: BranchId, tip: &Tip) -> Result<(), LogError> {
        self.tips.insert(branch, *tip);
        self.changed = true;
        Ok(())
    }

    fn put_block(&mut self, block: &Block) -> Result<(), LogError> {
        for (piece, bytes) in (0..).zip(pieces(block.bytes())) {
            let key = (block.branch.get(), block.first.get(), piece);
            let known = self.blocks.insert(key, bytes).map(|old| old.is_some());
            assert!(!self.note(known)?, "a block is written once");
        }
        self.changed = true;
        Ok(())
    }

    fn put_key(&mut self, branch: BranchId, key: &str, offset: Offset) -> Result<(), LogError> {
        let known = self.keys.insert((branch.get(), key), offset.get()).map(|old| old.is_some());
        assert!(!self.note(known)?, "a key takes effect once");
        self.changed = true;
        Ok(())
    }

    fn put_blob(&mut self, hash: &Hash, bytes: &Bytes) -> Result<(), LogError> {
        let row = write_blob(bytes);
        let written = self.blobs.insert(hash.as_bytes(), row.as_slice()).map(drop);
        self.changed = true;
        self.note(written)
    }
}

/// Cuts a block into pieces that fill the pages of redb, which come in powers of two: a block of 65
/// KiB alone would take a page of 128.
fn pieces(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    const PAGE: usize = 4096;
    /// What a page takes for itself and for the key of its one piece, generously.
    const OVERHEAD: usize = 64;
    let mut rest = block;
    std::iter::from_fn(move || {
        let pages = (rest.len() + OVERHEAD) / PAGE;
        let fits = match pages.checked_ilog2() {
            Some(order) => (PAGE << order) - OVERHEAD,
            None => rest.len(),
        };
        let (piece, tail) = rest.split_at(fits);
        rest = tail;
        if piece.is_empty() { None } else { Some(piece) }
    })
}

/// The block of `branch` itself that holds `offset`, or the last one before it.
pub(super) fn last_block(
    blocks: &impl ReadableTable<BlockKey, &'static [u8]>,
    branch: BranchId,
    offset: Offset,
) -> Result<Option<(Offset, Bytes)>, ::redb::StorageError> {
    let branch = branch.get();
    let range = (branch, 0, 0)..=(branch, offset.get(), u8::MAX);
    let Some(row) = blocks.range(range)?.next_back() else { return Ok(None) };
    let (key, last) = row?;
    let (_, first, pieces) = key.value();
    if pieces == 0 {
        return Ok(Some((Offset::new(first), Bytes::copy_from_slice(last.value()))));
    }
    // The first piece is the largest, and the others take less together.
    let mut bytes = Vec::new();
    for row in blocks.range((branch, first, 0)..(branch, first, pieces))? {
        let (_, piece) = row?;
        bytes.reserve(2 * piece.value().len());
        bytes.extend_from_slice(piece.value());
    }
    bytes.extend_from_slice(last.value());
    Ok(Some((Offset::new(first), bytes.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fill_their_pages_and_make_up_the_block() {
        let lengths = |length: usize| pieces(&vec![7; length]).map(<[u8]>::len).collect::<Vec<_>>();
        assert_eq!(lengths(1), [1]);
        assert_eq!(lengths(4031), [4031]);
        assert_eq!(lengths(4032), [4032]);
        assert_eq!(lengths(70_000), [65_472, 4032, 496]);
        for length in (1..3000).chain(4000..4200).chain(1_000_000..1_000_100) {
            assert_eq!(lengths(length).iter().sum::<usize>(), length);
        }
    }
}
