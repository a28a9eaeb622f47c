//! JSON into its one canonical form, long strings out into blobs.

use std::fmt;

use bytes::Bytes;
use serde_json::{Map, Number, Value};

use super::{BLOB, BLOB_HEAD, DEPTH_MAX, FALSE, FLOAT, INLINE_MAX, INT, LIST, MAP, NULL, STRING};
use super::{TRUE, UINT, zigzag};
use crate::error::EventError;
use crate::id::Hash;

/// Texts over 4 KiB that moved out of the events that name them, to be stored with them.
#[derive(Clone, Debug, Default)]
pub struct Blobs {
    /// The texts that were given, by hash.
    pub given: Vec<(Hash, Bytes)>,
    /// The texts that were only named, in the `$blob` form; the store must hold them.
    pub named: Vec<NamedBlob>,
}

/// What an event says of a text that it does not bring along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedBlob {
    /// The hash of the text.
    pub hash: Hash,
    /// How long it is said to be, in bytes.
    pub size: u64,
    /// How it is said to begin.
    pub head: String,
}

impl NamedBlob {
    /// Whether this is what the text with its hash is like.
    pub(crate) fn is_true_of(&self, text: &[u8]) -> bool {
        let head = self.head.as_bytes();
        self.size == text.len() as u64 && text.starts_with(head) && head.len() == head_of(text)
    }
}

