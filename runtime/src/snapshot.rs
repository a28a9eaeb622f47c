//! Snapshots: folds stopped at an offset, kept beside the store so that a long log opens and is
//! looked at without folding it from the beginning.
//!
//! A snapshot is a cache, never an identity: delete them all, and nothing but time is lost. It is
//! believed only if its own hash is right and the log has the same link at its offset. A file that
//! cannot be written or read is passed over.

mod recorded;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use log::{BranchId, Event, Hash, Head, Lineage, Log, LogError, LogId, read_ahead};
use projection::Graph;

use crate::engine::FoldError;
use crate::engine::catching::Past;
use crate::engine::state::State;

/// How many events lie between two snapshots, at least. A larger world is kept less often, so that
/// keeping never costs more than folding.
const EVERY: u64 = 16_384;
/// A run that ends leaves a snapshot if it went so far since the last one.
const LAST_EVERY: u64 = 4_096;
/// The first bytes of a snapshot file.
const MAGIC: &[u8; 8] = b"starsnap";

/// The snapshots of one store.
#[derive(Clone, Debug, Default)]
pub struct Snapshots {
    folder: Option<PathBuf>,
    last: Head,
    /// State hashes that are to be recorded once their events are durable.
    noted: Vec<(Head, Hash)>,
}

impl Snapshots {
    /// No snapshots are read or kept.
    #[must_use]
    pub fn none() -> Self {
        Snapshots::default()
    }

    /// The folder beside a store.
    #[must_use]
    pub fn beside(store: &Path) -> Self {
        let mut name = store.as_os_str().to_owned();
        name.push(".snapshots");
        Snapshots { folder: Some(PathBuf::from(name)), ..Snapshots::default() }
    }

    /// Folds a branch up to `until`, from the nearest snapshot before it.
    pub(crate) fn fold_branch(
        &self,
        log: &dyn Log,
        branch: BranchId,
        until: Head,
    ) -> Result<State, FoldError> {
        self.fold_on(State::default(), log, branch, until)
    }

    /// Folds a branch on from a state of it, or from a snapshot that is nearer to `until`.
    pub(crate) fn fold_on(
        &self,
        state: State,
        log: &dyn Log,
        branch: BranchId,
        until: Head,
    ) -> Result<State, FoldError> {
        assert!(state.head <= until, "a fold goes forward");
        let between = (state.head, until);
        let mut state = self.nearest(log, branch, between, read_state)?.unwrap_or(state);
        let rest = state.head.next()..until.next();
        let past = Past::Of(log, branch);
        let fold = |events: &[Event]| events.iter().try_for_each(|event| state.fold(event, past));
        read_ahead(log, branch, rest, fold)?;
        Ok(state)
    }

    /// The graph that the events before `cut.next()` fold into, from the nearest snapshot.
    ///
    /// # Errors
    /// The log is damaged or cannot be read.
    pub fn graph_at(&self, log: &dyn Log, branch: BranchId, cut: Head) -> Result<Graph, FoldError> {
        self.graph_on(Graph::default(), log, branch, cut)
    }

    /// The state of the last snapshot between two heads, if there is one.
    pub(crate) fn nearest_state(
        &self,
        log: &dyn Log,
        branch: BranchId,
        between: (Head, Head),
    ) -> Result<Option<State>, LogError> {
        self.nearest(log, branch, between, read_state)
    }

    /// The world of the last snapshot at or before a head, or the empty one.
    pub(crate) fn nearest_graph(
        &self,
        log: &dyn Log,
        branch: BranchId,
        until: Head,
    ) -> Result<Graph, FoldError> {
        Ok(self.nearest(log, branch, (Head::EMPTY, until), read_graph)?.unwrap_or_default())
    }

