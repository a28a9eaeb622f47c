//! Branches share their prefix: a fork is one record, and reading it reads through to its
//! ancestors.

use serde::{Deserialize, Serialize};

use crate::error::LogError;
use crate::id::{BranchId, BranchName, Epoch, Hash, Head, Offset};

/// What a fork is: nothing but where it was cut from its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkPoint {
    /// The branch it was cut from.
    pub parent: BranchId,
    /// The events it shares with its parent: all before `cut.next()`.
    pub cut: Head,
    /// The link of the last shared event.
    pub link: Hash,
    /// How outside answers are served to the fork, in the runtime's words; empty for the default.
    pub serving: String,
}

/// A branch as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// Its number, which never changes.
    pub id: BranchId,
    /// Its name.
    pub name: BranchName,
    /// Where it was cut from its parent, if it was.
    pub fork: Option<ForkPoint>,
    /// How far it reaches, durably.
    pub tip: Tip,
}

/// The durable end of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tip {
    /// How far it reaches.
    pub head: Head,
    /// The link of its last event.
    pub link: Hash,
    /// The latest claim.
    pub epoch: Epoch,
    /// Activations taken up to its last event.
    pub taken: u64,
}

/// Which branch owns which offsets of a line of history: the branch asked for last, the root first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    segments: Vec<Segment>,
}

/// The offsets `from..to` of a line of history, owned by one branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The branch that owns them.
    pub branch: BranchId,
    /// The first offset.
    pub from: Offset,
    /// The offset after the last one; the branch's own end is open.
    pub to: Option<Offset>,
    /// The link of the event before `to`, where there is one.
    pub link: Option<Hash>,
}

impl Lineage {
    /// Follows the forks from `branch` to the root.
    ///
    /// # Errors
    /// What `find` returns, and damage where a fork names a parent that is not there.
    pub fn of(
        branch: BranchId,
        mut find: impl FnMut(BranchId) -> Result<Option<ForkPoint>, LogError>,
    ) -> Result<Lineage, LogError> {
        let mut segments = vec![Segment { branch, from: Offset::ZERO, to: None, link: None }];
        let mut at = branch;
        let mut end = None::<(Head, Hash)>;
        while let Some(fork) = find(at)? {
            assert!(fork.parent < at, "a parent is older than its forks");
            let last = segments.last_mut().expect("there is one segment at least");
            last.from = fork.cut.next();
            // A fork of a fork may be cut below its parent's own events.
            let (cut, link) = match end {
                Some((cut, link)) if cut < fork.cut => (cut, link),
                _ => (fork.cut, fork.link),
            };
            end = Some((cut, link));
            segments.push(Segment {
                branch: fork.parent,
                from: Offset::ZERO,
                to: Some(cut.next()),
                link: Some(link),
            });
            at = fork.parent;
        }
        segments.reverse();
        segments.retain(|segment| segment.to.is_none_or(|to| segment.from < to));
        Ok(Lineage { segments })
    }

    /// The segments, oldest first.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The segment that holds `offset`.
    #[must_use]
    pub fn owner(&self, offset: Offset) -> Segment {
        let holds = |segment: &&Segment| segment.to.is_none_or(|to| offset < to);
        *self.segments.iter().find(holds).expect("the last segment is open")
    }
}
