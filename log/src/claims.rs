//! Who runs which branch in this process, and where its heads are announced.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use dashmap::DashMap;
use tokio::sync::{mpsc, watch};

use crate::error::LogError;
use crate::id::{BranchId, Epoch, Head};
use crate::log::{Claim, Delivery};

/// The live claims of a store. A claim lives while its inbox does.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    live: Mutex<BTreeMap<BranchId, Live>>,
}

#[derive(Debug)]
struct Live {
    /// None while the claim is being made durable.
    epoch: Option<Epoch>,
    owner: String,
    inbox: mpsc::UnboundedSender<Delivery>,
}

impl Claims {
    fn live(&self) -> MutexGuard<'_, BTreeMap<BranchId, Live>> {
        self.live.lock().expect("no thread panics while it holds the claims")
    }

    /// Refuses while another engine runs the branch; else makes the claim that `epoch` gives, which
    /// may take its time: no other branch waits for it.
    pub(crate) fn claim(
        &self,
        branch: BranchId,
        owner: &str,
        epoch: impl FnOnce() -> Result<Epoch, LogError>,
    ) -> Result<Claim, LogError> {
        let (sender, inbox) = mpsc::unbounded_channel();
        let mut live = self.live();
        if let Some(other) = live.get(&branch).filter(|other| !other.inbox.is_closed()) {
            return Err(LogError::Claimed { branch, owner: other.owner.clone() });
        }
        live.insert(branch, Live { epoch: None, owner: owner.to_owned(), inbox: sender });
        drop(live);
        // If this fails, the inbox is dropped, and with it the claim.
        let epoch = epoch()?;
        let mut live = self.live();
        let ours = live.get_mut(&branch).expect("a claim that lives is not replaced");
        ours.epoch = Some(epoch);
        Ok(Claim { epoch, inbox })
    }

    pub(crate) fn release(&self, branch: BranchId, epoch: Epoch) {
        let mut live = self.live();
        if live.get(&branch).is_some_and(|live| live.epoch == Some(epoch)) {
            live.remove(&branch);
        }
    }

    /// Hands events to the engine that runs the branch; gives them back if there is none.
    pub(crate) fn deliver(&self, branch: BranchId, delivery: Delivery) -> Result<(), Delivery> {
        match self.live().get(&branch) {
            Some(live) => live.inbox.send(delivery).map_err(|unsent| unsent.0),
            None => Err(delivery),
        }
    }
}

/// Announces durable heads to those who follow them.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    /// Many follow while one writes, and no follower holds up the writer of another branch.
    senders: DashMap<BranchId, watch::Sender<Head>>,
}

impl Heads {
    pub(crate) fn follow(&self, branch: BranchId, now: Head) -> watch::Receiver<Head> {
        self.senders.entry(branch).or_insert_with(|| watch::Sender::new(now)).subscribe()
    }

    /// A head only grows, whatever the order in which it is told.
    pub(crate) fn announce(&self, branch: BranchId, head: Head) {
        if let Some(sender) = self.senders.get(&branch) {
            sender.send_if_modified(|known| {
                let grown = *known < head;
                *known = head.max(*known);
                grown
            });
        }
    }
}
