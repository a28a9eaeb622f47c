//! A log in memory: as durable as the process, and the same in every other promise.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use tokio::sync::watch;

use crate::block::{Block, Compression};
use crate::branch::{Branch, Tip};
use crate::claims::{Claims, Heads};
use crate::error::{AppendError, LogError};
use crate::id::{BatchId, BranchId, BranchName, Epoch, Hash, Head, LogId, Offset};
use crate::log::{Append, Appended, Claim, Delivery, Log, Offer, Pending};
use crate::tables::{self, BranchRecord, Tables, WriteTables};

/// A log that lives and dies with its process.
#[derive(Debug)]
pub struct MemoryLog {
    id: LogId,
    store: Mutex<Store>,
    claims: Claims,
    heads: Heads,
}

#[derive(Debug, Default)]
struct Store {
    branches: Vec<BranchRecord>,
    tips: Vec<Tip>,
    blocks: BTreeMap<(BranchId, Offset), Block>,
    keys: HashMap<(BranchId, String), Offset>,
    blobs: BTreeMap<Hash, Bytes>,
    closed: bool,
}

impl MemoryLog {
    /// An empty log. The caller mints `id` at the edge, so that nothing here is random.
    #[must_use]
    pub fn new(id: LogId) -> Self {
        MemoryLog {
            id,
            store: Mutex::default(),
            claims: Claims::default(),
            heads: Heads::default(),
        }
    }

    fn open(&self) -> Result<MutexGuard<'_, Store>, LogError> {
        let store = self.store.lock().expect("no thread panics while it holds the store");
        if store.closed {
            return Err(LogError::Stopped { what: "it was closed".to_owned() });
        }
        Ok(store)
    }

    fn announced(
        &self,
        branch: BranchId,
        result: Result<Appended, AppendError>,
    ) -> Pending<Result<Appended, AppendError>> {
        if let Ok(appended) = &result {
            self.heads.announce(branch, appended.head);
        }
        Pending::ready(result)
    }
}

impl Log for MemoryLog {
    fn id(&self) -> LogId {
        self.id
    }

    fn branches(&self) -> Result<Vec<Branch>, LogError> {
        tables::branches(&*self.open()?)
    }

    fn branch(&self, branch: BranchId) -> Result<Branch, LogError> {
        tables::branch(&*self.open()?, branch)
    }

    fn create(&self, name: &BranchName) -> Result<Branch, LogError> {
        tables::create(&mut *self.open()?, name)
    }

    fn fork(
        &self,
        parent: BranchId,
        cut: Head,
        name: &BranchName,
        serving: &str,
    ) -> Result<Branch, LogError> {
        tables::fork(&mut *self.open()?, parent, cut, name, serving)
    }

    fn claim(&self, branch: BranchId, owner: &str) -> Result<Claim, LogError> {
        self.claims.claim(branch, owner, || tables::claim(&mut *self.open()?, branch))
    }

    fn release(&self, branch: BranchId, epoch: Epoch) {
        self.claims.release(branch, epoch);
    }

    fn submit(&self, append: Append) -> Pending<Result<Appended, AppendError>> {
        let name = append.batch.id(append.branch, append.expected);
        let land = || tables::land(&mut *self.open()?, &append, name, None);
        let result = land();
        self.announced(append.branch, result)
    }

    fn offer(&self, branch: BranchId, offer: Offer) -> Pending<Result<Appended, AppendError>> {
        let (answer, pending) = Pending::channel();
        match self.claims.deliver(branch, Delivery { offer, answer }) {
            Ok(()) => pending,
            Err(Delivery { offer, .. }) => {
                let mut name = BatchId::ZERO;
                let mut land = || tables::land_offer(&mut *self.open()?, branch, &offer, &mut name);
                let result = land();
                self.announced(branch, result)
            }
        }
    }

    fn blocks(
        &self,
        branch: BranchId,
        from: Offset,
        bytes_max: usize,
    ) -> Result<Vec<Block>, LogError> {
        let store = self.open()?;
        let head = tables::tip(&*store, branch)?.head;
        let lineage = tables::lineage(&*store, branch)?;
        tables::blocks(&lineage, head, from, bytes_max, |branch, at| store.own_block(branch, at))
    }

