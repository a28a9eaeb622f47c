//! The bytes of one event: the only file that knows their layout. `FORMAT.md` tells it to people.
//!
//! A record depends on its event alone: not on its place, its neighbours or its batch. It begins
//! with a header; payload and changes follow, each of which can later be replaced by its digest.

use smol_str::SmolStr;

use crate::change::{check_changes, write_changes};
use crate::error::EventError;
use crate::event::{Bound, Cause, Draft, EVENT_MAX};
use crate::id::{EventId, Hash, Time};
use crate::value::{
    ValueWriter, check_map, check_str, read_bytes, read_section, read_str, read_varint,
};
use crate::value::{unzigzag, write_str, write_varint, zigzag};

const HAS_KEY: u8 = 1;
const HAS_CAUSE: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_PAYLOAD: u8 = 8;
const HAS_CHANGES: u8 = 16;
/// The payload was dropped; its digest stands in its place.
const PAYLOAD_DROPPED: u8 = 32;
/// The changes were dropped; their digest stands in their place.
const CHANGES_DROPPED: u8 = 64;
const DROPPED: u8 = PAYLOAD_DROPPED | CHANGES_DROPPED;

const CAUSE_FIRING: u8 = 1;
const CAUSE_ACTION: u8 = 2;
const BOUND_ELEMENT: u8 = 0;
const BOUND_PATH: u8 = 1;

/// The longest kind, actor or key, in bytes.
const FIELD_MAX: usize = 1024;

/// Where the parts of a record stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) id: EventId,
    pub(crate) taken: u64,
    pub(crate) time: Time,
    pub(crate) kind: Span,
    pub(crate) actor: Span,
    pub(crate) key: Option<Span>,
    pub(crate) cause: Option<Span>,
    pub(crate) extra: Span,
    header_end: u32,
    pub(crate) salt: Option<Span>,
    pub(crate) payload: Span,
    pub(crate) changes: Span,
}

/// A part of a record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(crate) fn of(self, record: &[u8]) -> &[u8] {
        &record[self.start as usize..self.end as usize]
    }

    pub(crate) fn text(self, record: &[u8]) -> &str {
        std::str::from_utf8(self.of(record)).expect("the record was checked when it was read")
    }
}

/// The salt of an event's digests: the first 128 bits of BLAKE3 over `salt` and its id.
fn derived_salt(id: &EventId) -> [u8; 16] {
    let mut input = [0u8; 20];
    input[..4].copy_from_slice(b"salt");
    input[4..].copy_from_slice(id.as_bytes());
    let hash = blake3::hash(&input);
    *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
}

/// Writes a record after what `writer` holds. Gives its length and layout.
pub(crate) fn write(writer: &mut ValueWriter, draft: &Draft) -> Result<Layout, EventError> {
    check_length("kind", draft.kind.len())?;
    check_length("actor", draft.actor.len())?;
    if let Some(key) = &draft.key {
        check_length("key", key.len())?;
    }
    let start = writer.bytes.len();
    write_header(writer, draft)?;
    if !draft.payload.is_empty() || !draft.changes.is_empty() {
        let salt = draft.salt.unwrap_or_else(|| derived_salt(&draft.id));
        writer.bytes.extend_from_slice(&salt);
    }
    if !draft.payload.is_empty() {
        section(writer, |writer| writer.entries(&draft.payload, "payload"))?;
    }
    if !draft.changes.is_empty() {
        section(writer, |writer| write_changes(writer, &draft.changes))?;
    }
    let record = &writer.bytes[start..];
    if record.len() > EVENT_MAX {
        let (kind, bytes) = (draft.kind.to_string(), record.len());
        return Err(EventError::TooLarge { kind, bytes, limit: EVENT_MAX });
    }
    Ok(lay_out(record).expect("what was just written can be read"))
}

fn check_length(field: &'static str, bytes: usize) -> Result<(), EventError> {
    let fits = (1..=FIELD_MAX).contains(&bytes);
    if fits { Ok(()) } else { Err(EventError::FieldLength { field, bytes, limit: FIELD_MAX }) }
}

fn write_header(writer: &mut ValueWriter, draft: &Draft) -> Result<(), EventError> {
    let flag = |present: bool, bit: u8| if present { bit } else { 0 };
    let flags = flag(draft.key.is_some(), HAS_KEY)
        | flag(draft.cause.is_some(), HAS_CAUSE)
        | flag(!draft.extra.is_empty(), HAS_EXTRA)
        | flag(!draft.payload.is_empty(), HAS_PAYLOAD)
        | flag(!draft.changes.is_empty(), HAS_CHANGES);
    writer.bytes.push(flags);
    writer.bytes.extend_from_slice(draft.id.as_bytes());
    write_varint(&mut writer.bytes, draft.taken);
    write_varint(&mut writer.bytes, zigzag(draft.time.ms()));
    write_str(&mut writer.bytes, &draft.kind);
    write_str(&mut writer.bytes, &draft.actor);
    if let Some(key) = &draft.key {
        write_str(&mut writer.bytes, key);
    }
    if let Some(cause) = &draft.cause {
        section(writer, |writer| {
            write_cause(&mut writer.bytes, cause);
            Ok(())
        })?;
    }
    if !draft.extra.is_empty() {
        section(writer, |writer| writer.entries(&draft.extra, "event"))?;
    }
    Ok(())
}

