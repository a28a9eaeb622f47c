//! A store by its path: opened here when nobody has it, used through its owner when somebody does.
//!
//! 1. The process that opens the file owns the store and serves guests. Whoever comes later is a
//!    guest.
//! 2. When the owner leaves, in whatever way, one guest becomes the owner and the others its
//!    guests. Reads, offers and watches go on as if nothing had happened.
//! 3. An append or offer whose answer was lost is looked for in the store. If it landed, that is
//!    the answer; if not, it is made once more, and refused by the usual rules.
//! 4. A claim does not outlive the owner that granted it: its inbox ends, and what is appended
//!    under it is `Superseded`.

mod attach;
mod settle;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, Weak};

use bytes::Bytes;
use tokio::sync::watch;

use crate::block::Block;
use crate::branch::Branch;
use crate::claims::Heads;
use crate::error::{AppendError, LogError};
use crate::guest::{GuestLog, Server, Unsettled};
use crate::id::{BranchId, BranchName, Epoch, Hash, Head, LogId, Offset};
use crate::log::{Append, Appended, Claim, Log, Offer, Pending};
use crate::redb::RedbLog;

/// What to do when there is no store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Make one.
    Create,
    /// Say so.
    Refuse,
}

/// A store, whoever owns it.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    /// How this process is called in messages.
    me: String,
    ours: Weak<Store>,
    current: RwLock<Option<Arc<Current>>>,
    /// Held by whoever finds a new owner.
    attaching: Mutex<()>,
    closed: AtomicBool,
    /// Heads as a guest is told them; they outlive the owner.
    heads: Arc<Heads>,
    followed: Mutex<BTreeSet<BranchId>>,
    /// Claims that were made through the present owner.
    claimed: Mutex<HashMap<BranchId, Epoch>>,
}

/// What this process is to the store, until the owner leaves.
#[derive(Debug)]
struct Current {
    /// Counts the owners this process has seen.
    generation: u64,
    role: Role,
}

#[derive(Debug)]
enum Role {
    /// The server goes before the log that it serves.
    Owner {
        server: Server,
        log: Arc<RedbLog>,
    },
    Guest(GuestLog),
}

impl Current {
    fn log(&self) -> &dyn Log {
        match &self.role {
            Role::Owner { log, .. } => &**log,
            Role::Guest(log) => log,
        }
    }

    fn is_lost(&self) -> bool {
        matches!(&self.role, Role::Guest(log) if log.is_lost())
    }
}

impl Store {
    /// Opens the store at `path`; `me` says which process this is, such as `pid 7 (starling run)`.
    ///
    /// # Errors
    /// There is none and it is not to be made, it is damaged, or its owner does not answer.
    pub fn open(path: &Path, missing: Missing, me: &str) -> Result<Arc<Store>, LogError> {
        let store = Arc::new_cyclic(|ours| Store {
            path: path.to_owned(),
            me: me.to_owned(),
            ours: Weak::clone(ours),
            current: RwLock::default(),
            attaching: Mutex::default(),
            closed: AtomicBool::new(false),
            heads: Arc::default(),
            followed: Mutex::default(),
            claimed: Mutex::default(),
        });
        store.attach(missing)?;
        Ok(store)
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who owns it, if that is another process.
    #[must_use]
    pub fn owner(&self) -> Option<String> {
        match &self.current().role {
            Role::Owner { .. } => None,
            Role::Guest(log) => Some(log.owner().to_owned()),
        }
    }

    fn current(&self) -> Arc<Current> {
        let current = self.current.read().expect("no thread panics while it holds this");
        Arc::clone(current.as_ref().expect("a store that was opened has an owner"))
    }

    fn claimed(&self) -> MutexGuard<'_, HashMap<BranchId, Epoch>> {
        self.claimed.lock().expect("no thread panics while it holds the claims")
    }

    fn followed(&self) -> MutexGuard<'_, BTreeSet<BranchId>> {
        self.followed.lock().expect("no thread panics while it holds this")
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Makes a call, and once more when the owner left meanwhile.
    fn with<T>(
        &self,
        mut call: impl FnMut(&dyn Log) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        loop {
            let current = self.current();
            match call(current.log()) {
                Err(LogError::Stopped { .. }) if current.is_lost() && !self.is_closed() => {
                    self.reattach(current.generation)?;
                }
                result => return result,
            }
        }
    }

    /// Makes a branch. When the owner left meanwhile, it may be there: then it is as it was made.
    fn make(
        &self,
        name: &BranchName,
        mut make: impl FnMut(&dyn Log) -> Result<Branch, LogError>,
        is_made: impl Fn(&Branch) -> bool,
    ) -> Result<Branch, LogError> {
        let mut tries = 0;
        self.with(|log| {
            tries += 1;
            let made = make(log);
            if tries == 1 || !matches!(made, Err(LogError::BranchExists { .. })) {
                return made;
            }
            let found = log.branches()?.into_iter().find(|branch| branch.name == *name);
            let untouched = |branch: &Branch| branch.tip.epoch == Epoch::UNCLAIMED;
            found.filter(|branch| untouched(branch) && is_made(branch)).map_or(made, Ok)
        })
    }