    /// The same, from a world of the branch, or from a snapshot that is nearer.
    pub(crate) fn graph_on(
        &self,
        graph: Graph,
        log: &dyn Log,
        branch: BranchId,
        cut: Head,
    ) -> Result<Graph, FoldError> {
        assert!(graph.head() <= cut, "a fold goes forward");
        let between = (graph.head(), cut);
        let mut graph = self.nearest(log, branch, between, read_graph)?.unwrap_or(graph);
        let rest = graph.head().next()..cut.next();
        read_ahead(log, branch, rest, |events| {
            graph.fold(events).map_err(|refusal| FoldError::refused(graph.head().next())(refusal))
        })?;
        Ok(graph)
    }

    /// How many events lie behind the last snapshot that was kept.
    fn since(&self, head: Head) -> u64 {
        head.count().saturating_sub(self.last.count())
    }

    /// Notes the state hash of a world where one is recorded.
    pub(crate) fn note(&mut self, graph: &Graph) {
        let head = graph.head();
        if self.folder.is_some() && head.count().is_multiple_of(recorded::EVERY) {
            self.noted.push((head, graph.state_hash()));
        }
    }

    /// Records the state hashes that were noted; their events are durable now.
    pub(crate) fn record(&mut self, log: &dyn Log, branch: BranchId) {
        let Some(folder) = &self.folder else { return };
        if let Err(error) = recorded::append(folder, log, branch, &self.noted) {
            tracing::warn!(%error, "a state hash was not recorded");
        }
        self.noted.clear();
    }

    /// The recorded state hashes of a branch and its ancestors, up to a head.
    ///
    /// # Errors
    /// The store is damaged or cannot be read.
    pub(crate) fn recorded(
        &self,
        log: &dyn Log,
        branch: BranchId,
        until: Head,
    ) -> Result<Vec<(Head, Hash)>, LogError> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        recorded::read(folder, log, branch, until)
    }

    /// Reads one snapshot file that `found` has named; `None` if it is of another history.
    pub(crate) fn load(
        path: &Path,
        log: &dyn Log,
        branch: BranchId,
        head: Head,
    ) -> Result<Option<State>, FoldError> {
        load(path, log, branch, head, read_state)
    }

    /// Whether a snapshot should be kept now.
    pub(crate) fn is_due(&self, state: &State) -> bool {
        self.folder.is_some() && self.since(state.head) >= EVERY.max(size(state))
    }

    /// Keeps a snapshot of a durable state, if the last one is long ago.
    pub(crate) fn keep(&mut self, log: &dyn Log, branch: BranchId, state: &State, link: Hash) {
        let Some(folder) = &self.folder else { return };
        if self.since(state.head) < LAST_EVERY.max(size(state) / 8) {
            return;
        }
        self.last = state.head;
        let path = folder.join(file_name(branch, state.head));
        // A cache that cannot be kept costs time and nothing else.
        if let Err(error) = write(folder, &path, log.id(), state, link) {
            tracing::warn!(path = %path.display(), %error, "a snapshot was not kept");
        }
    }

    /// What `read` makes of the last snapshot between two heads that the log agrees with, on the
    /// branch or on an ancestor: after the first head, at or before the other.
    fn nearest<T>(
        &self,
        log: &dyn Log,
        branch: BranchId,
        between: (Head, Head),
        read: fn(&[u8]) -> Result<T, FoldError>,
    ) -> Result<Option<T>, LogError> {
        let found = self.found(log, branch, between)?;
        for (head, path) in found.into_iter().rev() {
            match load(&path, log, branch, head, read) {
                Ok(Some(state)) => return Ok(Some(state)),
                Ok(None) => tracing::warn!(path = %path.display(), "a snapshot of another history"),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a snapshot was passed over");
                }
            }
        }
        Ok(None)
    }

    /// Where the snapshots of a branch and its ancestors stand, first to last: after the first
    /// head, at or before the other.
    pub(crate) fn found(
        &self,
        log: &dyn Log,
        branch: BranchId,
        (after, until): (Head, Head),
    ) -> Result<Vec<(Head, PathBuf)>, LogError> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let until = until.min(log.branch(branch)?.tip.head);
        let lineage = Lineage::of(branch, |id| Ok(log.branch(id)?.fork))?;
        let mut found: Vec<(Head, PathBuf)> = Vec::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Some((owner, head)) = parse_name(&entry.file_name().to_string_lossy()) else {
                continue;
            };
            let held = lineage.segments().iter().find(|segment| segment.branch == owner);
            let within = held.is_some_and(|s| s.to.is_none_or(|to| head.next() <= to));
            if within && after < head && head <= until {
                found.push((head, entry.path()));
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// How many events' worth of work it is to keep the world.
fn size(state: &State) -> u64 {
    (state.graph.node_count() + state.graph.edge_count() + state.agenda.len()) as u64
}

fn file_name(branch: BranchId, head: Head) -> String {
    format!("{:010}-{:020}.snap", branch.get(), head.count())
}

fn parse_name(name: &str) -> Option<(BranchId, Head)> {
    let (branch, head) = name.strip_suffix(".snap")?.split_once('-')?;
    Some((BranchId::new(branch.parse().ok()?), Head::of_count(head.parse().ok()?)))
}

/// Writes a snapshot file whole or not at all: magic, log, link, hash of the rest, the rest packed.
fn write(folder: &Path, path: &Path, log: LogId, state: &State, link: Hash) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let (rest, graph) = (state.encode(), state.graph.encode());
    let mut body = (rest.len() as u64).to_le_bytes().to_vec();
    body.extend_from_slice(&rest);
    body.extend_from_slice(&graph);
    let packed = zstd::bulk::compress(&body, 1)?;
    let partial = path.with_extension("partial");
    let mut file = fs::File::create(&partial)?;
    file.write_all(MAGIC)?;
    file.write_all(log.as_bytes())?;
    file.write_all(link.as_bytes())?;
    file.write_all(Hash::of(&packed).as_bytes())?;
    file.write_all(&(body.len() as u64).to_le_bytes())?;
    file.write_all(&packed)?;
    drop(file);
    fs::rename(partial, path)
}

