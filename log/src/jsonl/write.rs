//! One event as one line, its fields in a fixed order.

use std::io::Write as _;

use super::LINE_MAX;
use crate::change::{ChangeRef, ChangesRef};
use crate::error::{EventError, LogError};
use crate::event::{Bound, Cause, Event};
use crate::id::Hash;
use crate::log::Log;
use crate::value::{BLOB_HEAD, BlobRef, MapRef, ValueRef};

/// How characters outside ASCII are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escapes {
    /// As they are, in UTF-8.
    #[default]
    Needed,
    /// As `\u` escapes, so that the line is ASCII.
    Ascii,
}

/// Appends the line of `event` to `out`, with its newline; its long texts come from `log`.
///
/// # Errors
/// A long text is missing or damaged, a part of the event was dropped, or the line is longer than
/// `LINE_MAX`.
pub fn write_line(
    log: &dyn Log,
    event: &Event,
    escapes: Escapes,
    out: &mut Vec<u8>,
) -> Result<(), LogError> {
    if event.has_dropped_part() {
        return Err(shape(event, "its payload or changes were dropped; back up the store instead"));
    }
    let start = out.len();
    let mut line = Line { log, event, escapes, out };
    line.fields()?;
    if out.len() - start > LINE_MAX {
        return Err(shape(event, "its line is longer than an import reads (256 MiB)"));
    }
    Ok(())
}

fn shape(event: &Event, what: &str) -> LogError {
    let at = format!("the event at offset {}", event.offset());
    EventError::Shape { at, what: what.to_owned() }.into()
}

/// A line that is being written.
struct Line<'a> {
    log: &'a dyn Log,
    event: &'a Event,
    escapes: Escapes,
    out: &'a mut Vec<u8>,
}

