//! Claims that a guest made: what is offered to the branch arrives here, and what became of it goes
//! back. A claim ends when its inbox is dropped, when it is released, and with the connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{mpsc, oneshot};

use super::link::{Link, Waiter};
use super::message::{Call, Delivered};
use crate::error::LogError;
use crate::id::{BranchId, Epoch};
use crate::log::{Claim, Delivery, Offer};

/// The claims of one connection that are not over.
#[derive(Default)]
pub(super) struct Inboxes {
    open: Mutex<HashMap<BranchId, Inbox>>,
}

struct Inbox {
    epoch: Epoch,
    /// To the task that looks after the claim.
    deliveries: mpsc::UnboundedSender<Delivered>,
    /// To the engine; closed when the engine has let go.
    engine: mpsc::WeakUnboundedSender<Delivery>,
}

impl Inboxes {
    fn list(&self) -> MutexGuard<'_, HashMap<BranchId, Inbox>> {
        self.open.lock().expect("no thread panics while it holds the inboxes")
    }

    /// Makes the inbox of a claim that the owner has granted.
    pub(super) fn open(
        &self,
        link: &Arc<Link>,
        branch: BranchId,
        epoch: Epoch,
    ) -> Result<Claim, LogError> {
        let (engine, inbox) = mpsc::unbounded_channel();
        let (deliveries, incoming) = mpsc::unbounded_channel();
        let watched = Inbox { epoch, deliveries, engine: engine.downgrade() };
        let ours = Arc::clone(link);
        link.spawn(async move {
            look_after(&ours, incoming, &engine).await;
            ours.inboxes.release(branch, epoch);
            // An owner that has ended the claim already leaves this call alone.
            drop(ours.send(Call::Release { branch, epoch }, Waiter::Nobody));
        })?;
        self.list().insert(branch, watched);
        Ok(Claim { epoch, inbox })
    }

    pub(super) fn deliver(&self, link: &Link, delivered: Delivered) {
        let list = self.list();
        let ours = list.get(&delivered.branch).filter(|inbox| inbox.epoch == delivered.epoch);
        let unsent = match ours {
            Some(inbox) => inbox.deliveries.send(delivered).err().map(|unsent| unsent.0),
            None => Some(delivered),
        };
        drop(list);
        if let Some(delivered) = unsent {
            give_back(link, delivered);
        }
    }

    /// Ends a claim that was given back.
    pub(super) fn release(&self, branch: BranchId, epoch: Epoch) {
        let mut list = self.list();
        if list.get(&branch).is_some_and(|inbox| inbox.epoch == epoch) {
            list.remove(&branch);
        }
    }

    /// The epoch of a claim whose engine has let go without giving it back.
    pub(super) fn abandoned(&self, branch: BranchId) -> Option<Epoch> {
        let list = self.list();
        let inbox = list.get(&branch)?;
        let gone = inbox.engine.upgrade().is_none_or(|engine| engine.is_closed());
        gone.then_some(inbox.epoch)
    }

    /// The connection is gone, and all claims with it.
    pub(super) fn close(&self) {
        self.list().clear();
    }
}

/// Hands deliveries to the engine and their answers to the owner, until the engine lets go, the
/// claim is given back, or the connection is gone.
async fn look_after(
    link: &Arc<Link>,
    mut incoming: mpsc::UnboundedReceiver<Delivered>,
    engine: &mpsc::UnboundedSender<Delivery>,
) {
    loop {
        let delivered = tokio::select! {
            delivered = incoming.recv() => delivered,
            () = engine.closed() => break,
        };
        let Some(Delivered { branch, epoch, delivery, expected, events }) = delivered else {
            break;
        };
        let again = events.clone();
        let Ok(drafts) = events.drafts() else {
            drop(link.send(Call::Delivered { delivery, result: None }, Waiter::Nobody));
            continue;
        };
        let (answer, answered) = oneshot::channel();
        if engine.send(Delivery { offer: Offer { drafts, expected }, answer }).is_err() {
            give_back(link, Delivered { branch, epoch, delivery, expected, events: again });
            break;
        }
        let link = Arc::clone(link);
        tokio::spawn(async move {
            let result = answered.await.ok().map(|result| result.map_err(Into::into));
            drop(link.send(Call::Delivered { delivery, result }, Waiter::Nobody));
        });
    }
    // What arrived too late for the engine goes to whoever runs the branch next.
    incoming.close();
    while let Some(delivered) = incoming.recv().await {
        give_back(link, delivered);
    }
}

fn give_back(link: &Link, delivered: Delivered) {
    let Delivered { branch, epoch, delivery, expected, events } = delivered;
    let call = Call::Return { branch, epoch, delivery, expected, events };
    drop(link.send(call, Waiter::Nobody));
}