/// Reads a snapshot file; `None` if it is of another log or of another history of this one.
fn load<T>(
    path: &Path,
    log: &dyn Log,
    branch: BranchId,
    head: Head,
    read: fn(&[u8]) -> Result<T, FoldError>,
) -> Result<Option<T>, FoldError> {
    let bad = |what: &str| FoldError::Snapshot { what: what.to_owned() };
    let bytes = fs::read(path).map_err(|error| bad(&error.to_string()))?;
    let rest = bytes.strip_prefix(MAGIC.as_slice()).ok_or_else(|| bad("it is no snapshot"))?;
    let short = || bad("it is cut off");
    let (id, rest) = rest.split_first_chunk::<16>().ok_or_else(short)?;
    let (link, rest) = rest.split_first_chunk::<32>().ok_or_else(short)?;
    let (hash, rest) = rest.split_first_chunk::<32>().ok_or_else(short)?;
    let (length, packed) = rest.split_first_chunk::<8>().ok_or_else(short)?;
    if Hash::of(packed) != Hash::from_bytes(*hash) {
        return Err(bad("its hash is wrong"));
    }
    let same_log = LogId::from_bytes(*id) == log.id();
    if !same_log || log::link_at(log, branch, head)? != Hash::from_bytes(*link) {
        return Ok(None);
    }
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
    let body = zstd::bulk::decompress(packed, length);
    read(&body.map_err(|error| bad(&error.to_string()))?).map(Some)
}

fn parts(body: &[u8]) -> Result<(&[u8], &[u8]), FoldError> {
    let short = || FoldError::Snapshot { what: "it is cut off".to_owned() };
    let (length, rest) = body.split_first_chunk::<8>().ok_or_else(short)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
    rest.split_at_checked(length).ok_or_else(short)
}

fn read_graph(body: &[u8]) -> Result<Graph, FoldError> {
    let (_, graph) = parts(body)?;
    Graph::decode(graph).map_err(|error| FoldError::Snapshot { what: error.to_string() })
}

fn read_state(body: &[u8]) -> Result<State, FoldError> {
    let (rest, _) = parts(body)?;
    State::decode(rest, read_graph(body)?)
}
