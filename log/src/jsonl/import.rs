//! Lines into a branch, event for event, so that it ends with the hash of the branch they came
//! from.
//!
//! An import that was interrupted is run again: what is there already is compared, not repeated.

use std::collections::HashMap;
use std::io::{BufRead, Read as _};

use smol_str::SmolStr;

use super::read::{LineError, place, read_line};
use super::{LINE_MAX, LogError};
use crate::batch::Batch;
use crate::error::AppendError;
use crate::event::{Draft, Event};
use crate::id::{BranchId, Hash, Head, Offset};
use crate::log::{Append, Appended, Claim, Log, Pending};
use crate::read::{Events, read};

/// A batch is sent when it holds so many events, or texts of about so many bytes.
const BATCH_EVENTS: usize = 1000;
const BATCH_BYTES: usize = 4 << 20;

/// Why an import stopped. What came before the line is kept, and running it again goes on there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are facts named by the message that shows them")]
pub enum ImportError {
    #[error(transparent)]
    Line(#[from] LineError),
    #[error(
        "line {line}: has offset {found} where {expected} comes next; lines hold consecutive \
         offsets, and the first continues the branch or repeats a part of it"
    )]
    Gap { line: u64, expected: Offset, found: Offset },
    #[error(
        "line {line}: offset {offset} of the branch holds another event, so this is not its \
         export; import into another branch"
    )]
    Differs { line: u64, offset: Offset },
    #[error("line {line}: the key `{key}` stands at offset {first} already; a key stands once")]
    KeyTwice { line: u64, key: SmolStr, first: Offset },
    #[error("the lines cannot be read")]
    Input(#[source] std::io::Error),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Log(#[from] LogError),
}

/// What an import did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Events that were there already.
    pub found: u64,
    /// Events that were appended.
    pub appended: u64,
    /// The head of the branch now.
    pub head: Head,
    /// The link of its last event.
    pub link: Hash,
}

/// Appends the events of an export to a branch, keeping ids, `taken`, times and salts. `owner` says
/// who claims the branch meanwhile; `progress` is told each durable head.
///
/// # Errors
/// A line is malformed, out of order or not what the branch holds, or the log refuses it.
pub fn import(
    log: &dyn Log,
    branch: BranchId,
    lines: &mut dyn BufRead,
    owner: &str,
    progress: &mut dyn FnMut(Head),
) -> Result<Imported, ImportError> {
    let claim = log.claim(branch, owner)?;
    let epoch = claim.epoch;
    let done = Importer::new(log, branch, claim, progress).and_then(|import| import.run(lines));
    log.release(branch, epoch);
    done
}

struct Importer<'a> {
    log: &'a dyn Log,
    branch: BranchId,
    claim: Claim,
    progress: &'a mut dyn FnMut(Head),
    /// The head of the branch when the import began.
    start: Head,
    /// The events that were there, as far as they are not compared yet.
    there: Option<Events<'a>>,
    found: u64,
    /// The offset the next line has to have, once the first has set it.
    next: Option<Offset>,
    batch: Batch,
    bytes: usize,
    /// The keys of the batch, and the lines they come from.
    keys: HashMap<SmolStr, (Offset, u64)>,
    in_flight: Option<Pending<Result<Appended, AppendError>>>,
}

impl<'a> Importer<'a> {
    fn new(
        log: &'a dyn Log,
        branch: BranchId,
        claim: Claim,
        progress: &'a mut dyn FnMut(Head),
    ) -> Result<Self, ImportError> {
        let start = log.branch(branch)?.tip.head;
        Ok(Importer {
            log,
            branch,
            claim,
            progress,
            start,
            there: None,
            found: 0,
            next: None,
            batch: Batch::new(),
            bytes: 0,
            keys: HashMap::new(),
            in_flight: None,
        })
    }

    fn run(mut self, lines: &mut dyn BufRead) -> Result<Imported, ImportError> {
        let taken = self.take_lines(lines);
        // What came before a malformed line is good, and the next try need not repeat it.
        let sent = self.send().and_then(|()| self.settle());
        taken?;
        sent?;
        let tip = self.log.branch(self.branch)?.tip;
        let appended = self.start.next().distance_to(tip.head.next());
        Ok(Imported { found: self.found, appended, head: tip.head, link: tip.link })
    }

