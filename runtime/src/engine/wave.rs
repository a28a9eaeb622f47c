//! Waves: cascades run in memory and become durable in atomic batches, in order, while the engine
//! goes on.
//!
//! Where one batch ends and the next begins leaves no trace in what is hashed. A batch never splits
//! a firing. Once a batch fails, or its outcome is unknown, nothing after it is sent.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use log::{Append, AppendError, Appended, Batch, Blobs, BranchId, Epoch, Event, Hash, Head, Log};
use log::{LogError, Pending, Tip};
use smol_str::SmolStr;

use super::fire::Keys;
use crate::promote::keyed_at;

/// How many events a wave holds before it is sent.
pub(crate) const WAVE_EVENTS: usize = 2048;
/// How many waves may be on their way to the disk.
const IN_FLIGHT_MAX: usize = 4;

/// The events that landed in memory and are not durable yet.
#[derive(Debug)]
pub(crate) struct Wave {
    log: Arc<dyn Log>,
    branch: BranchId,
    epoch: Epoch,
    /// What was handed to the writer ends here.
    sent: Head,
    durable: Head,
    /// The link of the last durable event.
    link: Hash,
    batch: Batch,
    in_flight: VecDeque<Pending<Result<Appended, AppendError>>>,
    /// The keyed events that the log may not know yet.
    keys: HashMap<SmolStr, Event>,
    /// The texts that the log may not know yet, by hash.
    texts: HashMap<Hash, Bytes>,
    limit: usize,
}

impl Wave {
    pub(crate) fn new(log: Arc<dyn Log>, branch: BranchId, epoch: Epoch, tip: &Tip) -> Self {
        Wave {
            log,
            branch,
            epoch,
            sent: tip.head,
            durable: tip.head,
            link: tip.link,
            batch: Batch::new(),
            in_flight: VecDeque::new(),
            keys: HashMap::new(),
            texts: HashMap::new(),
            limit: WAVE_EVENTS,
        }
    }

    /// Sends a wave once it holds so many events.
    pub(crate) fn limit(&mut self, events: usize) {
        assert!(events > 0, "a wave holds an event");
        self.limit = events;
    }

    pub(crate) fn push(&mut self, event: Event, blobs: Blobs) {
        if let Some(key) = event.key() {
            self.keys.insert(key.into(), event.clone());
        }
        self.texts.extend(blobs.given.iter().cloned());
        self.batch.push(event, blobs);
    }

    /// A long text by its hash, durable or not.
    pub(crate) fn text(&self, hash: &str) -> Option<String> {
        text_in(&self.texts, Some(&*self.log), hash)
    }

    /// To be called after each firing: sends the wave when it is full.
    pub(crate) fn firing_ended(&mut self) -> Result<(), AppendError> {
        if self.batch.len() >= self.limit {
            self.send()?;
            while self.in_flight.len() > IN_FLIGHT_MAX {
                self.settle_one()?;
            }
        }
        Ok(())
    }

    /// The link of the last durable event.
    pub(crate) fn link(&self) -> Hash {
        self.link
    }

    fn send(&mut self) -> Result<(), AppendError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let expected = self.sent;
        self.sent = expected.plus(batch.len() as u64);
        tracing::trace!(events = batch.len(), head = %self.sent, "a wave is sent");
        let append = Append { branch: self.branch, batch, expected, epoch: self.epoch };
        self.in_flight.push_back(self.log.submit(append));
        Ok(())
    }

    fn settle_one(&mut self) -> Result<(), AppendError> {
        let Some(pending) = self.in_flight.pop_front() else { return Ok(()) };
        let stopped = || LogError::Stopped { what: "the writer is gone".to_owned() };
        let appended = pending.wait().ok_or_else(stopped)??;
        (self.durable, self.link) = (appended.head, appended.link);
        Ok(())
    }

    /// Sends what there is and waits until all of it is durable.
    pub(crate) fn commit(&mut self) -> Result<Head, AppendError> {
        self.send()?;
        while !self.in_flight.is_empty() {
            self.settle_one()?;
        }
        assert_eq!(self.durable, self.sent, "what was sent is durable");
        self.keys.clear();
        self.texts.clear();
        Ok(self.durable)
    }
}

/// A long text by its hash, from those at hand or from a log.
pub(super) fn text_in(
    texts: &HashMap<Hash, Bytes>,
    log: Option<&dyn Log>,
    hash: &str,
) -> Option<String> {
    match hash.parse().ok().and_then(|hash: Hash| texts.get(&hash)) {
        Some(text) => String::from_utf8(text.to_vec()).ok(),
        None => text_of(log?, hash),
    }
}

/// A long text that a log holds.
pub(crate) fn text_of(log: &dyn Log, hash: &str) -> Option<String> {
    let text = log.blob(&hash.parse().ok()?).ok()??;
    String::from_utf8(text.to_vec()).ok()
}

impl Keys for Wave {
    fn keyed(&self, key: &str) -> Result<Option<Event>, LogError> {
        if let Some(event) = self.keys.get(key) {
            return Ok(Some(event.clone()));
        }
        let Some(offset) = self.log.find_key(self.branch, key)? else { return Ok(None) };
        keyed_at(&*self.log, self.branch, offset).map(Some)
    }
}
