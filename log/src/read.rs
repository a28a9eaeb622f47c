//! Reading a branch: its events in order, through its ancestors, each checked against the hash
//! chain.

use std::collections::VecDeque;
use std::ops::Range;

use crate::block::Block;
use crate::branch::Lineage;
use crate::chain::{self, genesis};
use crate::error::{Corruption, LogError};
use crate::event::Event;
use crate::id::{BatchId, BranchId, Hash, Head, Offset};
use crate::log::Log;

/// About how many stored bytes are fetched at once.
const FETCH_BYTES: usize = 1 << 18;

/// The events of a stretch of a branch, in order. After an error it ends.
#[derive(Debug)]
pub struct Events<'log> {
    log: &'log dyn Log,
    branch: BranchId,
    lineage: Lineage,
    next: Offset,
    end: Offset,
    ready: VecDeque<Event>,
    chain: ChainCheck,
}

/// Reads `range` of a branch; what lies beyond its head is left out.
///
/// # Errors
/// There is no such branch, or the store cannot be read. Damage is found while reading.
pub fn read(log: &dyn Log, branch: BranchId, range: Range<Offset>) -> Result<Events<'_>, LogError> {
    let head = log.branch(branch)?.tip.head;
    let end = range.end.min(head.next());
    let lineage = Lineage::of(branch, |id| Ok(log.branch(id)?.fork))?;
    let chain = ChainCheck { link: None };
    let ready = VecDeque::new();
    Ok(Events { log, branch, lineage, next: range.start, end, ready, chain })
}

/// Reads a whole branch.
///
/// # Errors
/// As `read`.
pub fn read_all(log: &dyn Log, branch: BranchId) -> Result<Events<'_>, LogError> {
    read(log, branch, Offset::ZERO..Offset::new(u64::MAX))
}

/// Events that a stretch has at least, if reading it ahead is worth a thread.
const AHEAD_MIN: u64 = 4_096;
/// How many fetches may be ready before the one that is being looked at is done with.
const AHEAD_FETCHES: usize = 4;

/// Reads `range` of a branch as `read` does, and hands its events on in order, some at a time. A
/// long stretch is fetched, decoded and checked on a thread of its own, ahead of `each`.
///
/// # Errors
/// The store is damaged or cannot be read, or `each` failed; what it was handed before was sound.
pub fn read_ahead<E: From<LogError>>(
    log: &dyn Log,
    branch: BranchId,
    range: Range<Offset>,
    mut each: impl FnMut(&[Event]) -> Result<(), E>,
) -> Result<(), E> {
    let mut events = read(log, branch, range)?;
    if events.next >= events.end || events.next.distance_to(events.end) < AHEAD_MIN {
        while let Some(some) = events.next_fetch()? {
            each(&some)?;
        }
        return Ok(());
    }
    std::thread::scope(|scope| {
        let (ready, fetched) = std::sync::mpsc::sync_channel(AHEAD_FETCHES);
        scope.spawn(move || {
            while let Some(some) = events.next_fetch().transpose() {
                let last = some.is_err();
                // Whoever looks at them may have seen enough.
                if ready.send(some).is_err() || last {
                    return;
                }
            }
        });
        fetched.into_iter().try_for_each(|some| each(&some?))
    })
}

/// Reads one event.
///
/// # Errors
/// There is none at this offset, or it is damaged.
pub fn read_one(log: &dyn Log, branch: BranchId, offset: Offset) -> Result<Event, LogError> {
    let head = log.branch(branch)?.tip.head;
    let beyond = LogError::BeyondHead { branch, head, asked: Head::after(offset) };
    read(log, branch, offset..offset.plus(1))?.next().unwrap_or(Err(beyond))
}

/// The link of the last event before `head`: what a snapshot taken there has to agree with.
///
/// # Errors
/// The branch does not reach so far, or the store is damaged or cannot be read.
pub fn link_at(log: &dyn Log, branch: BranchId, head: Head) -> Result<Hash, LogError> {
    let Some(last) = head.last() else { return Ok(genesis()) };
    let reached = log.branch(branch)?.tip.head;
    if head > reached {
        return Err(LogError::BeyondHead { branch, head: reached, asked: head });
    }
    let blocks = log.blocks(branch, last, 1)?;
    let block = blocks.first().expect("a block holds every offset below the head");
    let events = block.events()?;
    block.verify(&events)?;
    let before = events.iter().take_while(|event| event.offset() <= last);
    Ok(before.fold(block.before, |link, event| chain::link(&link, event.offset(), &event.digest())))
}

