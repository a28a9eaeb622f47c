//! Following the files of a flock while it runs: whatever is saved, deleted or renamed is looked at
//! once it has settled, and handed over as a whole.
//!
//! A thread sleeps until the system says that something happened in a folder of the flock; where it
//! may not say so, as on network file systems, the thread looks by itself, ten times a second. What
//! is saved within one breath is one look, so several files are seen together.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;

use super::folders::is_temporary;
use super::{Flock, FlockError, Overrides, Source};
use crate::clock::Stopwatch;

/// Nothing happened for so long: what was saved is whole.
const QUIET: Duration = Duration::from_millis(40);
/// So long a file may be written before it is looked at as it is.
const MOST: Duration = Duration::from_millis(140);
/// How often the files are looked at where nobody tells of changes.
const POLL: Duration = Duration::from_millis(100);

/// How changes are noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Looks {
    /// The system tells, and where it may not, as `Always`.
    #[default]
    WhenTold,
    /// By looking again and again.
    Always,
}

/// Follows the files of a flock. Ends when it is dropped.
#[derive(Debug)]
pub struct Follow {
    news: watch::Receiver<u64>,
    look: Arc<Mutex<Option<Result<Flock, FlockError>>>>,
    stop: Sender<Told>,
}

/// What the thread is told.
#[derive(Debug)]
enum Told {
    Event(notify::Result<notify::Event>),
    Stop,
}

impl Follow {
    /// Follows a flock from what `known` says of its files. What differs already is news.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        folder: &Path,
        overrides: &Overrides,
        known: &Flock,
        looks: Looks,
    ) -> std::io::Result<Follow> {
        let (sender, told) = channel();
        let (announce, news) = watch::channel(0);
        let look = Arc::new(Mutex::new(None));
        let events = sender.clone();
        let watcher = notify::recommended_watcher(move |event| {
            // Who follows no more is told no more.
            drop(events.send(Told::Event(event)));
        });
        let mut watching = Watching {
            folder: folder.to_path_buf(),
            overrides: overrides.clone(),
            uses: known.uses.clone(),
            sources: known.sources.clone(),
            toml: fs::read(folder.join("flock.toml")).ok(),
            said: None,
            watcher: watcher.ok(),
            watched: BTreeSet::new(),
            moved: BTreeSet::new(),
            looks,
            told,
            look: Arc::clone(&look),
            announce,
        };
        // What is saved from now on is told; what was saved before is found by the first look.
        watching.watch();
        let thread = std::thread::Builder::new().name("flock files".to_owned());
        thread.spawn(move || watching.run())?;
        Ok(Follow { news, look, stop: sender })
    }

    /// Whether there is news.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.news.has_changed().unwrap_or(false)
    }

    /// Waits for news.
    pub async fn changed(&self) {
        let mut news = self.news.clone();
        if news.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The flock as it is now, or why it cannot be used; none if it was taken before.
    pub fn take(&mut self) -> Option<Result<Flock, FlockError>> {
        self.news.borrow_and_update();
        self.look.lock().expect("no thread panics while it holds a look").take()
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        // A thread that ended already needs not be told.
        drop(self.stop.send(Told::Stop));
    }
}

/// What the thread knows.
struct Watching {
    folder: PathBuf,
    overrides: Overrides,
    uses: Vec<PathBuf>,
    sources: Vec<Source>,
    /// The bytes of `flock.toml`.
    toml: Option<Vec<u8>>,
    /// The error that was told last.
    said: Option<String>,
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    /// Of them those that may be other folders by now.
    moved: BTreeSet<PathBuf>,
    looks: Looks,
    told: Receiver<Told>,
    look: Arc<Mutex<Option<Result<Flock, FlockError>>>>,
    announce: watch::Sender<u64>,
}

/// What tells one state of a file from another.
type Stamp = (PathBuf, u64, u64, i64, i64);

