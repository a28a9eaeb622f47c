//! Someone who uses a log in every way there is, chosen by a seed, and keeps a ledger of it.

use bytes::Bytes;
use log::{Append, AppendError, Appended, Batch, BranchId, Change, Draft, Head, Log, LogError};
use serde_json::json;

use super::disk::Disk;
use super::ledger::{Ledger, Maybe};
use super::random::Random;
use super::{draft, name};

/// The log has stopped; this is what it said.
#[derive(Debug)]
pub(crate) struct Ended(pub(crate) String);

impl From<LogError> for Ended {
    fn from(error: LogError) -> Self {
        let text = error.to_string();
        assert!(!text.contains("panic"), "{text}");
        Ended(text)
    }
}

/// A user of a log.
pub(crate) struct User<'a> {
    pub(crate) log: &'a dyn Log,
    pub(crate) disk: &'a Disk,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) random: &'a mut Random,
}

impl User<'_> {
    /// Learns what became of the past, and compares all of it.
    pub(crate) fn look_back(&mut self) -> Result<(), Ended> {
        self.ledger.settle(self.log)?;
        Ok(self.ledger.check(self.log)?)
    }

    /// Does so many things.
    pub(crate) fn work(&mut self, steps: u64) -> Result<(), Ended> {
        for _ in 0..steps {
            self.step()?;
        }
        Ok(())
    }

    /// Makes a few branches, forks, events, keys and texts: a little of everything.
    pub(crate) fn use_everything(&mut self) -> Result<(), Ended> {
        self.create()?;
        let main = self.ledger.lines[0].id;
        self.append(main)?;
        self.put_blob()?;
        self.append(main)?;
        self.fork(main)?;
        let fork = self.ledger.lines[1].id;
        self.append(fork)?;
        self.claim(fork)?;
        self.fork(fork)?;
        self.append_here(3)
    }

    /// Appends so many batches, each to the newest branch.
    pub(crate) fn append_here(&mut self, batches: u64) -> Result<(), Ended> {
        for _ in 0..batches {
            let branch = self.ledger.lines.last().expect("there is a branch").id;
            self.append(branch)?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), Ended> {
        if self.ledger.lines.is_empty() {
            return self.create();
        }
        let branch = self.ledger.lines[self.random.place(self.ledger.lines.len())].id;
        match self.random.below(100) {
            0..50 => self.append(branch),
            50..66 => self.append_as_a_group(branch),
            66..74 => self.fork(branch),
            74..78 => self.create(),
            78..84 => self.claim(branch),
            84..89 => self.put_blob(),
            89..95 => self.repeat(branch),
            _ => self.append_in_a_wrong_place(branch),
        }
    }

    fn draft(&mut self) -> Draft {
        self.ledger.drafts += 1;
        let n = self.ledger.drafts;
        let bytes = match self.random.below(100) {
            0..5 => 4097 + self.random.below(6000),
            5..20 => self.random.below(3000),
            _ => self.random.below(80),
        };
        let mut draft = draft(n, &json!({"n": n, "text": self.random.text(bytes)}));
        if self.random.chance(20) {
            draft.key = Some(format!("key {n}").into());
        }
        if self.random.chance(20) {
            draft.changes = vec![Change::Remove { id: format!("thing:{n}").into() }];
        }
        draft
    }

    fn batch(&mut self, expected: Head) -> Batch {
        let events = if self.random.chance(10) { 40 } else { 8 };
        let drafts: Vec<Draft> = (0..=self.random.below(events)).map(|_| self.draft()).collect();
        Batch::of_drafts(expected.next(), &drafts).expect("a test's drafts are in order")
    }

    fn submit(&self, branch: BranchId, expected: Head, batch: &Batch) -> Answer {
        let epoch = self.ledger.line(branch).epoch;
        self.log.submit(Append { branch, batch: batch.clone(), expected, epoch })
    }

    /// Keeps what became of an append.
    fn keep(
        &mut self,
        branch: BranchId,
        expected: Head,
        batch: &Batch,
        answer: Answer,
    ) -> Result<(), Ended> {
        match answer.wait().expect("the log answers") {
            Ok(appended) => {
                self.ledger.batch(branch, expected, batch);
                let line = self.ledger.line(branch);
                assert_eq!((appended.head, appended.link), (line.head(), line.link()));
                Ok(())
            }
            Err(AppendError::Unknown { batch: id, what }) => {
                assert_eq!(id, batch.id(branch, expected), "the unknown batch is named");
                let after = self.log.branch(branch);
                assert!(matches!(after, Err(LogError::Stopped { .. })), "{after:?}");
                self.ledger.maybe.push(Maybe::Batch(branch, expected, batch.clone()));
                Err(LogError::Stopped { what }.into())
            }
            // Then nothing of it was written, which the next comparison finds out.
            Err(AppendError::Log(error @ LogError::Stopped { .. })) => Err(error.into()),
            Err(other) => panic!("nobody else appends: {other}"),
        }
    }

    fn append(&mut self, branch: BranchId) -> Result<(), Ended> {
        let expected = self.ledger.line(branch).head();
        let batch = self.batch(expected);
        let answer = self.submit(branch, expected, &batch);
        self.keep(branch, expected, &batch, answer)
    }

    /// Has several appends wait behind another, so that one commit lands all of them.
    fn append_as_a_group(&mut self, branch: BranchId) -> Result<(), Ended> {
        if self.disk.struck() {
            // The log may have stopped without having told: then nobody comes to the gate.
            return self.append(branch);
        }
        self.disk.shut_gate();
        let mut waiting = Vec::new();
        let mut expected = self.ledger.line(branch).head();
        for nth in 0..2 + self.random.below(4) {
            let batch = self.batch(expected);
            let answer = self.submit(branch, expected, &batch);
            if nth == 0 {
                self.disk.wait_for_someone();
            }
            let after = expected.plus(batch.len() as u64);
            waiting.push((expected, batch, answer));
            expected = after;
        }
        self.disk.open_gate();
        let mut ended = Ok(());
        for (expected, batch, answer) in waiting {
            let kept = self.keep(branch, expected, &batch, answer);
            ended = ended.and(kept);
        }
        ended
    }

    fn create(&mut self) -> Result<(), Ended> {
        let name = name(&format!("branch-{}", self.ledger.lines.len()));
        match self.log.create(&name) {
            Ok(branch) => self.ledger.branch(&branch, None),
            Err(error) => {
                self.ledger.maybe.push(Maybe::Branch(name, None));
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn fork(&mut self, parent: BranchId) -> Result<(), Ended> {
        let name = name(&format!("branch-{}", self.ledger.lines.len()));
        let events = self.ledger.line(parent).events.len() as u64;
        let cut = Head::of_count(self.random.below(events + 1));
        match self.log.fork(parent, cut, &name, "") {
            Ok(branch) => self.ledger.branch(&branch, Some((parent, cut))),
            Err(error) => {
                self.ledger.maybe.push(Maybe::Branch(name, Some((parent, cut))));
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn claim(&mut self, branch: BranchId) -> Result<(), Ended> {
        match self.log.claim(branch, "a test") {
            Ok(claim) => {
                self.ledger.epoch(branch, claim.epoch);
                self.log.release(branch, claim.epoch);
                Ok(())
            }
            Err(error) => {
                self.ledger.maybe.push(Maybe::Epoch(branch));
                Err(error.into())
            }
        }
    }

    fn put_blob(&mut self) -> Result<(), Ended> {
        let bytes = 1 + self.random.below(20_000);
        let bytes = Bytes::from(self.random.text(bytes));
        self.log.put_blob(bytes.clone())?;
        self.ledger.blob(bytes);
        Ok(())
    }

    /// Sends an event with a key again, alone.
    fn repeat(&mut self, branch: BranchId) -> Result<(), Ended> {
        let line = self.ledger.line(branch);
        let keyed: Vec<_> = line.events.iter().filter(|event| event.key().is_some()).collect();
        if keyed.is_empty() {
            return self.append(branch);
        }
        let again = keyed[self.random.place(keyed.len())].clone();
        let head = line.head();
        let batch = Batch::of_drafts(head.next(), &[again.to_draft()]).expect("it was stored");
        match self.submit(branch, head, &batch).wait().expect("the log answers") {
            Ok(Appended { head: now, landed, .. }) => {
                assert_eq!((now, landed.len()), (head, 1), "nothing is written");
                assert_eq!((landed[0].offset, landed[0].repeated), (again.offset(), true));
                Ok(())
            }
            Err(AppendError::Unknown { what, .. }) => Err(LogError::Stopped { what }.into()),
            Err(AppendError::Log(error)) => Err(error.into()),
            Err(other) => panic!("it has the same content: {other}"),
        }
    }

    fn append_in_a_wrong_place(&mut self, branch: BranchId) -> Result<(), Ended> {
        let head = self.ledger.line(branch).head();
        let wrong = head.plus(1 + self.random.below(3));
        let batch = self.batch(wrong);
        match self.submit(branch, wrong, &batch).wait().expect("the log answers") {
            Ok(appended) => panic!("it landed in a wrong place: {appended:?}"),
            Err(AppendError::TailMoved { actual, .. }) => {
                assert_eq!(actual, head);
                Ok(())
            }
            Err(AppendError::Unknown { what, .. }) => Err(LogError::Stopped { what }.into()),
            Err(AppendError::Log(error)) => Err(error.into()),
            Err(other) => panic!("the place is wrong: {other}"),
        }
    }
}

type Answer = log::Pending<Result<Appended, AppendError>>;