/// Writes what `write` writes, with its length before it.
fn section(
    writer: &mut ValueWriter,
    write: impl FnOnce(&mut ValueWriter) -> Result<(), EventError>,
) -> Result<(), EventError> {
    let start = writer.bytes.len();
    write(writer)?;
    crate::value::insert_length(&mut writer.bytes, start);
    Ok(())
}

fn write_cause(bytes: &mut Vec<u8>, cause: &Cause) {
    match cause {
        Cause::Firing { event, behavior, row } => {
            bytes.push(CAUSE_FIRING);
            bytes.extend_from_slice(event.as_bytes());
            write_str(bytes, behavior);
            for bound in row {
                match bound {
                    Bound::Element(id) => {
                        bytes.push(BOUND_ELEMENT);
                        write_str(bytes, id);
                    }
                    Bound::Path(ids) => {
                        bytes.push(BOUND_PATH);
                        write_varint(bytes, ids.len() as u64);
                        ids.iter().for_each(|id| write_str(bytes, id));
                    }
                }
            }
        }
        Cause::Action { action } => {
            bytes.push(CAUSE_ACTION);
            bytes.extend_from_slice(action.as_bytes());
        }
    }
}

/// Reads the layout of a record that fills `record`, checking every byte of it.
pub(crate) fn read(record: &[u8]) -> Result<Layout, &'static str> {
    let layout = lay_out(record)?;
    for text in [Some(layout.kind), Some(layout.actor), layout.key].into_iter().flatten() {
        let text = text.of(record);
        if !text.is_ascii() && std::str::from_utf8(text).is_err() {
            return Err("a text that is not UTF-8");
        }
    }
    if let Some(cause) = layout.cause {
        check_cause(cause.of(record))?;
    }
    check_map(layout.extra.of(record))?;
    check_map(layout.payload.of(record))?;
    check_changes(layout.changes.of(record))?;
    Ok(layout)
}

/// Finds where the parts of a record stand, without looking into them.
fn lay_out(record: &[u8]) -> Result<Layout, &'static str> {
    let mut reader = Reader { record, rest: record };
    let flags = reader.bytes(1)?[0];
    if flags & 0x80 != 0 {
        return Err("a record of a later version");
    }
    let id = reader.bytes(16)?.try_into().expect("sixteen bytes were read");
    let taken = read_varint(&mut reader.rest)?;
    let time =
        Time::from_ms(unzigzag(read_varint(&mut reader.rest)?)).ok_or("a time out of range")?;
    let kind = reader.text()?;
    let actor = reader.text()?;
    let key = if flags & HAS_KEY != 0 { Some(reader.text()?) } else { None };
    let cause = if flags & HAS_CAUSE != 0 { Some(reader.section()?) } else { None };
    let extra = if flags & HAS_EXTRA != 0 { reader.section()? } else { Span::default() };
    let header_end = reader.at();
    let salted = flags & (HAS_PAYLOAD | HAS_CHANGES) != 0;
    let salt = if salted { Some(reader.span(16)?) } else { None };
    let payload = reader.body(flags, HAS_PAYLOAD, PAYLOAD_DROPPED)?;
    let changes = reader.body(flags, HAS_CHANGES, CHANGES_DROPPED)?;
    if !reader.rest.is_empty() {
        return Err("bytes after the end of the event");
    }
    let id = EventId::from_bytes(id);
    Ok(Layout {
        id,
        taken,
        time,
        kind,
        actor,
        key,
        cause,
        extra,
        header_end,
        salt,
        payload,
        changes,
    })
}

/// Reads a record from its start, remembering where things stand.
struct Reader<'a> {
    record: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn at(&self) -> u32 {
        (self.record.len() - self.rest.len()) as u32
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        read_bytes(&mut self.rest, count)
    }

    fn span(&mut self, count: usize) -> Result<Span, &'static str> {
        let start = self.at();
        self.bytes(count)?;
        Ok(Span { start, end: self.at() })
    }

    fn section(&mut self) -> Result<Span, &'static str> {
        let length = read_section(&mut self.rest)?.len() as u32;
        Ok(Span { start: self.at() - length, end: self.at() })
    }

    fn text(&mut self) -> Result<Span, &'static str> {
        let length = read_section(&mut self.rest)?.len() as u32;
        if length == 0 || length as usize > FIELD_MAX {
            return Err("a field that is empty or too long");
        }
        Ok(Span { start: self.at() - length, end: self.at() })
    }

    /// Payload or changes: there, or nothing, or dropped, when only the digest is there.
    fn body(&mut self, flags: u8, has: u8, dropped: u8) -> Result<Span, &'static str> {
        match (flags & has != 0, flags & dropped != 0) {
            (true, false) => {
                let span = self.section()?;
                if span.start == span.end {
                    Err("an empty part that is said to be there")
                } else {
                    Ok(span)
                }
            }
            (true, true) => self.bytes(32).map(|_| Span::default()),
            (false, false) => Ok(Span::default()),
            (false, true) => Err("a part dropped that was not there"),
        }
    }
}