    fn find_key(&self, branch: BranchId, key: &str) -> Result<Option<Offset>, LogError> {
        let store = self.open()?;
        let lineage = tables::lineage(&*store, branch)?;
        tables::find_key(&lineage, |branch| store.own_key(branch, key))
    }

    fn put_blob(&self, bytes: Bytes) -> Result<Hash, LogError> {
        let hash = Hash::of(&bytes);
        self.open()?.put_blob(&hash, &bytes)?;
        Ok(hash)
    }

    fn blob(&self, hash: &Hash) -> Result<Option<Bytes>, LogError> {
        Ok(self.open()?.blobs.get(hash).cloned())
    }

    fn blobs(&self, after: Option<Hash>, count: usize) -> Result<Vec<Hash>, LogError> {
        let range = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        Ok(self.open()?.blobs.range(range).map(|(hash, _)| *hash).take(count).collect())
    }

    fn watch(&self, branch: BranchId) -> Result<watch::Receiver<Head>, LogError> {
        let store = self.open()?;
        let head = tables::tip(&*store, branch)?.head;
        Ok(self.heads.follow(branch, head))
    }

    fn close(&self) -> Result<(), LogError> {
        self.open()?.closed = true;
        Ok(())
    }
}

fn index(branch: BranchId) -> usize {
    branch.get() as usize
}

/// A batch is refused before anything of it is written, so nothing needs to be undone: `land` reads
/// first and writes last.
impl Tables for Store {
    fn branch_count(&self) -> Result<u32, LogError> {
        Ok(u32::try_from(self.branches.len()).expect("fewer branches than 2^32"))
    }

    fn branch_record(&self, branch: BranchId) -> Result<Option<BranchRecord>, LogError> {
        Ok(self.branches.get(index(branch)).cloned())
    }

    fn has_branch(&self, name: &BranchName) -> Result<bool, LogError> {
        Ok(self.branches.iter().any(|record| record.name == *name))
    }

    fn tip(&self, branch: BranchId) -> Result<Option<Tip>, LogError> {
        Ok(self.tips.get(index(branch)).copied())
    }

    fn own_block(&self, branch: BranchId, offset: Offset) -> Result<Option<Block>, LogError> {
        let range = (branch, Offset::ZERO)..=(branch, offset);
        Ok(self.blocks.range(range).next_back().map(|(_, block)| block.clone()))
    }

    fn own_key(&self, branch: BranchId, key: &str) -> Result<Option<Offset>, LogError> {
        Ok(self.keys.get(&(branch, key.to_owned())).copied())
    }
}

impl WriteTables for Store {
    fn has_blob(&self, hash: &Hash) -> Result<bool, LogError> {
        Ok(self.blobs.contains_key(hash))
    }

    fn blob(&self, hash: &Hash) -> Result<Option<Bytes>, LogError> {
        Ok(self.blobs.get(hash).cloned())
    }

    fn compression(&self) -> Compression {
        Compression::Never
    }

    fn put_branch(&mut self, branch: BranchId, record: &BranchRecord) -> Result<(), LogError> {
        assert_eq!(index(branch), self.branches.len(), "branches are numbered in order");
        self.branches.push(record.clone());
        Ok(())
    }

    fn put_tip(&mut self, branch: BranchId, tip: &Tip) -> Result<(), LogError> {
        match self.tips.get_mut(index(branch)) {
            Some(known) => *known = *tip,
            None => self.tips.push(*tip),
        }
        Ok(())
    }

    fn put_block(&mut self, block: &Block) -> Result<(), LogError> {
        self.blocks.insert((block.branch, block.first), block.clone());
        Ok(())
    }

    fn put_key(&mut self, branch: BranchId, key: &str, offset: Offset) -> Result<(), LogError> {
        self.keys.insert((branch, key.to_owned()), offset);
        Ok(())
    }

    fn put_blob(&mut self, hash: &Hash, bytes: &Bytes) -> Result<(), LogError> {
        self.blobs.insert(*hash, bytes.clone());
        Ok(())
    }
}
