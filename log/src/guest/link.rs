//! The guest's end of a connection: calls go out, answers come back to whoever waits for them.
//!
//! When the connection breaks, calls that wait fail, claims are over, and appends and offers whose
//! answer is lost are handed to whoever can find out what became of them.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::claim::Inboxes;
use super::frame::{self, FRAME_MAX, Frames, STALL_TIME, decode};
use super::message::{Answer, Call, Hello, Host, MAGIC, Notice, Request, VERSION, Welcome};
use crate::claims::Heads;
use crate::error::{AppendError, LogError};
use crate::id::{BranchId, Head};
use crate::log::{Append, Appended, Claim, Offer};

/// How long the owner may take to greet.
const GREETING_TIME: Duration = Duration::from_secs(10);
/// How long the owner may take to answer a call that does not wait for an engine.
const ANSWER_TIME: Duration = Duration::from_secs(120);

pub(super) type Answered = oneshot::Sender<Result<Appended, AppendError>>;

/// An append or offer whose answer was lost with the owner.
#[derive(Debug)]
pub(crate) enum Unsettled {
    Append(Append, Answered),
    /// With a head that the branch had reached when it was made.
    Offer(BranchId, Offer, Head, Answered),
}

impl Unsettled {
    /// The branch that it is for.
    pub(crate) fn branch(&self) -> BranchId {
        match self {
            Unsettled::Append(append, _) => append.branch,
            Unsettled::Offer(branch, ..) => *branch,
        }
    }

    /// Says what became of it.
    pub(crate) fn answer(self, result: Result<Appended, AppendError>) {
        let (Unsettled::Append(_, sender) | Unsettled::Offer(_, _, _, sender)) = self;
        // Whoever asked may have stopped waiting.
        drop(sender.send(result));
    }
}

/// Who waits for an answer.
pub(super) enum Waiter {
    Call(SyncSender<Answer>),
    Claim(BranchId, SyncSender<Result<Claim, LogError>>),
    Unsettled(Unsettled),
    Nobody,
}

/// What is done with the appends and offers that a broken connection leaves.
pub(crate) type OnLost = Box<dyn FnOnce(Vec<Unsettled>) + Send>;

pub(crate) struct Link {
    path: PathBuf,
    host: Host,
    stream: UnixStream,
    /// Held while a message is written.
    writer: Mutex<()>,
    next: AtomicU64,
    waiting: Mutex<Waiting>,
    pub(super) inboxes: Inboxes,
    pub(super) heads: Arc<Heads>,
    /// Heads that branches are known to have reached.
    reached: Mutex<HashMap<BranchId, Head>>,
    lost: AtomicBool,
    /// Whether it was this side that hung up.
    closed: AtomicBool,
    /// Looks after claims, once there is one.
    tasks: Mutex<Option<Runtime>>,
}

#[derive(Default)]
struct Waiting {
    over: bool,
    list: HashMap<u64, Waiter>,
}

