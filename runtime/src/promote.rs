//! Promoting: what a branch has become since it left another is brought into that other, all of it
//! or nothing.
//!
//! 1. Facts travel, code and settings do not: behaviors stay with the branch that loaded them.
//! 2. A conflict has a name, both values and both causes; then nothing lands.
//! 3. A match wakes that stood in neither side: what had its say on the branch is quiet here.
//! 4. Keys travel, so nothing takes effect twice.
//! 5. The last event says how far the branch was promoted: the base of the next time.

mod conflict;
mod facts;
mod landing;
mod wakes;

pub use conflict::{Disagreement, Side};
pub(crate) use landing::{is_promoting, keyed_at};
pub(crate) use wakes::quiet_rows;

use std::collections::BTreeSet;
use std::sync::Arc;

use log::{Branch, Event, Head, Lineage, Log, LogError, Offset, Time, read};
use projection::{ElementView, Graph, Pattern, Steps, Wanted, merge};
use smol_str::SmolStr;

use self::conflict::Authors;
use self::facts::Facts;
use self::landing::Landing;
use crate::engine::catching::Past;
use crate::engine::state::State;
use crate::engine::{EngineError, FoldError};
use crate::snapshot::Snapshots;

/// A promotion that is asked for.
#[derive(Debug)]
pub struct Promotion<'p> {
    /// The branch whose changes are promoted.
    pub from: &'p Branch,
    /// The branch that they are brought into.
    pub into: &'p Branch,
    /// Only what this pattern matches on the branch; what it matched before, if that is gone.
    pub only: Option<&'p Pattern>,
    /// Who asks for it.
    pub who: &'p str,
    /// When.
    pub now: Time,
}

/// What a promotion came to, or would.
#[derive(Clone, Debug, PartialEq)]
pub struct Promoted {
    /// How many changes it takes.
    pub changes: usize,
    /// The durable keys that travel.
    pub keys: Vec<String>,
    /// The behaviors that wake, each with the number of its matches.
    pub wakes: Vec<(String, usize)>,
    /// How many matches are quiet, since they had their say on the branch.
    pub quiet: usize,
    /// The events of the branch that were looked at: from here on.
    pub since: Head,
    /// Where the marker stands; none if nothing landed.
    pub landed: Option<Offset>,
}

/// Why a promotion did not land. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PromoteError {
    /// Both sides changed the same, each in its own way.
    #[error("{} conflicts", .0.len())]
    Conflicts(Vec<Disagreement>),
    /// The branches have nothing in common, or it makes no sense otherwise.
    #[error("{0}")]
    Refused(String),
    /// The log, or what it folds into.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<LogError> for PromoteError {
    fn from(error: LogError) -> Self {
        PromoteError::Engine(error.into())
    }
}

impl From<FoldError> for PromoteError {
    fn from(error: FoldError) -> Self {
        PromoteError::Engine(error.into())
    }
}

/// Whether a promotion lands, or is only tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Land {
    /// It lands if there is no conflict; `owner` claims the branch meanwhile.
    Now,
    /// Nothing is written.
    DryRun,
}

/// The two sides of a promotion, and what both were.
struct Sides {
    base: Graph,
    theirs: State,
    ours: State,
    /// How far the branch was promoted before, or where it left.
    since: Head,
    /// Where the lines part.
    common: Head,
    /// How often the branch was promoted before.
    nth: u64,
}

