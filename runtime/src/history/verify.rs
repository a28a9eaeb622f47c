//! Verifying a branch: it is folded from its first event, with every link of its chain checked, and
//! every recorded state hash and every snapshot on the way is compared with the fold.

use std::path::PathBuf;

use log::{BranchId, Corruption, Hash, Head, Log, LogError, link_at};

use crate::engine::FoldError;
use crate::engine::catching::Past;
use crate::engine::state::State;
use crate::snapshot::Snapshots;

/// What was found sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The events before `head.next()` were folded.
    pub head: Head,
    /// The link of the last of them.
    pub link: Hash,
    /// The hash of the world that they fold into.
    pub state: Hash,
    /// How many recorded state hashes agree.
    pub states: u64,
    /// How many snapshots agree.
    pub snapshots: u64,
}

/// What is not sound about a branch or what is kept beside it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are facts named by the message that shows them")]
pub enum Unsound {
    #[error(transparent)]
    Fold(#[from] FoldError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(
        "@{head}: the events fold into a world with the state hash {folded}, and {recorded} was \
         recorded when they were written: this program folds them otherwise"
    )]
    State { head: Head, folded: Hash, recorded: Hash },
    #[error("@{head}: the snapshot {path} {what}; delete it, the log holds everything")]
    Snapshot { head: Head, path: PathBuf, what: String },
}

/// Folds a branch up to a head and checks all there is to check.
///
/// # Errors
/// The first thing that is not sound, with its offset.
pub fn verify(
    log: &dyn Log,
    snapshots: &Snapshots,
    branch: BranchId,
    cut: Head,
) -> Result<Verified, Unsound> {
    let states = snapshots.recorded(log, branch, cut)?;
    let files = snapshots.found(log, branch, (Head::EMPTY, cut))?;
    let mut state = State::default();
    let mut verified =
        Verified { head: cut, link: Hash::ZERO, state: Hash::ZERO, states: 0, snapshots: 0 };
    let mut stops: Vec<Head> = states.iter().map(|(head, _)| *head).collect();
    stops.extend(files.iter().map(|(head, _)| *head).chain([cut]));
    stops.sort_unstable();
    stops.dedup();
    for stop in stops {
        state = Snapshots::none().fold_on(state, log, branch, stop)?;
        for (head, recorded) in states.iter().filter(|(head, _)| *head == stop) {
            let (folded, recorded, head) = (state.graph.state_hash(), *recorded, *head);
            if folded != recorded {
                return Err(Unsound::State { head, folded, recorded });
            }
            verified.states += 1;
        }
        for (head, path) in files.iter().filter(|(head, _)| *head == stop) {
            let unsound =
                |what: String| Unsound::Snapshot { head: *head, path: path.clone(), what };
            let kept = Snapshots::load(path, log, branch, *head);
            let kept = kept.map_err(|error| unsound(format!("cannot be read: {error}")))?;
            // One of another history is never used.
            let Some(kept) = kept else { continue };
            if !same(&kept, &state, Past::Of(log, branch))? {
                return Err(unsound("is not what the events before it fold into".to_owned()));
            }
            verified.snapshots += 1;
        }
    }
    verified.state = state.graph.state_hash();
    verified.link = link_at(log, branch, cut)?;
    let tip = log.branch(branch)?.tip;
    if tip.head == cut && tip.link != verified.link {
        let what = "the branch says that it ends with another hash".to_owned();
        return Err(LogError::from(Corruption { branch, offset: cut.next(), what }).into());
    }
    Ok(verified)
}

/// Whether a snapshot is what a fold gives. It may have been kept after firings that emitted
/// nothing, of which the log says nothing yet.
fn same(kept: &State, folded: &State, past: Past<'_>) -> Result<bool, FoldError> {
    let mut folded = folded.clone();
    while folded.taken < kept.taken {
        if folded.take(past)?.is_none() {
            return Ok(false);
        }
    }
    Ok(kept.graph.encode() == folded.graph.encode() && kept.encode() == folded.encode())
}