/// Where a batch landed, if it did: how a writer learns what became of an append whose answer was
/// lost. Gives the head after it.
///
/// # Errors
/// The store cannot be read.
pub fn find_batch(
    log: &dyn Log,
    branch: BranchId,
    expected: Head,
    batch: BatchId,
) -> Result<Option<Head>, LogError> {
    let mut landed = None;
    let mut at = expected;
    while at < log.branch(branch)?.tip.head {
        let blocks = log.blocks(branch, at.next(), FETCH_BYTES)?;
        for block in &blocks {
            if block.batch != batch || block.first < expected.next() {
                return Ok(landed);
            }
            at = block.head();
            landed = Some(at);
        }
    }
    Ok(landed)
}

/// Checks a whole branch: every event's form, every link of the chain, and the tip. Gives the
/// number of events and the link of the last.
///
/// # Errors
/// The first damage, with its offset.
pub fn verify(log: &dyn Log, branch: BranchId) -> Result<(Head, Hash), LogError> {
    let tip = log.branch(branch)?.tip;
    let mut events = read(log, branch, Offset::ZERO..tip.head.next())?;
    let mut head = Head::EMPTY;
    for event in events.by_ref() {
        head = Head::after(event?.offset());
    }
    let link = events.chain.link.unwrap_or_else(genesis);
    if head == tip.head && link == tip.link {
        return Ok((head, link));
    }
    let what = format!("the branch says it ends at {} with another hash", tip.head);
    Err(Corruption { branch, offset: head.next(), what }.into())
}

impl Iterator for Events<'_> {
    type Item = Result<Event, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(event) = self.ready.pop_front() {
            return Some(Ok(event));
        }
        if self.next >= self.end {
            return None;
        }
        match self.fetch() {
            Ok(()) => self.ready.pop_front().map(Ok),
            Err(error) => {
                self.end = self.next;
                Some(Err(error))
            }
        }
    }
}

impl Events<'_> {
    /// The events of one more fetch; `None` at the end.
    fn next_fetch(&mut self) -> Result<Option<Vec<Event>>, LogError> {
        while self.ready.is_empty() {
            if self.next >= self.end {
                return Ok(None);
            }
            self.fetch()?;
        }
        Ok(Some(std::mem::take(&mut self.ready).into()))
    }

    fn fetch(&mut self) -> Result<(), LogError> {
        for block in self.log.blocks(self.branch, self.next, FETCH_BYTES)? {
            if self.next >= self.end {
                break;
            }
            let segment = self.lineage.owner(self.next);
            let stop = segment.to.map_or(self.end, |to| to.min(self.end));
            let events = block.events()?;
            self.chain.follow(&block, &events, segment.to.zip(segment.link))?;
            let wanted =
                events.into_iter().filter(|event| (self.next..stop).contains(&event.offset()));
            self.ready.extend(wanted);
            self.next = block.head().next().min(stop);
        }
        Ok(())
    }
}

/// Follows the chain from block to block.
#[derive(Debug)]
struct ChainCheck {
    /// The link of the last event that was read; none before the first block.
    link: Option<Hash>,
}

impl ChainCheck {
    /// Checks that `block` continues the chain, and that a fork was cut where it says.
    fn follow(
        &mut self,
        block: &Block,
        events: &[Event],
        cut: Option<(Offset, Hash)>,
    ) -> Result<(), Corruption> {
        let bad = |offset: Offset, what: &str| {
            Err(Corruption { branch: block.branch, offset, what: what.to_owned() })
        };
        let starts = block.first == Offset::ZERO;
        let expected = if starts { Some(genesis()) } else { self.link };
        if expected.is_some_and(|expected| expected != block.before) {
            return bad(block.first, "does not continue the chain of the events before it");
        }
        block.verify(events)?;
        self.link = Some(block.after);
        let Some((to, cut_link)) = cut.filter(|(to, _)| *to <= block.head().next()) else {
            return Ok(());
        };
        let mut link = block.before;
        for event in events.iter().take_while(|event| event.offset() < to) {
            link = chain::link(&link, event.offset(), &event.digest());
        }
        if link != cut_link {
            return bad(to, "the fork made here remembers another hash");
        }
        self.link = Some(link);
        Ok(())
    }
}