impl Line<'_> {
    fn fields(&mut self) -> Result<(), LogError> {
        let event = self.event;
        self.raw(&format!(r#"{{"offset":{},"id":"{}","kind":"#, event.offset(), event.id()));
        self.text(event.kind());
        self.raw(r#","payload":"#);
        self.map(event.payload())?;
        self.raw(r#","changes":"#);
        self.changes(event.changes())?;
        self.raw(r#","actor":"#);
        self.text(event.actor());
        self.raw(r#","cause":"#);
        self.cause(event.cause().as_ref());
        self.raw(&format!(r#","taken":{},"key":"#, event.taken()));
        match event.key() {
            Some(key) => self.text(key),
            None => self.raw("null"),
        }
        self.raw(&format!(r#","time":"{}","salt":"#, event.time()));
        match event.salt() {
            Some(salt) => {
                let digits = crate::id::EventId::from_bytes(salt).hex();
                self.raw(&format!(r#""{}""#, digits.as_str()));
            }
            None => self.raw("null"),
        }
        for (name, value) in event.extra().iter() {
            self.raw(",");
            self.text(name);
            self.raw(":");
            self.value(value)?;
        }
        self.raw("}\n");
        Ok(())
    }

    fn raw(&mut self, json: &str) {
        self.out.extend_from_slice(json.as_bytes());
    }

    fn text(&mut self, text: &str) {
        write_text(self.out, text, self.escapes);
    }

    fn cause(&mut self, cause: Option<&Cause>) {
        match cause {
            None => self.raw("null"),
            Some(Cause::Action { action }) => self.raw(&format!(r#"{{"action":"{action}"}}"#)),
            Some(Cause::Firing { event, behavior, row }) => {
                self.raw(&format!(r#"{{"event":"{event}","behavior":"#));
                self.text(behavior);
                self.raw(r#","match":"#);
                self.list(row.iter(), |line, bound| {
                    match bound {
                        Bound::Element(id) => line.text(id),
                        Bound::Path(ids) => line.list(ids.iter(), |line, id| {
                            line.text(id);
                            Ok(())
                        })?,
                    }
                    Ok(())
                })
                .expect("ids are written without reading the log");
                self.raw("}");
            }
        }
    }

    fn list<T>(
        &mut self,
        items: impl Iterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        self.raw("[");
        for (nth, item) in items.enumerate() {
            if nth > 0 {
                self.raw(",");
            }
            write(self, item)?;
        }
        self.raw("]");
        Ok(())
    }

    fn map(&mut self, map: MapRef<'_>) -> Result<(), LogError> {
        self.raw("{");
        for (nth, (key, value)) in map.iter().enumerate() {
            if nth > 0 {
                self.raw(",");
            }
            self.text(key);
            self.raw(":");
            self.value(value)?;
        }
        self.raw("}");
        Ok(())
    }

    fn value(&mut self, value: ValueRef<'_>) -> Result<(), LogError> {
        match value {
            ValueRef::Null => self.raw("null"),
            ValueRef::Bool(truth) => self.raw(if truth { "true" } else { "false" }),
            ValueRef::Int(number) => {
                write!(self.out, "{number}").expect("a Vec takes every write");
            }
            ValueRef::UInt(number) => {
                write!(self.out, "{number}").expect("a Vec takes every write");
            }
            ValueRef::Float(number) => {
                serde_json::to_writer(&mut *self.out, &number).expect("a Vec takes every write");
            }
            ValueRef::String(text) => self.text(text),
            ValueRef::List(list) => return self.list(list.iter(), Self::value),
            ValueRef::Map(map) => return self.map(map),
            ValueRef::Blob(blob) => return self.blob(blob),
        }
        Ok(())
    }

    /// A long text is written out. It moves back into the same blob when the line is imported,
    /// which holds only if the reference says of the text what is true.
    fn blob(&mut self, blob: BlobRef<'_>) -> Result<(), LogError> {
        let hash = blob.hash;
        let bytes = self.log.blob(&hash)?;
        let bytes = bytes.ok_or(LogError::Event(EventError::NoBlob { hash }))?;
        let text = std::str::from_utf8(&bytes).ok().filter(|text| {
            let head = &text[..text.floor_char_boundary(BLOB_HEAD)];
            Hash::of(text.as_bytes()) == hash && text.len() as u64 == blob.size && head == blob.head
        });
        let Some(text) = text else {
            return Err(shape(self.event, &format!("the long text {hash} is not what it names")));
        };
        self.text(text);
        Ok(())
    }

    fn changes(&mut self, changes: ChangesRef<'_>) -> Result<(), LogError> {
        self.list(changes.iter(), Self::change)
    }

    fn change(&mut self, change: ChangeRef<'_>) -> Result<(), LogError> {
        let properties = match change {
            ChangeRef::Create { id, type_name, properties } => {
                self.open("create", id);
                self.part("type", type_name);
                properties
            }
            ChangeRef::Ensure { id, type_name, properties } => {
                self.open("ensure", Some(id));
                self.part("type", type_name);
                properties
            }
            ChangeRef::Link { id, type_name, from, to, properties } => {
                self.edge("link", type_name, from, to);
                if let Some(id) = id {
                    self.part("id", id);
                }
                properties
            }
            ChangeRef::EnsureLink { type_name, from, to, properties } => {
                self.edge("ensure_link", type_name, from, to);
                properties
            }
            ChangeRef::Write { op, id, properties, if_version } => {
                self.open(op.name(), Some(id));
                if let Some(version) = if_version {
                    self.raw(&format!(r#","if_version":{version}"#));
                }
                properties
            }
            ChangeRef::Unset { id, names } => {
                self.open("unset", Some(id));
                self.raw(r#","names":"#);
                self.list(names.iter(), |line, name| {
                    line.text(name);
                    Ok(())
                })?;
                MapRef::EMPTY
            }
            ChangeRef::Remove { id } => {
                self.open("remove", Some(id));
                MapRef::EMPTY
            }
        };
        if !properties.is_empty() {
            self.raw(r#","properties":"#);
            self.map(properties)?;
        }
        self.raw("}");
        Ok(())
    }

    fn open(&mut self, operation: &str, id: Option<&str>) {
        self.raw(&format!(r#"{{"{operation}":"#));
        match id {
            Some(id) => self.text(id),
            None => self.raw("null"),
        }
    }

    fn part(&mut self, name: &str, text: &str) {
        self.raw(&format!(r#","{name}":"#));
        self.text(text);
    }

    fn edge(&mut self, operation: &str, type_name: &str, from: &str, to: &str) {
        self.open(operation, Some(type_name));
        self.part("from", from);
        self.part("to", to);
    }
}

/// Writes a JSON string with the escapes that JSON demands, and those that were asked for.
fn write_text(out: &mut Vec<u8>, text: &str, escapes: Escapes) {
    let plain = |byte: &u8| {
        let ascii = escapes == Escapes::Needed || *byte < 0x7f;
        *byte >= 0x20 && *byte != b'"' && *byte != b'\\' && ascii
    };
    if text.as_bytes().iter().all(plain) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    if escapes == Escapes::Needed {
        serde_json::to_writer(out, text).expect("a Vec takes every write");
        return;
    }
    out.push(b'"');
    for c in text.chars() {
        if c.is_ascii() && plain(&(c as u8)) {
            out.push(c as u8);
            continue;
        }
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").expect("a Vec takes every write");
                }
            }
        }
    }
    out.push(b'"');
}
