//! An event: the only thing that is stored. `Draft` is how one is written, `Event` how it is read.

use std::fmt;

use bytes::Bytes;
use serde_json::{Map, Value};
use smol_str::SmolStr;

use crate::change::{Change, ChangesRef};
use crate::encode::{self, Layout};
use crate::error::EventError;
use crate::id::{EventId, Hash, Offset, Time};
use crate::value::{Blobs, MapRef, ValueWriter};

/// The largest event, in bytes, after long strings have moved to blobs.
pub const EVENT_MAX: usize = 1 << 20;

/// An event before it has a place: every field but the offset.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Its derivation; see `Derivation`.
    pub id: EventId,
    /// What happened: dotted lower-case words, such as `tool.requested`.
    pub kind: SmolStr,
    /// The domain's words.
    pub payload: Map<String, Value>,
    /// What it does to the graph.
    pub changes: Vec<Change>,
    /// Who: `user:ann`, `behavior:guard_budget@9f2c41d0`, `effect:…`, `runtime`.
    pub actor: SmolStr,
    /// Why, for an event that followed from another.
    pub cause: Option<Cause>,
    /// How many activations had been taken off the agenda, up to the one that emitted this.
    pub taken: u64,
    /// A durable key: it takes effect once along the branch and its ancestors, for ever.
    pub key: Option<SmolStr>,
    /// When it is said to have happened.
    pub time: Time,
    /// Salts the digests of payload and changes; derived from `id` unless given by an import.
    pub salt: Option<[u8; 16]>,
    /// Fields of an imported event that this version does not know; they are carried along.
    pub extra: Map<String, Value>,
}

impl Draft {
    /// An event of this kind with nothing else in it yet.
    #[must_use]
    pub fn new(id: EventId, kind: impl Into<SmolStr>, actor: impl Into<SmolStr>) -> Self {
        Draft {
            id,
            kind: kind.into(),
            payload: Map::new(),
            changes: Vec::new(),
            actor: actor.into(),
            cause: None,
            taken: 0,
            key: None,
            time: Time::EPOCH,
            salt: None,
            extra: Map::new(),
        }
    }
}

/// Why there is an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A behavior fired: on which event, and on which match of its pattern.
    Firing {
        /// The event that woke the behavior.
        event: EventId,
        /// The behavior's name.
        behavior: SmolStr,
        /// The elements bound by the match, in pattern order.
        row: Vec<Bound>,
    },
    /// An effect was answered.
    Action {
        /// The event that requested it.
        action: EventId,
    },
}

/// What one part of a pattern is bound to: an element, or the edges of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bound {
    /// A node or an edge, by id.
    Element(SmolStr),
    /// The edges of a variable-length part, by id.
    Path(Vec<SmolStr>),
}

impl Bound {
    /// The ids of all elements that are bound.
    #[must_use]
    pub fn ids(&self) -> &[SmolStr] {
        match self {
            Bound::Element(id) => std::slice::from_ref(id),
            Bound::Path(ids) => ids,
        }
    }
}

/// A stored event, read in place. Cloning it copies no bytes.
#[derive(Clone)]
pub struct Event {
    offset: Offset,
    bytes: Bytes,
    layout: Layout,
}

impl Event {
    /// Encodes a draft as the event at `offset`, and hands out the long texts that moved to blobs.
    ///
    /// # Errors
    /// The draft breaks a limit of the format; see `EventError`. Nothing was written.
    pub fn encode(draft: &Draft, offset: Offset) -> Result<(Event, Blobs), EventError> {
        let mut writer = ValueWriter::default();
        writer.bytes.reserve(512);
        let layout = encode::write(&mut writer, draft)?;
        Ok((Event { offset, bytes: writer.bytes.into(), layout }, writer.blobs))
    }

    /// The event at `offset` whose record, already checked, is `bytes`.
    pub(crate) fn of_parts(offset: Offset, bytes: Bytes, layout: Layout) -> Event {
        Event { offset, bytes, layout }
    }

