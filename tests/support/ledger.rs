//! What a log has acknowledged, kept beside it, so that nothing it forgets goes unnoticed.
//!
//! The ledger computes the hash chain itself. What was asked for and never answered may have
//! happened or not; `settle` asks the log which, and `check` finds out whether it told the truth.

use bytes::Bytes;
use log::{
    Batch, BatchId, Branch, BranchId, BranchName, Epoch, Event, Hash, Head, Log, LogError, Offset,
    ValueRef, find_batch, genesis, link, read_all, verify,
};

/// One branch, its ancestors' events included.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) id: BranchId,
    pub(crate) name: BranchName,
    pub(crate) fork: Option<(BranchId, Head)>,
    pub(crate) events: Vec<Event>,
    pub(crate) links: Vec<Hash>,
    pub(crate) epoch: Epoch,
    /// Where each batch was to land, its id, and the head after it.
    batches: Vec<(Head, BatchId, Head)>,
}

impl Line {
    pub(crate) fn head(&self) -> Head {
        Head::of_count(self.events.len() as u64)
    }

    pub(crate) fn link(&self) -> Hash {
        self.links.last().copied().unwrap_or_else(genesis)
    }
}

/// What may have happened.
#[derive(Clone, Debug)]
pub(crate) enum Maybe {
    Batch(BranchId, Head, Batch),
    Branch(BranchName, Option<(BranchId, Head)>),
    Epoch(BranchId),
}

/// Everything that a log has acknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) lines: Vec<Line>,
    pub(crate) blobs: Vec<(Hash, Bytes)>,
    pub(crate) maybe: Vec<Maybe>,
    /// How many drafts were ever made, so that no two are alike.
    pub(crate) drafts: u64,
}

impl Ledger {
    pub(crate) fn line(&self, branch: BranchId) -> &Line {
        &self.lines[branch.get() as usize]
    }

    /// A branch was made.
    pub(crate) fn branch(&mut self, branch: &Branch, fork: Option<(BranchId, Head)>) {
        assert_eq!(branch.id.get() as usize, self.lines.len(), "branches are numbered in order");
        let (mut events, mut links) = (Vec::new(), Vec::new());
        if let Some((parent, cut)) = fork {
            let cut = cut.count() as usize;
            events.extend_from_slice(&self.line(parent).events[..cut]);
            links.extend_from_slice(&self.line(parent).links[..cut]);
        }
        let (id, name, epoch) = (branch.id, branch.name.clone(), branch.tip.epoch);
        self.lines.push(Line { id, name, fork, events, links, epoch, batches: Vec::new() });
    }

    /// A branch was claimed.
    pub(crate) fn epoch(&mut self, branch: BranchId, epoch: Epoch) {
        let line = &mut self.lines[branch.get() as usize];
        assert!(epoch > line.epoch, "{epoch} is later than {}", line.epoch);
        line.epoch = epoch;
    }

    /// A batch landed.
    pub(crate) fn batch(&mut self, branch: BranchId, expected: Head, batch: &Batch) {
        let line = &mut self.lines[branch.get() as usize];
        assert_eq!(line.head(), expected, "a batch lands at its place");
        for event in batch.events() {
            let after = link(&line.link(), event.offset(), &event.digest());
            line.links.push(after);
            line.events.push(event.clone());
        }
        line.batches.push((expected, batch.id(branch, expected), line.head()));
    }

    /// A text was stored, alone or with its event.
    pub(crate) fn blob(&mut self, bytes: Bytes) {
        self.blobs.push((Hash::of(&bytes), bytes));
    }

    /// Asks the log what became of everything that was not answered.
    pub(crate) fn settle(&mut self, log: &dyn Log) -> Result<(), LogError> {
        let branches = log.branches()?;
        while let Some(maybe) = self.maybe.first().cloned() {
            match &maybe {
                Maybe::Batch(branch, expected, batch) => {
                    let found = find_batch(log, *branch, *expected, batch.id(*branch, *expected))?;
                    if let Some(head) = found {
                        self.batch(*branch, *expected, batch);
                        assert_eq!(head, self.line(*branch).head(), "a batch lands whole");
                    }
                }
                Maybe::Branch(name, fork) => {
                    if let Some(branch) = branches.iter().find(|branch| branch.name == *name) {
                        self.branch(branch, *fork);
                    }
                }
                Maybe::Epoch(branch) => {
                    let found = branches[branch.get() as usize].tip.epoch;
                    let line = &mut self.lines[branch.get() as usize];
                    assert!(found == line.epoch || found == line.epoch.next(), "{found}");
                    line.epoch = found;
                }
            }
            self.maybe.remove(0);
        }
        Ok(())
    }

    /// Compares everything in the log with what it has acknowledged.
    pub(crate) fn check(&self, log: &dyn Log) -> Result<(), LogError> {
        let branches = log.branches()?;
        assert_eq!(branches.len(), self.lines.len(), "branches");
        for (line, branch) in self.lines.iter().zip(&branches) {
            let fork = branch.fork.as_ref().map(|fork| (fork.parent, fork.cut));
            assert_eq!((&line.name, line.fork), (&branch.name, fork));
            let tip = (branch.tip.head, branch.tip.link, branch.tip.epoch);
            assert_eq!(tip, (line.head(), line.link(), line.epoch), "the tip of {}", line.name);
            let events = read_all(log, line.id)?.collect::<Result<Vec<_>, _>>()?;
            assert_eq!(events.len(), line.events.len(), "the events of {}", line.name);
            for (found, known) in events.iter().zip(&line.events) {
                assert_eq!(found, known, "an event of {}", line.name);
            }
            assert_eq!(verify(log, line.id)?, (line.head(), line.link()));
            self.check_names(log, line)?;
        }
        for (hash, bytes) in &self.blobs {
            assert_eq!(log.blob(hash)?.as_ref(), Some(bytes), "the blob {hash}");
        }
        Ok(())
    }

    /// Compares keys, batches and the links inside the chain.
    fn check_names(&self, log: &dyn Log, line: &Line) -> Result<(), LogError> {
        for event in &line.events {
            if let Some(key) = event.key() {
                assert_eq!(log.find_key(line.id, key)?, Some(event.offset()), "the key {key}");
            }
        }
        for event in &line.events {
            if let Some(ValueRef::Blob(blob)) = event.payload().get("text") {
                assert!(log.blob(&blob.hash)?.is_some(), "a text of {event:?}");
            }
        }
        for (expected, batch, head) in &line.batches {
            assert_eq!(find_batch(log, line.id, *expected, *batch)?, Some(*head));
        }
        if line.head() > Head::EMPTY {
            for block in log.blocks(line.id, Offset::ZERO, usize::MAX)? {
                let last = block.head().last().expect("a block holds events").get() as usize;
                // A fork may have been cut inside the block.
                if line.id == block.branch {
                    assert_eq!(block.after, line.links[last], "the link after {last}");
                }
            }
        }
        Ok(())
    }
}
