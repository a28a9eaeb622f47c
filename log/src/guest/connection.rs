//! One guest as the owner sees it: its calls, its claims and what it follows.
//!
//! When the guest is gone, for whatever reason, its claims are over.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::events::Sent;
use super::frame::{self, Frames, LARGE, STALL_TIME, decode, invalid};
use super::message::{Answer, Call, Delivered, Hello, MAGIC, Notice, Request, VERSION, Welcome};
use super::outbox::Outbox;
use super::server::Shared;
use crate::error::{AppendError, LogError};
use crate::id::{BranchId, BranchName, Epoch, Head};
use crate::log::{Append, Appended, Claim, Delivery, Offer, Pending};

/// How long a guest may take to say who it is.
const GREETING_TIME: Duration = Duration::from_secs(10);
/// How many bytes of blocks go into one answer, at most.
const BLOCKS_MAX: u64 = 4 << 20;
/// How many blobs are listed in one answer, at most.
const BLOBS_MAX: u64 = 100_000;
/// How many bytes of appends wait for the disk, for one guest.
const APPENDS_MAX: usize = 64 << 20;
/// How many offers of one guest wait for an engine.
const OFFERS_MAX: usize = 10_000;

type Answered = oneshot::Sender<Result<Appended, AppendError>>;

/// Serves a guest until it leaves, or refuses it with a reason.
pub(super) fn serve(
    shared: &Arc<Shared>,
    stream: &UnixStream,
    refuse: Option<String>,
) -> io::Result<()> {
    stream.set_write_timeout(Some(STALL_TIME))?;
    let mut frames = Frames::new(stream.try_clone()?);
    let hello: Hello = frames.greeting(GREETING_TIME)?;
    let welcome = match refuse {
        Some(reason) => Err(reason),
        None => greet(shared, &hello),
    };
    let mut greeting = Vec::new();
    frame::append(&mut greeting, &welcome).expect("a greeting is short");
    io::Write::write_all(&mut &*stream, &greeting)?;
    if welcome.is_err() {
        return Ok(());
    }
    let outbox = Arc::new(Outbox::default());
    let writer = {
        let (outbox, stream) = (Arc::clone(&outbox), stream.try_clone()?);
        let thread = thread::Builder::new().name("guest: answers".to_owned());
        thread.spawn(move || {
            outbox.write_to(&stream);
            // Wakes the thread that reads, which then ends too.
            drop(stream.shutdown(Shutdown::Both));
        })?
    };
    let mut connection = Connection::new(shared, Arc::clone(&outbox));
    let done = connection.take_calls(&mut frames);
    drop(connection);
    outbox.close();
    drop(stream.shutdown(Shutdown::Both));
    drop(writer.join());
    done
}

fn greet(shared: &Shared, hello: &Hello) -> Welcome {
    if hello.magic == MAGIC && hello.version == VERSION {
        return Ok(shared.host.clone());
    }
    Err(format!(
        "{} owns the store and speaks version {VERSION} to guests, not {}; use the same starling for \
         both",
        shared.host.owner, hello.version
    ))
}

struct Connection {
    shared: Arc<Shared>,
    outbox: Arc<Outbox>,
    claims: Vec<(BranchId, Epoch, AbortHandle)>,
    watches: HashMap<BranchId, AbortHandle>,
    deliveries: Arc<Deliveries>,
    flow: Arc<Flow>,
}

/// Offers that were handed to this guest's engines, and who waits for the answers.
#[derive(Default)]
struct Deliveries {
    next: AtomicU64,
    open: Mutex<HashMap<u64, Answered>>,
}

/// What of this guest waits for an answer.
#[derive(Default)]
struct Flow {
    waiting: Mutex<Waiting>,
    less: Condvar,
}

#[derive(Default)]
struct Waiting {
    append_bytes: usize,
    offers: usize,
}

impl Connection {
    fn new(shared: &Arc<Shared>, outbox: Arc<Outbox>) -> Connection {
        Connection {
            shared: Arc::clone(shared),
            outbox,
            claims: Vec::new(),
            watches: HashMap::new(),
            deliveries: Arc::default(),
            flow: Arc::default(),
        }
    }