    /// Reads the record of the event at `offset`.
    ///
    /// # Errors
    /// Says what is wrong with the bytes.
    pub fn from_record(bytes: Bytes, offset: Offset) -> Result<Event, &'static str> {
        let layout = encode::read(&bytes)?;
        Ok(Event { offset, bytes, layout })
    }

    /// The same event at another place.
    #[must_use]
    pub fn at(mut self, offset: Offset) -> Event {
        self.offset = offset;
        self
    }

    /// Its place on the branch.
    #[must_use]
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// Its derivation.
    #[must_use]
    pub fn id(&self) -> EventId {
        self.layout.id
    }

    /// What happened.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.layout.kind.text(&self.bytes)
    }

    /// Whether that is this kind; the quickest way to ask.
    #[must_use]
    pub fn is_kind(&self, kind: &str) -> bool {
        self.layout.kind.of(&self.bytes) == kind.as_bytes()
    }

    /// Who did it.
    #[must_use]
    pub fn actor(&self) -> &str {
        self.layout.actor.text(&self.bytes)
    }

    /// Its durable key.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.layout.key.map(|span| span.text(&self.bytes))
    }

    /// Activations taken up to it.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.layout.taken
    }

    /// When it is said to have happened.
    #[must_use]
    pub fn time(&self) -> Time {
        self.layout.time
    }

    /// Why there is this event.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.layout.cause.map(|span| encode::cause(span.of(&self.bytes)))
    }

    /// The name of the behavior whose firing this is, without reading the rest of the cause.
    #[must_use]
    pub fn author(&self) -> Option<&str> {
        encode::author(self.layout.cause?.of(&self.bytes))
    }

    /// The domain's words; empty if they were dropped.
    #[must_use]
    pub fn payload(&self) -> MapRef<'_> {
        MapRef::from_checked(self.layout.payload.of(&self.bytes))
    }

    /// What it does to the graph; empty if it was dropped.
    #[must_use]
    pub fn changes(&self) -> ChangesRef<'_> {
        ChangesRef::from_checked(self.layout.changes.of(&self.bytes))
    }

    /// Fields that this version does not know.
    #[must_use]
    pub fn extra(&self) -> MapRef<'_> {
        MapRef::from_checked(self.layout.extra.of(&self.bytes))
    }

    /// The salt of the digests, if there is anything to digest.
    #[must_use]
    pub fn salt(&self) -> Option<[u8; 16]> {
        self.layout.salt.map(|span| span.of(&self.bytes).try_into().expect("a salt has 16 bytes"))
    }

    /// The hash of everything but the place: what the hash chain links.
    #[must_use]
    pub fn digest(&self) -> Hash {
        encode::digest(&self.bytes, &self.layout)
    }

    /// Whether payload or changes were dropped, so that only their digest is left.
    #[must_use]
    pub fn has_dropped_part(&self) -> bool {
        encode::has_dropped_part(&self.bytes)
    }

    /// The record as stored.
    #[must_use]
    pub fn record(&self) -> &Bytes {
        &self.bytes
    }

    /// Whether kind, payload and changes are the same: what a durable key stands for.
    #[must_use]
    pub fn same_content(&self, other: &Event) -> bool {
        self.kind() == other.kind()
            && self.payload() == other.payload()
            && self.changes() == other.changes()
    }

    /// The event as a draft, which encodes to the same bytes. Blobs stay references.
    #[must_use]
    pub fn to_draft(&self) -> Draft {
        Draft {
            id: self.id(),
            kind: self.kind().into(),
            payload: self.payload().to_json(),
            changes: self.changes().iter().map(|change| change.to_change()).collect(),
            actor: self.actor().into(),
            cause: self.cause(),
            taken: self.taken(),
            key: self.key().map(Into::into),
            time: self.time(),
            salt: self.salt(),
            extra: self.extra().to_json(),
        }
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.offset == other.offset && self.bytes == other.bytes
    }
}

impl Eq for Event {}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{} {:?}", self.offset, self.to_draft())
    }
}