impl Watching {
    fn run(mut self) {
        // Somebody may be saving at this very moment.
        if !self.settle(None) {
            return;
        }
        self.look();
        // Asked once for each look: it looks at every file, and most events concern nobody.
        let mut polls = self.polls();
        let mut stamps = if polls { self.stamps() } else { Vec::new() };
        loop {
            let told = if polls {
                self.told.recv_timeout(POLL)
            } else {
                self.told.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            let first = match told {
                Ok(Told::Event(event)) if self.concerns(&event) => Some(event),
                Ok(Told::Event(_)) => continue,
                Err(RecvTimeoutError::Timeout) => {
                    let before = std::mem::replace(&mut stamps, self.stamps());
                    if before == stamps {
                        continue;
                    }
                    None
                }
                Ok(Told::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            };
            if !self.settle(first) {
                return;
            }
            self.look();
            polls = self.polls();
            if polls {
                stamps = self.stamps();
            }
        }
    }

    /// Waits until nothing is being written. False when nobody follows any more.
    fn settle(&mut self, first: Option<notify::Result<notify::Event>>) -> bool {
        let watch = Stopwatch::start();
        let mut open: BTreeSet<PathBuf> = BTreeSet::new();
        let mut event = first;
        let mut stamps = event.is_none().then(|| self.stamps());
        loop {
            if let Some(Ok(event)) = &event {
                note_writing(event, &mut open);
            }
            let left = MOST.saturating_sub(watch.elapsed());
            if left.is_zero() {
                return true;
            }
            let patience = if open.is_empty() { QUIET.min(left) } else { left };
            match self.told.recv_timeout(patience) {
                Ok(Told::Event(next)) => {
                    self.concerns(&next);
                    event = Some(next);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let now = stamps.is_some().then(|| self.stamps());
                    if now == stamps {
                        return true;
                    }
                    (stamps, event) = (now, None);
                }
                Ok(Told::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Whether an event is about a file that could matter.
    fn concerns(&mut self, event: &notify::Result<notify::Event>) -> bool {
        let Ok(event) = event else { return true };
        let comes_or_goes = matches!(
            event.kind,
            EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
        );
        if comes_or_goes {
            let folders = event.paths.iter().filter(|path| self.watched.contains(*path));
            self.moved.extend(folders.cloned());
        }
        let reads = matches!(
            event.kind,
            EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write)
        );
        let matters = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default();
            let own = path.parent() == Some(&self.folder);
            !is_temporary(name) && (!own || ["flock.toml", "behaviors"].iter().any(|n| name == *n))
                || self.watched.contains(path)
        };
        !reads && (event.paths.is_empty() || event.paths.iter().any(matters))
    }

    /// Looks at all files, and again if one of their folders is told about only since.
    fn look(&mut self) {
        loop {
            self.look_once();
            if !self.watch() {
                return;
            }
        }
    }

    /// Looks at all files, and tells if something is different.
    fn look_once(&mut self) {
        let toml = fs::read(self.folder.join("flock.toml")).ok();
        let look = Flock::look(&self.folder, &self.overrides, &self.sources);
        let news = match &look {
            Ok(flock) => {
                self.said.take().is_some()
                    || toml != self.toml
                    || differ(&self.sources, &flock.sources)
            }
            Err(error) => {
                let error = error.to_string();
                let news = self.said.as_ref() != Some(&error);
                self.said = Some(error);
                news
            }
        };
        self.toml = toml;
        if let Ok(flock) = &look {
            self.sources.clone_from(&flock.sources);
            self.uses.clone_from(&flock.uses);
        }
        if news {
            *self.look.lock().expect("no thread panics while it holds a look") = Some(look);
            self.announce.send_modify(|count| *count += 1);
        }
    }

    /// The folders in which something can happen that matters.
    fn places(&self) -> BTreeSet<PathBuf> {
        let own = [self.folder.clone(), self.folder.join("behaviors")];
        let mut places: BTreeSet<PathBuf> = own.into_iter().collect();
        places.extend(self.uses.iter().map(|used| self.folder.join(used)));
        // A link is saved where it leads to.
        let ends = self.sources.iter().filter_map(|source| {
            let file = self.folder.join(&source.path);
            let link = fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_symlink());
            if link { file.canonicalize().ok()?.parent().map(Path::to_owned) } else { None }
        });
        places.extend(ends);
        places
    }

    /// Asks to be told of what happens in every folder that matters. True if that is so for one
    /// of them only now: what happened there before was not told.
    fn watch(&mut self) -> bool {
        let places = self.places();
        let moved = std::mem::take(&mut self.moved);
        let Some(watcher) = &mut self.watcher else { return false };
        let known = std::mem::take(&mut self.watched);
        for gone in known.iter().filter(|place| !places.contains(*place) || moved.contains(*place))
        {
            // The system forgot it already if it is not there any more.
            drop(watcher.unwatch(gone));
        }
        let mut news = false;
        for place in places {
            let kept = known.contains(&place) && !moved.contains(&place);
            if kept || watcher.watch(&place, RecursiveMode::NonRecursive).is_ok() {
                news |= !kept;
                self.watched.insert(place);
            }
        }
        news
    }

    /// Whether the files have to be looked at without being told.
    fn polls(&self) -> bool {
        let unwatched = |place: &PathBuf| !self.watched.contains(place);
        let blind = self.watcher.is_none() || self.places().iter().any(|p| is_remote(p));
        let missing = self.uses.iter().map(|used| self.folder.join(used)).any(|p| unwatched(&p));
        self.looks == Looks::Always || blind || missing || unwatched(&self.folder)
    }

    /// What the files are like, without reading them.
    fn stamps(&self) -> Vec<Stamp> {
        let mut stamps = Vec::new();
        let mut stamp = |path: PathBuf| {
            if let Ok(meta) = fs::metadata(&path) {
                stamps.push((path, meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()));
            }
        };
        stamp(self.folder.join("flock.toml"));
        for place in self.places().into_iter().filter(|place| *place != self.folder) {
            let entries = fs::read_dir(&place).into_iter().flatten().flatten();
            let kept = entries.filter(|entry| !is_temporary(&entry.file_name()));
            kept.for_each(|entry| stamp(entry.path()));
        }
        stamps.sort();
        stamps
    }
}

/// Follows which files are open for writing.
fn note_writing(event: &notify::Event, open: &mut BTreeSet<PathBuf>) {
    for path in &event.paths {
        match event.kind {
            EventKind::Create(CreateKind::File) | EventKind::Modify(ModifyKind::Data(_)) => {
                open.insert(path.clone());
            }
            EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Remove(_)
            | EventKind::Modify(ModifyKind::Name(_)) => {
                open.remove(path);
            }
            _ => {}
        }
    }
}

/// Whether the files are others.
fn differ(before: &[Source], now: &[Source]) -> bool {
    let same = |(a, b): (&Source, &Source)| {
        a.path == b.path
            && a.hash == b.hash
            && a.declared.as_ref().err() == b.declared.as_ref().err()
    };
    before.len() != now.len() || !before.iter().zip(now).all(same)
}

/// Whether a folder is on a file system where others can write unseen.
fn is_remote(folder: &Path) -> bool {
    const REMOTE: [&str; 12] = [
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "vboxsf", "overlay", "afs",
        "ceph", "fuse",
    ];
    let Ok(folder) = folder.canonicalize() else { return false };
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut best: (usize, bool) = (0, false);
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(at), Some(kind)) = (words.next(), words.next()) else { continue };
        // The later of two mounts at one place is the one that is seen.
        if folder.starts_with(at) && at.len() >= best.0 {
            let kind = kind.split('.').next().unwrap_or(kind);
            best = (at.len(), REMOTE.contains(&kind));
        }
    }
    best.1
}