    fn take_calls(&mut self, frames: &mut Frames) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        while let Some(length) = frames.next_length()? {
            let large = (length > LARGE)
                .then(|| shared.large.lock().expect("no thread panics while it holds this"));
            let request: Request = decode(&frames.body(length)?)?;
            self.take_call(request, length)?;
            drop(large);
            self.outbox.wait_for_room();
        }
        Ok(())
    }

    /// Carries out one call. An error here is a breach of the rules, and the end of the connection.
    fn take_call(&mut self, request: Request, bytes: usize) -> io::Result<()> {
        let Request { number, call } = request;
        match call {
            Call::Submit { branch, expected, epoch, events } => {
                let fits = expected.count().checked_add(events.len() as u64).is_some();
                if !fits {
                    return Err(invalid("a batch beyond the last offset"));
                }
                let batch = events.batch(expected.next()).map_err(invalid)?;
                self.flow.append(bytes);
                let pending = self.shared.log.submit(Append { branch, batch, expected, epoch });
                let flow = Arc::clone(&self.flow);
                self.answer_later(number, pending, move || flow.appended(bytes));
            }
            Call::Offer { branch, expected, events } => {
                let offer = Offer { drafts: events.drafts().map_err(invalid)?, expected };
                if !self.flow.offer() {
                    let what = format!("more than {OFFERS_MAX} offers of this guest are waiting");
                    self.outbox.answer(number, Answer::Failed(LogError::Owner(what).into()));
                    return Ok(());
                }
                let pending = self.shared.log.offer(branch, offer);
                let flow = Arc::clone(&self.flow);
                self.answer_later(number, pending, move || flow.offered());
            }
            Call::Claim { branch, owner } => self.claim(number, branch, &owner),
            Call::Delivered { delivery, result } => {
                let answer = self.deliveries.take(delivery);
                if let (Some(answer), Some(result)) = (answer, result) {
                    drop(answer.send(result.map_err(AppendError::from)));
                }
            }
            Call::Return { branch, epoch, delivery, expected, events } => {
                let drafts = events.drafts().map_err(invalid)?;
                self.hand_on(branch, epoch, delivery, Offer { drafts, expected });
            }
            other => {
                let answer = self.at_once(other);
                self.outbox.answer(number, answer.unwrap_or_else(|e| Answer::Failed(e.into())));
            }
        }
        Ok(())
    }

    /// The calls that are answered before the next is read.
    fn at_once(&mut self, call: Call) -> Result<Answer, LogError> {
        let log = &self.shared.log;
        Ok(match call {
            Call::Branches => Answer::Branches(log.branches()?),
            Call::Branch(branch) => Answer::Branch(log.branch(branch)?),
            Call::Create(name) => Answer::Branch(log.create(&name.parse::<BranchName>()?)?),
            Call::Fork { parent, cut, name, serving } => {
                Answer::Branch(log.fork(parent, cut, &name.parse::<BranchName>()?, &serving)?)
            }
            Call::Release { branch, epoch } => {
                self.release(branch, epoch);
                Answer::Done
            }
            Call::Blocks { branch, from, bytes_max } => {
                let bytes_max = bytes_max.min(BLOCKS_MAX) as usize;
                let blocks = log.blocks(branch, from, bytes_max)?.into_iter();
                let stored = blocks.map(|b| (b.branch, b.first, b.bytes().clone()));
                Answer::Blocks(stored.collect())
            }
            Call::FindKey { branch, key } => Answer::Key(log.find_key(branch, &key)?),
            Call::PutBlob(bytes) => Answer::Stored(log.put_blob(bytes)?),
            Call::Blob(hash) => Answer::Blob(log.blob(&hash)?),
            Call::Blobs { after, count } => {
                Answer::Blobs(log.blobs(after, count.min(BLOBS_MAX) as usize)?)
            }
            Call::Watch(branch) => Answer::Watching(self.watch(branch)?),
            Call::Submit { .. }
            | Call::Offer { .. }
            | Call::Claim { .. }
            | Call::Delivered { .. }
            | Call::Return { .. } => unreachable!("handled where the call was taken"),
        })
    }

    fn answer_later(
        &self,
        number: u64,
        pending: Pending<Result<Appended, AppendError>>,
        done: impl FnOnce() + Send + 'static,
    ) {
        let outbox = Arc::clone(&self.outbox);
        self.shared.tasks.spawn(async move {
            let answer = match pending.into_future().await {
                Some(result) => Answer::Appended(result.map_err(Into::into)),
                None => Answer::Gone,
            };
            outbox.answer(number, answer);
            done();
        });
    }

    fn watch(&mut self, branch: BranchId) -> Result<Head, LogError> {
        let mut heads = self.shared.log.watch(branch)?;
        let now = *heads.borrow_and_update();
        if !self.watches.contains_key(&branch) {
            let outbox = Arc::clone(&self.outbox);
            let task = self.shared.tasks.spawn(async move {
                while heads.changed().await.is_ok() {
                    let head = *heads.borrow_and_update();
                    outbox.head(branch, head);
                }
            });
            self.watches.insert(branch, task.abort_handle());
        }
        Ok(now)
    }

    fn claim(&mut self, number: u64, branch: BranchId, owner: &str) {
        let Claim { epoch, mut inbox } = match self.shared.log.claim(branch, owner) {
            Ok(claim) => claim,
            Err(error) => return self.outbox.answer(number, Answer::Failed(error.into())),
        };
        // Said before the first delivery, so that the guest knows what that is for.
        self.outbox.answer(number, Answer::Claimed(epoch));
        let (outbox, deliveries) = (Arc::clone(&self.outbox), Arc::clone(&self.deliveries));
        let task = self.shared.tasks.spawn(async move {
            while let Some(Delivery { offer, answer }) = inbox.recv().await {
                match Sent::of_drafts(&offer.drafts) {
                    Err(error) => drop(answer.send(Err(error.into()))),
                    Ok(events) => {
                        let delivery = deliveries.open(answer);
                        let expected = offer.expected;
                        let sent = Delivered { branch, epoch, delivery, expected, events };
                        outbox.push(&Notice::Delivery(sent));
                    }
                }
            }
        });
        self.claims.push((branch, epoch, task.abort_handle()));
    }

    fn release(&mut self, branch: BranchId, epoch: Epoch) {
        let ours = |claim: &(BranchId, Epoch, AbortHandle)| (claim.0, claim.1) == (branch, epoch);
        // Only a claim made on this connection is this guest's to give back.
        if let Some(place) = self.claims.iter().position(ours) {
            let (_, _, task) = self.claims.swap_remove(place);
            self.shared.log.release(branch, epoch);
            task.abort();
        }
    }

    /// A delivery came too late for the engine that it was meant for.
    fn hand_on(&mut self, branch: BranchId, epoch: Epoch, delivery: u64, offer: Offer) {
        self.release(branch, epoch);
        let Some(answer) = self.deliveries.take(delivery) else { return };
        let pending = self.shared.log.offer(branch, offer);
        self.shared.tasks.spawn(async move {
            if let Some(result) = pending.into_future().await {
                drop(answer.send(result));
            }
        });
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        while let Some((branch, epoch, _)) = self.claims.last() {
            let (branch, epoch) = (*branch, *epoch);
            self.release(branch, epoch);
        }
        self.watches.values().for_each(AbortHandle::abort);
    }
}

