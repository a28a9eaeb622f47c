//! What is appended at once: events that land together at exactly one place, or not at all.

use bytes::Bytes;

use crate::encode;
use crate::error::EventError;
use crate::event::{Draft, Event};
use crate::id::{BatchId, BranchId, Hash, Head, Offset};
use crate::value::{Blobs, ValueWriter};

/// Consecutive events, encoded and hashed, ready to land.
///
/// Making one is the expensive part of an append, and is done by the caller, off the writer's
/// thread.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    events: Vec<(Event, Hash)>,
    blobs: Blobs,
    bytes: usize,
}

impl Batch {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Batch::default()
    }

    /// Encodes `drafts` as consecutive events from `first`.
    ///
    /// # Errors
    /// The first draft that breaks a limit of the format.
    pub fn of_drafts(first: Offset, drafts: &[Draft]) -> Result<Batch, EventError> {
        // All records stand in one piece of memory, since there may be many.
        let mut writer = ValueWriter::default();
        writer.bytes.reserve(drafts.len() * 320);
        let mut layouts = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let start = writer.bytes.len();
            let layout = encode::write(&mut writer, draft)?;
            layouts.push((start..writer.bytes.len(), layout));
        }
        let (records, blobs) = (Bytes::from(writer.bytes), writer.blobs);
        let sealed = (0..).zip(layouts).map(|(nth, (range, layout))| {
            let digest = encode::digest(&records[range.clone()], &layout);
            (Event::of_parts(first.plus(nth), records.slice(range), layout), digest)
        });
        let events = sealed.collect();
        let bytes = records.len() + text_bytes(&blobs);
        Ok(Batch { events, blobs, bytes })
    }

    /// Adds the next event, with the texts that moved out of it.
    pub fn push(&mut self, event: Event, blobs: Blobs) {
        if let Some((last, _)) = self.events.last() {
            assert_eq!(event.offset(), last.offset().plus(1), "a batch has no gaps");
        }
        let digest = event.digest();
        self.bytes += event.record().len() + text_bytes(&blobs);
        self.events.push((event, digest));
        self.blobs.given.extend(blobs.given);
        self.blobs.named.extend(blobs.named);
    }

    /// How many events it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// About how many bytes it takes, its texts included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The events, in order.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().map(|(event, _)| event)
    }

    pub(crate) fn parts(&self) -> (&[(Event, Hash)], &Blobs) {
        (&self.events, &self.blobs)
    }

    /// Names the append of this batch at this place: the same again has the same name.
    #[must_use]
    pub fn id(&self, branch: BranchId, expected: Head) -> BatchId {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&branch.get().to_le_bytes());
        hasher.update(&expected.count().to_le_bytes());
        for (_, digest) in &self.events {
            hasher.update(digest.as_bytes());
        }
        let hash = hasher.finalize();
        BatchId::from_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
    }
}

fn text_bytes(blobs: &Blobs) -> usize {
    blobs.given.iter().map(|(_, text)| text.len()).sum()
}