impl Link {
    /// Greets the owner of the store at `path` over `stream`.
    pub(super) fn open(
        path: &Path,
        stream: UnixStream,
        heads: Arc<Heads>,
        on_lost: OnLost,
    ) -> Result<Arc<Link>, LogError> {
        let silent = |error: io::Error| LogError::Busy {
            path: path.to_owned(),
            what: format!("it did not greet this guest ({error})"),
        };
        stream.set_write_timeout(Some(STALL_TIME)).map_err(silent)?;
        let mut hello = Vec::new();
        let words = Hello { magic: MAGIC, version: VERSION };
        frame::append(&mut hello, &words).expect("a greeting is short");
        (&stream).write_all(&hello).map_err(silent)?;
        let mut frames = Frames::new(stream.try_clone().map_err(silent)?);
        let welcome: Welcome = frames.greeting(GREETING_TIME).map_err(silent)?;
        let host = welcome.map_err(LogError::Owner)?;
        let link = Arc::new(Link {
            path: path.to_owned(),
            host,
            stream,
            writer: Mutex::default(),
            next: AtomicU64::new(0),
            waiting: Mutex::default(),
            inboxes: Inboxes::default(),
            heads,
            reached: Mutex::default(),
            lost: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            tasks: Mutex::default(),
        });
        let reader = Arc::clone(&link);
        let thread = thread::Builder::new().name("guest of the log".to_owned());
        thread
            .spawn(move || {
                let end = reader.take_notices(&mut frames);
                reader.end(end, on_lost);
            })
            .map_err(silent)?;
        Ok(link)
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// Runs a task for as long as the connection lives.
    pub(super) fn spawn(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), LogError> {
        let failed = |source| LogError::Io { doing: "starting a thread for a claim", source };
        let mut tasks = self.tasks.lock().expect("no thread panics while it holds this");
        let runtime = match &mut *tasks {
            Some(runtime) => runtime,
            none => {
                let mut builder = Builder::new_multi_thread();
                let builder = builder.worker_threads(1).thread_name("guest: claims");
                none.insert(builder.build().map_err(failed)?)
            }
        };
        runtime.spawn(task);
        Ok(())
    }

    /// Hangs up.
    pub(super) fn close(&self) -> Result<(), LogError> {
        if self.closed.swap(true, Ordering::SeqCst) || self.is_lost() {
            return Err(self.gone());
        }
        self.hang_up();
        Ok(())
    }

    fn hang_up(&self) {
        drop(self.stream.shutdown(Shutdown::Both));
    }

    /// Why a call fails after the connection broke.
    fn gone(&self) -> LogError {
        if self.closed.load(Ordering::SeqCst) {
            return LogError::Stopped { what: "it was closed".to_owned() };
        }
        LogError::Stopped { what: format!("{}, which owned the store, has left", self.host.owner) }
    }

    /// Calls and waits for the answer.
    pub(super) fn call(&self, call: Call) -> Result<Answer, LogError> {
        let (sender, receiver) = sync_channel(1);
        self.send(call, Waiter::Call(sender)).map_err(|unsent| unsent.1)?;
        match self.wait(&receiver)? {
            Answer::Failed(fault) => Err(fault.into()),
            answer => Ok(answer),
        }
    }

    pub(super) fn claim(&self, branch: BranchId, owner: &str) -> Result<Claim, LogError> {
        let (sender, receiver) = sync_channel(1);
        let call = Call::Claim { branch, owner: owner.to_owned() };
        self.send(call, Waiter::Claim(branch, sender)).map_err(|unsent| unsent.1)?;
        self.wait(&receiver)?
    }

    fn wait<T>(&self, receiver: &Receiver<T>) -> Result<T, LogError> {
        receiver.recv_timeout(ANSWER_TIME).map_err(|error| match error {
            RecvTimeoutError::Disconnected => self.gone(),
            RecvTimeoutError::Timeout => LogError::Busy {
                path: self.path.clone(),
                what: format!("{} did not answer within 120 s", self.host.owner),
            },
        })
    }

    /// Sends a call. One thread's calls are carried out in their order. A call that was not sent
    /// gives its waiter back.
    pub(super) fn send(&self, call: Call, waiter: Waiter) -> Result<(), Box<(Waiter, LogError)>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut bytes = Vec::new();
        if let Err(bytes) = frame::append(&mut bytes, &Request { number, call }) {
            let limit = FRAME_MAX;
            let error = LogError::Message { what: "the request", bytes, limit };
            return Err(Box::new((waiter, error)));
        }
        let _turn = self.writer.lock().expect("no thread panics while it writes");
        {
            let mut waiting = self.waiting();
            if waiting.over {
                return Err(Box::new((waiter, self.gone())));
            }
            if !matches!(waiter, Waiter::Nobody) {
                waiting.list.insert(number, waiter);
            }
        }
        if (&self.stream).write_all(&bytes).is_err() {
            // The thread that reads sees the end, and says so to all who wait, this call included.
            self.hang_up();
        }
        Ok(())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no thread panics while it holds the waiters")
    }

