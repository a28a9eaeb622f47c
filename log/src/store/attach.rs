//! Becoming the owner of a store, or the guest of whoever is.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::{Current, Missing, Role, Store};
use crate::claims::Heads;
use crate::error::LogError;
use crate::guest::{GuestLog, Server, leave_unknown};
use crate::id::{BranchId, LogId};
use crate::log::Log;
use crate::redb::RedbLog;

/// How long a store may be held by a process that does not serve it: it is about to, or is leaving.
const PATIENCE: Duration = Duration::from_secs(30);

impl Store {
    /// Finds the owner for the first time.
    pub(super) fn attach(&self, missing: Missing) -> Result<(), LogError> {
        let _turn = self.attaching.lock().expect("no thread panics while it holds this");
        let role = self.find_role(0, missing)?;
        self.set(Current { generation: 0, role });
        Ok(())
    }

    /// Finds the next owner, unless that has been done since `generation`.
    pub(super) fn reattach(&self, generation: u64) -> Result<(), LogError> {
        let _turn = self.attaching.lock().expect("no thread panics while it holds this");
        let current = self.current();
        if current.generation > generation {
            return Ok(());
        }
        let next = current.generation + 1;
        let role = self.find_role(next, Missing::Refuse)?;
        let found = Current { generation: next, role };
        if found.log().id() != current.log().id() {
            let what = "another store has taken its place".to_owned();
            return Err(LogError::Store { path: self.path.clone(), what });
        }
        self.end_claims(found.log());
        self.follow_again(&found)?;
        self.set(found);
        Ok(())
    }

    fn set(&self, current: Current) {
        let mut place = self.current.write().expect("no thread panics while it holds this");
        *place = Some(Arc::new(current));
    }

    fn find_role(&self, generation: u64, missing: Missing) -> Result<Role, LogError> {
        let deadline = Instant::now() + PATIENCE;
        let mut pause = Duration::from_millis(2);
        loop {
            let held = match self.try_role(generation, missing) {
                Err(held @ (LogError::Owned { .. } | LogError::Busy { .. })) => held,
                // Another process made the store in this moment.
                Err(held @ LogError::Exists { .. }) => held,
                found => return found,
            };
            if Instant::now() > deadline {
                let path = self.path.clone();
                let told = match held {
                    LogError::Owned { .. } => {
                        "it has the store open and serves no guests".to_owned()
                    }
                    held => held.to_string(),
                };
                let what = format!("{told} (waited {} s)", PATIENCE.as_secs());
                return Err(LogError::Busy { path, what });
            }
            thread::sleep(pause);
            pause = (2 * pause).min(Duration::from_millis(50));
        }
    }

    fn try_role(&self, generation: u64, missing: Missing) -> Result<Role, LogError> {
        let ours = self.ours.clone();
        let on_lost = move |unsettled| match ours.upgrade() {
            Some(store) => store.owner_left(generation, unsettled),
            None => leave_unknown(unsettled),
        };
        let heads = Arc::clone(&self.heads);
        if let Some(guest) = GuestLog::connect_with(&self.path, heads, Box::new(on_lost))? {
            return Ok(Role::Guest(guest));
        }
        // Whoever has it may begin to serve it while one waits, so one does not wait here.
        let log = Arc::new(match RedbLog::open_within(&self.path, Duration::ZERO) {
            Err(LogError::Missing { .. }) if missing == Missing::Create => make(&self.path)?,
            opened => opened?,
        });
        // Whoever serves the store has it open, so no other process makes this socket.
        let server = Server::start(log.clone(), &self.path, &self.me)?;
        Ok(Role::Owner { server, log })
    }

    /// Claims that the last owner granted are over on the store too, so that nothing more is
    /// appended under them.
    fn end_claims(&self, log: &dyn Log) {
        let claimed = std::mem::take(&mut *self.claimed());
        for (branch, epoch) in claimed {
            let held = log.branch(branch).is_ok_and(|branch| branch.tip.epoch == epoch);
            if held && let Ok(claim) = log.claim(branch, &self.me) {
                log.release(branch, claim.epoch);
            }
        }
    }

    /// Goes on telling heads to those who were told them by the last owner.
    fn follow_again(&self, found: &Current) -> Result<(), LogError> {
        let followed: Vec<BranchId> = self.followed().iter().copied().collect();
        for branch in followed {
            let mut told = match found.log().watch(branch) {
                // It was asked for in vain.
                Err(LogError::NoBranch { .. }) => continue,
                told => told?,
            };
            if let Role::Owner { server, .. } = &found.role {
                let heads: Arc<Heads> = Arc::clone(&self.heads);
                server.spawn(async move {
                    loop {
                        let head = *told.borrow_and_update();
                        heads.announce(branch, head);
                        if told.changed().await.is_err() {
                            return;
                        }
                    }
                });
            }
        }
        Ok(())
    }
}

/// Makes a store. Its name is the one thing in the log that is random.
fn make(path: &Path) -> Result<RedbLog, LogError> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| LogError::Io {
        doing: "naming the new store",
        source: std::io::Error::other(error),
    })?;
    match RedbLog::create(path, LogId::from_bytes(id)) {
        // Another process that makes the store took our unfinished one for a leftover.
        Err(LogError::Io { source, .. })
            if source.kind() == ErrorKind::NotFound && folder_is_there(path) =>
        {
            Err(LogError::Exists { path: path.to_owned() })
        }
        made => made,
    }
}

fn folder_is_there(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.is_none_or(Path::is_dir)
}