impl Deliveries {
    fn list(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Answered>> {
        self.open.lock().expect("no thread panics while it holds the deliveries")
    }

    fn open(&self, answer: Answered) -> u64 {
        let delivery = self.next.fetch_add(1, Ordering::Relaxed);
        self.list().insert(delivery, answer);
        delivery
    }

    fn take(&self, delivery: u64) -> Option<Answered> {
        self.list().remove(&delivery)
    }
}

impl Flow {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no thread panics while it holds this")
    }

    /// Counts an append, once there is room: the log answers each sooner or later.
    fn append(&self, bytes: usize) {
        let full = |waiting: &mut Waiting| waiting.append_bytes > APPENDS_MAX;
        let waiting = self.less.wait_while(self.waiting(), full);
        waiting.expect("no thread panics while it holds this").append_bytes += bytes;
    }

    fn appended(&self, bytes: usize) {
        self.waiting().append_bytes -= bytes;
        self.less.notify_all();
    }

    /// Counts an offer, if there is room. An engine of the same guest may have to answer it, so
    /// nothing waits here.
    fn offer(&self) -> bool {
        let mut waiting = self.waiting();
        waiting.offers += 1;
        waiting.offers <= OFFERS_MAX || {
            waiting.offers -= 1;
            false
        }
    }

    fn offered(&self) {
        self.waiting().offers -= 1;
    }
}