    fn take_notices(self: &Arc<Self>, frames: &mut Frames) -> io::Result<()> {
        while let Some(length) = frames.next_length()? {
            match decode(&frames.body(length)?)? {
                Notice::Head { branch, head } => self.reached(branch, head),
                Notice::Delivery(delivered) => self.inboxes.deliver(self, delivered),
                Notice::Answer { number, answer } => {
                    let waiter = self.waiting().list.remove(&number);
                    self.take_answer(answer, waiter.unwrap_or(Waiter::Nobody));
                }
            }
        }
        Ok(())
    }

    fn take_answer(self: &Arc<Self>, answer: Answer, waiter: Waiter) {
        match waiter {
            Waiter::Nobody => {}
            Waiter::Call(sender) => drop(sender.send(answer)),
            Waiter::Claim(branch, sender) => {
                let claim = match answer {
                    Answer::Claimed(epoch) => self.inboxes.open(self, branch, epoch),
                    Answer::Failed(fault) => Err(fault.into()),
                    _ => Err(LogError::Owner("something else than was asked for".to_owned())),
                };
                drop(sender.send(claim));
            }
            Waiter::Unsettled(asked) => match answer {
                Answer::Appended(Ok(appended)) => {
                    self.reached(asked.branch(), appended.head);
                    asked.answer(Ok(appended));
                }
                Answer::Appended(Err(refusal)) => asked.answer(Err(refusal.into())),
                Answer::Failed(fault) => asked.answer(Err(LogError::from(fault).into())),
                // The sender is dropped: whoever owed the answer is gone.
                _ => {}
            },
        }
    }

    fn end(&self, end: io::Result<()>, on_lost: OnLost) {
        if let Err(error) = end {
            tracing::debug!(%error, "the connection to the owner of the store broke");
        }
        self.hang_up();
        let list = {
            let mut waiting = self.waiting();
            waiting.over = true;
            std::mem::take(&mut waiting.list)
        };
        self.lost.store(true, Ordering::SeqCst);
        self.inboxes.close();
        let tasks = self.tasks.lock().expect("no thread panics while it holds this").take();
        if let Some(tasks) = tasks {
            tasks.shutdown_background();
        }
        let mut list: Vec<(u64, Waiter)> = list.into_iter().collect();
        list.sort_by_key(|(number, _)| *number);
        let unsettled = list.into_iter().filter_map(|(_, waiter)| match waiter {
            Waiter::Unsettled(unsettled) => Some(unsettled),
            _ => None,
        });
        on_lost(unsettled.collect());
    }

    /// Notes that a branch has reached a head, and tells those who follow it.
    pub(super) fn reached(&self, branch: BranchId, head: Head) {
        let mut reached = self.reached.lock().expect("no thread panics while it holds the heads");
        let known = reached.entry(branch).or_insert(head);
        *known = head.max(*known);
        drop(reached);
        self.heads.announce(branch, head);
    }

    /// A head that a branch has surely reached.
    pub(super) fn known(&self, branch: BranchId) -> Option<Head> {
        let reached = self.reached.lock().expect("no thread panics while it holds the heads");
        reached.get(&branch).copied()
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("path", &self.path).field("host", &self.host).finish()
    }
}

/// What becomes of lost appends where nobody can reopen the store.
pub(crate) fn leave_unknown(unsettled: Vec<Unsettled>) {
    for lost in unsettled {
        // The sender of an offer is dropped: whoever owed the answer is gone.
        if let Unsettled::Append(append, _) = &lost {
            let batch = append.batch.id(append.branch, append.expected);
            let what = "the process that owned the store left before it answered".to_owned();
            lost.answer(Err(AppendError::Unknown { batch, what }));
        }
    }
}
