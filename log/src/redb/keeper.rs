//! The keeper of the anchor: a thread that writes it anew about once a second while there are
//! commits.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::Duration;

use super::anchor::Anchor;
use super::shared::Shared;
use crate::error::LogError;

/// The least time between two anchors.
const PAUSE: Duration = Duration::from_secs(1);

/// Writes the anchor of one store.
#[derive(Debug)]
pub(super) struct Keeper {
    path: PathBuf,
    news: Arc<News>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct News {
    told: Mutex<Told>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Told {
    committed: bool,
    closing: bool,
}

impl News {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().expect(HELD)
    }
}

impl Keeper {
    /// Keeps the anchor at `path`.
    pub(super) fn new(path: PathBuf) -> Keeper {
        Keeper { path, news: Arc::default(), thread: Mutex::default() }
    }

    /// Begins to follow the commits of a store.
    pub(super) fn start(&self, shared: &Arc<Shared>) -> std::io::Result<()> {
        let (news, path, shared) =
            (Arc::clone(&self.news), self.path.clone(), Arc::downgrade(shared));
        let name = "log anchor".to_owned();
        let started =
            thread::Builder::new().name(name).spawn(move || keep(&news, &path, &shared))?;
        let before = self.thread.lock().expect(HELD).replace(started);
        assert!(before.is_none(), "a keeper is started once");
        Ok(())
    }

    /// Something was committed.
    pub(super) fn note(&self) {
        self.news.told().committed = true;
        self.news.changed.notify_all();
    }

    /// Writes the last anchor of a store that was closed in good order.
    pub(super) fn close(&self, shared: &Shared) -> Result<(), LogError> {
        self.stop();
        let written = Anchor::of(shared.id, &shared.state()).write(&self.path);
        written.map_err(|source| LogError::Io { doing: "writing the anchor", source })
    }

    /// Ends the thread. Once this returns, it writes no more: another may keep the anchor.
    pub(super) fn stop(&self) {
        self.news.told().closing = true;
        self.news.changed.notify_all();
        if let Some(thread) = self.thread.lock().expect(HELD).take() {
            // A panic of the thread was shown where it happened; the anchor is only older for it.
            drop(thread.join());
        }
    }
}

const HELD: &str = "no thread panics while it holds this lock";

fn keep(news: &News, path: &std::path::Path, shared: &Weak<Shared>) {
    loop {
        let mut told = news.told();
        while !told.committed && !told.closing {
            told = news.changed.wait(told).expect(HELD);
        }
        if told.closing {
            return;
        }
        told.committed = false;
        drop(told);
        let Some(shared) = shared.upgrade() else { return };
        // What is in the state is durable, so the anchor never knows more than the store.
        let anchor = Anchor::of(shared.id, &shared.state());
        drop(shared);
        if let Err(error) = anchor.write(path) {
            tracing::warn!(anchor = %path.display(), %error, "the anchor could not be written");
        }
        let told = news.told();
        let paused = news.changed.wait_timeout_while(told, PAUSE, |told| !told.closing);
        drop(paused.expect(HELD));
    }
}