fn read_cause(bytes: &[u8]) -> Result<Cause, &'static str> {
    let (&tag, mut rest) = bytes.split_first().ok_or("a cause without a type")?;
    let id = read_bytes(&mut rest, 16)?.try_into().expect("sixteen bytes were read");
    let id = EventId::from_bytes(id);
    match tag {
        CAUSE_ACTION if rest.is_empty() => Ok(Cause::Action { action: id }),
        CAUSE_FIRING => {
            let behavior = SmolStr::from(read_str(&mut rest)?);
            let mut row = Vec::new();
            while !rest.is_empty() {
                row.push(read_bound(&mut rest)?);
            }
            Ok(Cause::Firing { event: id, behavior, row })
        }
        _ => Err("a cause of an unknown type"),
    }
}

/// Checks that `bytes` are a cause: what `read_cause` reads.
fn check_cause(bytes: &[u8]) -> Result<(), &'static str> {
    let (&tag, mut rest) = bytes.split_first().ok_or("a cause without a type")?;
    read_bytes(&mut rest, 16)?;
    match tag {
        CAUSE_ACTION if rest.is_empty() => Ok(()),
        CAUSE_FIRING => {
            check_str(&mut rest)?;
            while let Some((&bound, tail)) = rest.split_first() {
                rest = tail;
                let ids = match bound {
                    BOUND_ELEMENT => 1,
                    BOUND_PATH => read_varint(&mut rest)?,
                    _ => return Err("a bound of an unknown type"),
                };
                for _ in 0..ids {
                    check_str(&mut rest)?;
                }
            }
            Ok(())
        }
        _ => Err("a cause of an unknown type"),
    }
}

fn read_bound(rest: &mut &[u8]) -> Result<Bound, &'static str> {
    match read_bytes(rest, 1)?[0] {
        BOUND_ELEMENT => Ok(Bound::Element(read_str(rest)?.into())),
        BOUND_PATH => {
            let count = read_varint(rest)?;
            let ids = (0..count).map(|_| read_str(rest).map(SmolStr::from));
            ids.collect::<Result<_, _>>().map(Bound::Path)
        }
        _ => Err("a bound of an unknown type"),
    }
}

/// Whether a part of a record was replaced by its digest.
pub(crate) fn has_dropped_part(record: &[u8]) -> bool {
    record[0] & DROPPED != 0
}

/// Reads a cause that `read` has checked.
pub(crate) fn cause(bytes: &[u8]) -> Cause {
    read_cause(bytes).expect("the record was checked when it was read")
}

/// The behavior's name in a cause that `read` has checked.
pub(crate) fn author(bytes: &[u8]) -> Option<&str> {
    let mut rest = bytes.get(17..)?;
    if bytes[0] == CAUSE_FIRING { read_str(&mut rest).ok() } else { None }
}

/// The hash of an event: its header, and the salted digests of payload and changes. The same
/// whether these were dropped or not.
pub(crate) fn digest(record: &[u8], layout: &Layout) -> Hash {
    let flags = record[0];
    let mut at = layout.salt.unwrap_or_default().end as usize;
    let mut part = |has: u8, gone: u8, span: Span| {
        if flags & gone != 0 {
            at += 32;
            return Some(record[at - 32..at].try_into().expect("32 bytes were read"));
        }
        let salt = layout.salt.filter(|_| flags & has != 0)?;
        at = span.end as usize;
        Some(hash_parts([salt.of(record), span.of(record), &[], &[]]))
    };
    let payload = part(HAS_PAYLOAD, PAYLOAD_DROPPED, layout.payload);
    let changes = part(HAS_CHANGES, CHANGES_DROPPED, layout.changes);
    Hash::from_bytes(hash_parts([
        &[flags & !DROPPED],
        &record[1..layout.header_end as usize],
        payload.as_ref().map_or(&[], <[u8; 32]>::as_slice),
        changes.as_ref().map_or(&[], <[u8; 32]>::as_slice),
    ]))
}

/// The hash of parts that follow one another. Most are short, and hashing them in one piece is
/// faster.
fn hash_parts(parts: [&[u8]; 4]) -> [u8; 32] {
    let mut short = [0; 512];
    let mut end = 0;
    for part in parts {
        let Some(place) = short.get_mut(end..end + part.len()) else {
            let mut hasher = blake3::Hasher::new();
            for part in parts {
                hasher.update(part);
            }
            return *hasher.finalize().as_bytes();
        };
        place.copy_from_slice(part);
        end += part.len();
    }
    *blake3::hash(&short[..end]).as_bytes()
}