    fn take_lines(&mut self, lines: &mut dyn BufRead) -> Result<(), ImportError> {
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            let mut limited = lines.take(LINE_MAX as u64 + 1);
            if limited.read_until(b'\n', &mut text).map_err(ImportError::Input)? == 0 {
                break;
            }
            let bad = |column, what: &str| LineError { line, column, what: what.to_owned() };
            if text.len() > LINE_MAX {
                return Err(bad(LINE_MAX + 1, "longer than 256 MiB, the limit of a line").into());
            }
            let text = str::from_utf8(&text)
                .map_err(|error| bad(error.valid_up_to() + 1, "not UTF-8 from here on"))?;
            if !text.trim().is_empty() {
                let (offset, draft) = read_line(text, line)?;
                self.take_event(text, line, offset, &draft)?;
            }
        }
        Ok(())
    }

    fn take_event(
        &mut self,
        text: &str,
        line: u64,
        offset: Offset,
        draft: &Draft,
    ) -> Result<(), ImportError> {
        self.check_place(line, offset)?;
        let (event, blobs) =
            Event::encode(draft, offset).map_err(|error| place(text, line, &error))?;
        self.next = Some(offset.plus(1));
        if offset < self.start.next() {
            return self.compare(line, &event);
        }
        if let Some(key) = &draft.key {
            let known = self.keys.get(key).map(|(offset, _)| *offset);
            if let Some(first) = known {
                return Err(ImportError::KeyTwice { line, key: key.clone(), first });
            }
            self.keys.insert(key.clone(), (offset, line));
        }
        self.bytes += event.record().len();
        self.bytes += blobs.given.iter().map(|(_, text)| text.len()).sum::<usize>();
        self.batch.push(event, blobs);
        if self.batch.len() >= BATCH_EVENTS || self.bytes >= BATCH_BYTES {
            self.send()?;
        }
        Ok(())
    }

    fn check_place(&self, line: u64, found: Offset) -> Result<(), ImportError> {
        let end = self.start.next();
        let fits = self.next.map_or(found <= end, |next| found == next);
        let expected = self.next.unwrap_or(end);
        if fits { Ok(()) } else { Err(ImportError::Gap { line, expected, found }) }
    }

    fn compare(&mut self, line: u64, event: &Event) -> Result<(), ImportError> {
        let offset = event.offset();
        let there = match &mut self.there {
            Some(there) => there,
            unread => unread.insert(read(self.log, self.branch, offset..self.start.next())?),
        };
        let same = there.next().transpose()?.is_some_and(|known| known == *event);
        if !same {
            return Err(ImportError::Differs { line, offset });
        }
        self.found += 1;
        Ok(())
    }

    /// Hands the batch over, once the one before it has landed: meanwhile the next is being read.
    fn send(&mut self) -> Result<(), ImportError> {
        self.settle()?;
        let Some(first) = self.batch.events().next() else { return Ok(()) };
        let expected = Head::of_count(first.offset().get());
        for (key, (_, line)) in self.keys.drain() {
            if let Some(first) = self.log.find_key(self.branch, &key)? {
                return Err(ImportError::KeyTwice { line, key, first });
            }
        }
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        let append = Append { branch: self.branch, batch, expected, epoch: self.claim.epoch };
        self.in_flight = Some(self.log.submit(append));
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ImportError> {
        // The branch is being written as a whole; events from outside have to wait.
        while let Ok(delivery) = self.claim.inbox.try_recv() {
            let owner = "an import".to_owned();
            let refusal = LogError::Claimed { branch: self.branch, owner };
            drop(delivery.answer.send(Err(refusal.into())));
        }
        let Some(pending) = self.in_flight.take() else { return Ok(()) };
        let stopped = || LogError::Stopped { what: "it went away during the import".to_owned() };
        let appended = pending.wait().ok_or_else(stopped)??;
        (self.progress)(appended.head);
        Ok(())
    }
}
