//! The owner's side: a socket on which guests use the log as if it were theirs.
//!
//! Each guest has two threads, one that carries out its calls in order and one that writes to it.
//! One more thread waits for all answers that take their time, whoever asked for them.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Runtime};

use super::connection;
use super::message::Host;
use super::socket;
use crate::error::LogError;
use crate::log::Log;

/// How many guests there may be at once.
const GUESTS_MAX: usize = 256;

/// Serves a log to guests until it is stopped or dropped.
pub struct Server {
    shared: Arc<Shared>,
    place: PathBuf,
    /// Waits for answers; taken when the server stops.
    waiting: Mutex<Option<Runtime>>,
}

/// What all connections share.
pub(super) struct Shared {
    pub(super) log: Arc<dyn Log>,
    pub(super) host: Host,
    pub(super) tasks: tokio::runtime::Handle,
    /// Held while a large message is in memory.
    pub(super) large: Mutex<()>,
    guests: Mutex<HashMap<u64, Guest>>,
    stopped: AtomicBool,
}

struct Guest {
    stream: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `log`, whose file or name is `store`, on the socket beside it. Only the process that
    /// holds the store does so: a socket left behind is replaced. `owner` says who it is.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn start(log: Arc<dyn Log>, store: &Path, owner: &str) -> Result<Server, LogError> {
        let failed = |source| LogError::Io { doing: "opening the socket for guests", source };
        let place = socket::place(store).map_err(failed)?;
        let listener = socket::listen(&place, store).map_err(failed)?;
        let mut waiting = Builder::new_multi_thread();
        waiting.worker_threads(1).thread_name("guests: answers");
        let waiting = waiting.build().map_err(failed)?;
        let host = Host { log: log.id(), owner: owner.to_owned() };
        let shared = Arc::new(Shared {
            log,
            host,
            tasks: waiting.handle().clone(),
            large: Mutex::new(()),
            guests: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&shared);
        let thread = thread::Builder::new().name("guests: door".to_owned());
        thread.spawn(move || accept(&listener, &weak)).map_err(failed)?;
        Ok(Server { shared, place, waiting: Mutex::new(Some(waiting)) })
    }

    /// Where it listens.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Runs `task` for as long as there are guests to serve.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.shared.tasks.spawn(task);
    }

    /// Hangs up on all guests and lets go of the log.
    pub fn stop(&self) {
        if self.shared.stopped.swap(true, Ordering::SeqCst) {
            return;
        }
        // The door wakes at a knock, sees that all is over and closes. Then the name goes, so that
        // a guest that looks for the owner finds none.
        drop(UnixStream::connect(&self.place));
        drop(std::fs::remove_file(&self.place));
        let guests = self.shared.guests().drain().collect::<Vec<_>>();
        for (_, guest) in &guests {
            drop(guest.stream.shutdown(Shutdown::Both));
        }
        for thread in guests.into_iter().filter_map(|(_, guest)| guest.thread) {
            drop(thread.join());
        }
        let waiting = self.waiting.lock().expect("no thread panics while it holds this").take();
        if let Some(waiting) = waiting {
            waiting.shutdown_background();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Shared {
    fn guests(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Guest>> {
        self.guests.lock().expect("no thread panics while it holds the guests")
    }
}

/// Lets guests in, until the server is gone.
fn accept(listener: &UnixListener, shared: &Weak<Shared>) {
    for number in 0.. {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // Out of file handles: the guest that is waiting gets in once another has left.
            Err(error) => {
                tracing::warn!(%error, "a guest could not be let in");
                thread::sleep(std::time::Duration::from_millis(50));
                continue;
            }
        };
        let Some(shared) = shared.upgrade() else { return };
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        if let Err(error) = seat(&shared, number, stream) {
            tracing::warn!(%error, "a guest could not be served");
        }
    }
}

/// Gives a guest its thread.
fn seat(shared: &Arc<Shared>, number: u64, stream: UnixStream) -> io::Result<()> {
    socket::same_user(&stream)?;
    let ours = stream.try_clone()?;
    let crowded = shared.guests().len() >= GUESTS_MAX;
    // Held until the guest is on the list, so that it cannot leave before.
    let mut guests = shared.guests();
    let host = Arc::clone(shared);
    let thread = thread::Builder::new().name("guest".to_owned()).spawn(move || {
        let full = format!("the owner of the store serves {GUESTS_MAX} guests already");
        let refuse = if crowded { Some(full) } else { None };
        if let Err(error) = connection::serve(&host, &stream, refuse) {
            tracing::debug!(%error, "a guest was hung up on");
        }
        host.guests().remove(&number);
    })?;
    guests.insert(number, Guest { stream: ours, thread: Some(thread) });
    Ok(())
}