/// How many bytes of a text stay in sight: up to 256, and whole characters.
fn head_of(text: &[u8]) -> usize {
    let mut end = BLOB_HEAD.min(text.len());
    // A byte of the form 10xxxxxx goes on with a character.
    while end < text.len() && text[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    end
}

/// Writes values in canonical form.
#[derive(Debug, Default)]
pub struct ValueWriter {
    /// The bytes written so far.
    pub bytes: Vec<u8>,
    /// The blobs that the written values name.
    pub blobs: Blobs,
}

impl ValueWriter {
    /// Writes the entries of an object, without tag and length.
    ///
    /// # Errors
    /// Too deep; see `EventError`. `at` names the place in the message.
    pub fn entries(&mut self, map: &Map<String, Value>, at: &str) -> Result<(), EventError> {
        self.entries_of(map, format_args!("{at}"))
    }

    /// As `entries`, with a place that is only put together where the message needs it.
    pub(crate) fn entries_of(
        &mut self,
        map: &Map<String, Value>,
        at: fmt::Arguments<'_>,
    ) -> Result<(), EventError> {
        self.entries_at(map, &Place { at, key: None, outer: None }, DEPTH_MAX - 1)
    }

    /// Writes one value with its tag.
    ///
    /// # Errors
    /// Too deep; see `EventError`. `at` names the place in the message.
    pub fn value(&mut self, value: &Value, at: &str) -> Result<(), EventError> {
        let place = Place { at: format_args!("{at}"), key: None, outer: None };
        self.value_at(value, &place, DEPTH_MAX - 1)
    }

    fn entries_at(
        &mut self,
        map: &Map<String, Value>,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<(), EventError> {
        let mut last: Option<&str> = None;
        for (key, value) in map {
            // Sorted by `serde_json` unless some crate turns on its insertion order.
            assert!(
                last.is_none_or(|last| last < key.as_str()),
                "the keys of a JSON map are sorted"
            );
            last = Some(key);
            write_str(&mut self.bytes, key);
            let place = Place { at: place.at, key: Some(key), outer: Some(place) };
            self.value_at(value, &place, depth)?;
        }
        Ok(())
    }

    fn value_at(
        &mut self,
        value: &Value,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<(), EventError> {
        match value {
            Value::Null => self.bytes.push(NULL),
            Value::Bool(false) => self.bytes.push(FALSE),
            Value::Bool(true) => self.bytes.push(TRUE),
            Value::Number(number) => self.number(number, place)?,
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                let depth = place.deeper(depth)?;
                let start = self.open(LIST);
                for item in items {
                    self.value_at(item, place, depth)?;
                }
                self.close(start);
            }
            Value::Object(map) => {
                if let Some(blob) = named_blob(map) {
                    self.blob(blob.0, blob.1, blob.2);
                    let (hash, size, head) = (blob.0, blob.1, blob.2.to_owned());
                    self.blobs.named.push(NamedBlob { hash, size, head });
                    return Ok(());
                }
                let depth = place.deeper(depth)?;
                let start = self.open(MAP);
                self.entries_at(map, place, depth)?;
                self.close(start);
            }
        }
        Ok(())
    }

    fn number(&mut self, number: &Number, place: &Place<'_>) -> Result<(), EventError> {
        if let Some(number) = number.as_i64() {
            self.bytes.push(INT);
            write_varint(&mut self.bytes, zigzag(number));
        } else if let Some(number) = number.as_u64() {
            self.bytes.push(UINT);
            write_varint(&mut self.bytes, number);
        } else {
            let float = number.as_f64().filter(|float| float.is_finite());
            let Some(float) = float else {
                return Err(EventError::NotFinite { at: place.to_string(), number: "infinity" });
            };
            self.bytes.push(FLOAT);
            self.bytes.extend_from_slice(&float.to_le_bytes());
        }
        Ok(())
    }

    fn string(&mut self, text: &str) {
        if text.len() <= INLINE_MAX {
            self.bytes.push(STRING);
            write_str(&mut self.bytes, text);
            return;
        }
        let hash = Hash::from_bytes(*blake3::hash(text.as_bytes()).as_bytes());
        self.blob(hash, text.len() as u64, &text[..head_of(text.as_bytes())]);
        self.blobs.given.push((hash, Bytes::copy_from_slice(text.as_bytes())));
    }

    fn blob(&mut self, hash: Hash, size: u64, head: &str) {
        assert!(size > INLINE_MAX as u64, "a short text stays inline");
        self.bytes.push(BLOB);
        self.bytes.extend_from_slice(hash.as_bytes());
        write_varint(&mut self.bytes, size);
        write_str(&mut self.bytes, head);
    }

    fn open(&mut self, tag: u8) -> usize {
        self.bytes.push(tag);
        self.bytes.len()
    }

    /// Puts the length of what was written since `start` before it.
    fn close(&mut self, start: usize) {
        insert_length(&mut self.bytes, start);
    }
}

/// Puts the length of what was written since `start` before it.
pub(crate) fn insert_length(bytes: &mut Vec<u8>, start: usize) {
    let length = bytes.len() - start;
    if length < 0x80 {
        bytes.insert(start, length as u8);
        return;
    }
    let end = bytes.len();
    write_varint(bytes, length as u64);
    let digits = bytes.len() - end;
    bytes[start..].rotate_right(digits);
}

/// `{"$blob": hash, "head": …, "size": n}`, exactly as `BlobRef::to_json` writes it.
fn named_blob(map: &Map<String, Value>) -> Option<(Hash, u64, &str)> {
    if map.len() != 3 {
        return None;
    }
    let hash = map.get("$blob")?.as_str()?.parse().ok()?;
    let size = map.get("size")?.as_u64().filter(|size| *size > INLINE_MAX as u64)?;
    let head = map.get("head")?.as_str().filter(|head| head.len() <= BLOB_HEAD)?;
    Some((hash, size, head))
}

/// Writes an unsigned LEB128 number.
#[inline]
pub(crate) fn write_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Writes a text: its length, then UTF-8.
pub(crate) fn write_str(bytes: &mut Vec<u8>, text: &str) {
    write_varint(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

/// Where a value stands, for messages: `payload.a.b`.
struct Place<'a> {
    at: fmt::Arguments<'a>,
    key: Option<&'a str>,
    outer: Option<&'a Place<'a>>,
}

impl Place<'_> {
    fn deeper(&self, depth: usize) -> Result<usize, EventError> {
        depth.checked_sub(1).ok_or_else(|| EventError::TooDeep {
            at: self.to_string().chars().take(80).collect(),
            limit: DEPTH_MAX,
        })
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.outer, self.key) {
            (Some(outer), Some(key)) => write!(f, "{outer}.{key}"),
            _ => f.write_fmt(self.at),
        }
    }
}