    /// Hands an append or offer to whoever owns the store.
    fn hand_over(&self, mut asked: Unsettled) {
        loop {
            let current = self.current();
            let unsent = match &current.role {
                Role::Owner { log, .. } => return settle::forward(log, asked),
                Role::Guest(log) => log.hand_over(asked),
            };
            let Err(unsent) = unsent else { return };
            let (back, error) = *unsent;
            if !current.is_lost() || self.is_closed() {
                return back.answer(Err(error.into()));
            }
            match self.reattach(current.generation) {
                Ok(()) => asked = back,
                Err(error) => return back.answer(Err(error.into())),
            }
        }
    }
}

impl Log for Store {
    fn id(&self) -> LogId {
        self.current().log().id()
    }

    fn branches(&self) -> Result<Vec<Branch>, LogError> {
        self.with(|log| log.branches())
    }

    fn branch(&self, branch: BranchId) -> Result<Branch, LogError> {
        self.with(|log| log.branch(branch))
    }

    fn create(&self, name: &BranchName) -> Result<Branch, LogError> {
        let is_made = |branch: &Branch| branch.fork.is_none() && branch.tip.head == Head::EMPTY;
        self.make(name, |log| log.create(name), is_made)
    }

    fn fork(
        &self,
        parent: BranchId,
        cut: Head,
        name: &BranchName,
        serving: &str,
    ) -> Result<Branch, LogError> {
        let is_made = |branch: &Branch| {
            let same = |fork: &crate::ForkPoint| {
                fork.parent == parent && fork.cut == cut && fork.serving == serving
            };
            branch.fork.as_ref().is_some_and(same) && branch.tip.head == cut
        };
        self.make(name, |log| log.fork(parent, cut, name, serving), is_made)
    }

    fn claim(&self, branch: BranchId, owner: &str) -> Result<Claim, LogError> {
        let claim = self.with(|log| log.claim(branch, owner))?;
        self.claimed().insert(branch, claim.epoch);
        Ok(claim)
    }

    fn release(&self, branch: BranchId, epoch: Epoch) {
        let mut claimed = self.claimed();
        if claimed.get(&branch) == Some(&epoch) {
            claimed.remove(&branch);
        }
        drop(claimed);
        self.current().log().release(branch, epoch);
    }

    fn submit(&self, append: Append) -> Pending<Result<Appended, AppendError>> {
        let current = self.current();
        if let Role::Owner { log, .. } = &current.role {
            return log.submit(append);
        }
        append.check_place();
        let (sender, pending) = Pending::channel();
        self.hand_over(Unsettled::Append(append, sender));
        pending
    }

    fn offer(&self, branch: BranchId, offer: Offer) -> Pending<Result<Appended, AppendError>> {
        let current = self.current();
        let since = match &current.role {
            Role::Owner { log, .. } => return log.offer(branch, offer),
            Role::Guest(log) => match log.reached(branch) {
                Err(LogError::Stopped { .. }) if log.is_lost() => {
                    self.branch(branch).map(|branch| branch.tip.head)
                }
                since => since,
            },
        };
        match since {
            Err(error) => Pending::ready(Err(error.into())),
            Ok(since) => {
                let (sender, pending) = Pending::channel();
                self.hand_over(Unsettled::Offer(branch, offer, since, sender));
                pending
            }
        }
    }

    fn blocks(
        &self,
        branch: BranchId,
        from: Offset,
        bytes_max: usize,
    ) -> Result<Vec<Block>, LogError> {
        self.with(|log| log.blocks(branch, from, bytes_max))
    }

    fn find_key(&self, branch: BranchId, key: &str) -> Result<Option<Offset>, LogError> {
        self.with(|log| log.find_key(branch, key))
    }

    fn put_blob(&self, bytes: Bytes) -> Result<Hash, LogError> {
        self.with(|log| log.put_blob(bytes.clone()))
    }

    fn blob(&self, hash: &Hash) -> Result<Option<Bytes>, LogError> {
        self.with(|log| log.blob(hash))
    }

    fn blobs(&self, after: Option<Hash>, count: usize) -> Result<Vec<Hash>, LogError> {
        self.with(|log| log.blobs(after, count))
    }

    fn watch(&self, branch: BranchId) -> Result<watch::Receiver<Head>, LogError> {
        // Noted first: should the owner leave in between, the next one is followed.
        self.followed().insert(branch);
        self.with(|log| log.watch(branch))
    }

    fn close(&self) -> Result<(), LogError> {
        self.closed.store(true, Ordering::SeqCst);
        match &self.current().role {
            Role::Guest(log) => log.close(),
            Role::Owner { server, log } => {
                server.stop();
                log.close()
            }
        }
    }
}