impl Promotion<'_> {
    /// Brings the changes of a branch into another, or says what would happen.
    ///
    /// # Errors
    /// There are conflicts, the branches have nothing in common, another engine runs the branch, or
    /// the log failed.
    pub fn run(
        &self,
        log: &Arc<dyn Log>,
        snapshots: &Snapshots,
        (land, owner): (Land, &str),
    ) -> Result<Promoted, PromoteError> {
        let sides = self.sides(&**log, snapshots)?;
        let facts = Facts::of(&**log, self.from, &sides)?;
        let wanted = self.wanted(&sides)?;
        let open = facts.open_elements(&sides.theirs);
        let merges = |view: ElementView<'_>| {
            facts::travels(view, &open) && wanted.as_ref().is_none_or(|ids| ids.contains(view.id()))
        };
        let by_version = &facts.by_version;
        let asked = Wanted { merges: &merges, by_version };
        let merged = merge(&sides.base, &sides.ours.graph, &sides.theirs.graph, asked);
        let mut authors =
            Authors::between(&**log, (self.from, sides.since), (self.into, sides.common));
        let mut standing = authors.of_merge(&merged.conflicts)?;
        let keys = facts.keys_to_travel(&**log, (self.from, self.into), &mut standing)?;
        facts.clash(&**log, (self.from, self.into), &sides, &mut standing)?;
        let landing = Landing::of(merged.changes, keys);
        let staged = match standing.is_empty() {
            true => landing.stage(self, &sides)?,
            false => return Err(PromoteError::Conflicts(standing)),
        };
        let mut promoted = staged.told(sides.since);
        if land == Land::Now && !staged.is_empty() {
            promoted.landed = Some(staged.land(log, self.into, owner)?);
        }
        Ok(promoted)
    }

    fn sides(&self, log: &dyn Log, snapshots: &Snapshots) -> Result<Sides, PromoteError> {
        if self.from.id == self.into.id {
            return Err(PromoteError::Refused("a branch is not promoted into itself".to_owned()));
        }
        let common = common(log, self.from, self.into)?;
        if common == Head::EMPTY {
            let what =
                format!("{} and {} have no events in common", self.from.name, self.into.name);
            return Err(PromoteError::Refused(what));
        }
        let (marker, nth) = landing::last_marker(log, self.from, self.into)?;
        let since = marker.as_ref().and_then(landing::base_of).unwrap_or(common);
        let mut theirs = snapshots.fold_branch(log, self.from.id, since)?;
        // Told of its hashes here, so that both worlds share what is the same in them.
        let _ = theirs.graph.state_hash();
        let base = theirs.graph.clone();
        let near = since == common && self.into.tip.head.count() - common.count() < FOLD_ON;
        let mut ours = match near {
            true => theirs.clone(),
            false => snapshots.fold_branch(log, self.into.id, self.into.tip.head)?,
        };
        fold_on(&mut ours, log, self.into)?;
        fold_on(&mut theirs, log, self.from)?;
        Ok(Sides { base, theirs, ours, since, common, nth })
    }

    /// The ids of what the pattern means, on the branch and as it was before.
    fn wanted(&self, sides: &Sides) -> Result<Option<BTreeSet<SmolStr>>, PromoteError> {
        let Some(pattern) = self.only else { return Ok(None) };
        let mut ids = BTreeSet::new();
        for graph in [&sides.theirs.graph, &sides.base] {
            let steps = Steps::up_to(u64::MAX);
            let rows = pattern.matches(graph, &[], &sides.theirs.env(None), &steps);
            let bound = rows.unwrap_or_default().into_iter().flat_map(|row| row.bound);
            ids.extend(bound.flat_map(|bound| bound.ids().to_vec()));
        }
        if ids.is_empty() {
            let what = format!("nothing on {} matches the pattern", self.from.name);
            return Err(PromoteError::Refused(what));
        }
        Ok(Some(ids))
    }
}

/// So many events are rather folded on than a snapshot is read.
const FOLD_ON: u64 = 65_536;

fn fold_on(state: &mut State, log: &dyn Log, branch: &Branch) -> Result<(), PromoteError> {
    for event in read(log, branch.id, state.head.next()..branch.tip.head.next())? {
        state.fold(&event?, Past::Of(log, branch.id))?;
    }
    Ok(())
}

/// Where two lines of history part.
fn common(log: &dyn Log, one: &Branch, other: &Branch) -> Result<Head, LogError> {
    let lineage = |branch: &Branch| Lineage::of(branch.id, |id| Ok(log.branch(id)?.fork));
    let (one_line, other_line) = (lineage(one)?, lineage(other)?);
    let end = |to: Option<Offset>, branch: &Branch| to.unwrap_or(branch.tip.head.next()).get();
    let mut shared = 0;
    for (a, b) in one_line.segments().iter().zip(other_line.segments()) {
        if a.branch != b.branch || a.from != b.from {
            break;
        }
        shared = end(a.to, one).min(end(b.to, other));
        if a.to != b.to {
            break;
        }
    }
    Ok(Head::of_count(shared))
}

/// The events of a branch after a head.
fn events_after(log: &dyn Log, branch: &Branch, head: Head) -> Result<Vec<Event>, LogError> {
    read(log, branch.id, head.next()..branch.tip.head.next())?.collect()
}
