//! JSON values as stored: exact numbers, one canonical form, readable in place.
//!
//! A value has exactly one encoding, so two values are equal when their bytes are. `1` and `1.0`
//! are two values. Keys are sorted; a key cannot stand twice. A string over 4 KiB becomes a *blob*:
//! the event holds its hash, size and first bytes, the text itself is stored once beside the
//! events.
//! `ValueRef` and `MapRef` read the bytes without copying; they trust that `check` has passed.

mod check;
mod parse;
mod write;

pub(crate) use check::{check_map, check_str, read_bytes, read_section, read_str, read_varint};
pub use parse::parse_object;
pub use write::{Blobs, NamedBlob, ValueWriter};
pub(crate) use write::{insert_length, write_str, write_varint};

use serde_json::{Map, Number, Value};

use crate::id::Hash;

/// How deep lists and objects may nest.
pub const DEPTH_MAX: usize = 64;
/// The longest string, in bytes, that stays in its event; a longer one becomes a blob.
pub const INLINE_MAX: usize = 4096;
/// How many bytes of a blob's text its event keeps in sight, at most.
pub const BLOB_HEAD: usize = 256;

pub(crate) const NULL: u8 = 0;
pub(crate) const FALSE: u8 = 1;
pub(crate) const TRUE: u8 = 2;
pub(crate) const INT: u8 = 3;
pub(crate) const UINT: u8 = 4;
pub(crate) const FLOAT: u8 = 5;
pub(crate) const STRING: u8 = 6;
pub(crate) const LIST: u8 = 7;
pub(crate) const MAP: u8 = 8;
pub(crate) const BLOB: u8 = 9;

/// A stored value, read in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number that fits `i64`.
    Int(i64),
    /// A whole number above `i64::MAX`.
    UInt(u64),
    /// Any other finite number.
    Float(f64),
    /// Text of up to 4 KiB.
    String(&'a str),
    /// A list.
    List(ListRef<'a>),
    /// An object.
    Map(MapRef<'a>),
    /// A longer text, by reference.
    Blob(BlobRef<'a>),
}

/// A text that is stored once, outside the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRef<'a> {
    /// The BLAKE3 hash of the text.
    pub hash: Hash,
    /// The length of the text in bytes.
    pub size: u64,
    /// How the text begins, up to 256 bytes.
    pub head: &'a str,
}

/// A stored list, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListRef<'a>(&'a [u8]);

/// A stored object, read in place; its keys are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MapRef<'a>(&'a [u8]);

impl<'a> ValueRef<'a> {
    /// Reads one value that fills `bytes`, which `check_value` accepted.
    #[must_use]
    pub fn from_checked(bytes: &'a [u8]) -> Self {
        let mut rest = bytes;
        let value = take(&mut rest);
        assert!(rest.is_empty(), "one value fills its bytes");
        value
    }

    /// The text, if it is a string that stayed inline.
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        if let ValueRef::String(text) = self { Some(text) } else { None }
    }

    /// The number, if it is a whole one that fits.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        if let ValueRef::Int(number) = self { Some(number) } else { None }
    }

    /// The number as a float, which may round a large whole one.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        match self {
            ValueRef::Int(number) => Some(number as f64),
            ValueRef::UInt(number) => Some(number as f64),
            ValueRef::Float(number) => Some(number),
            _ => None,
        }
    }

    /// The object, if it is one.
    #[must_use]
    pub fn as_map(self) -> Option<MapRef<'a>> {
        if let ValueRef::Map(map) = self { Some(map) } else { None }
    }

    /// The list, if it is one.
    #[must_use]
    pub fn as_list(self) -> Option<ListRef<'a>> {
        if let ValueRef::List(list) = self { Some(list) } else { None }
    }

    /// The value as owned JSON. A blob becomes `{"$blob": hash, "head": …, "size": n}`, which is
    /// written back as the same blob.
    #[must_use]
    pub fn to_json(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Bool(truth) => Value::Bool(truth),
            ValueRef::Int(number) => Value::Number(number.into()),
            ValueRef::UInt(number) => Value::Number(number.into()),
            ValueRef::Float(number) => {
                Value::Number(Number::from_f64(number).expect("a stored number is finite"))
            }
            ValueRef::String(text) => Value::String(text.to_owned()),
            ValueRef::List(list) => Value::Array(list.iter().map(ValueRef::to_json).collect()),
            ValueRef::Map(map) => Value::Object(map.to_json()),
            ValueRef::Blob(blob) => blob.to_json(),
        }
    }
}

impl BlobRef<'_> {
    /// The reference as JSON: `{"$blob": hash, "head": …, "size": n}`.
    #[must_use]
    pub fn to_json(self) -> Value {
        serde_json::json!({"$blob": self.hash.to_string(), "head": self.head, "size": self.size})
    }
}

impl<'a> ListRef<'a> {
    /// The values in order.
    pub fn iter(self) -> impl Iterator<Item = ValueRef<'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || if rest.is_empty() { None } else { Some(take(&mut rest)) })
    }

    /// The encoded values, one after the other.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl<'a> MapRef<'a> {
    /// An object without entries.
    pub const EMPTY: MapRef<'static> = MapRef(&[]);

    /// Reads the entries of an object that `check_map` accepted.
    #[must_use]
    pub fn from_checked(entries: &'a [u8]) -> Self {
        MapRef(entries)
    }

    /// Whether it has no entries.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The encoded entries: the canonical form, without tag and length.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The entries by key.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let key = take_str(&mut rest);
            Some((key, take(&mut rest)))
        })
    }

    /// The entries by key, each value in its encoded form.
    pub fn iter_encoded(self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let key = take_str(&mut rest);
            let start = rest;
            skip(&mut rest);
            Some((key, &start[..start.len() - rest.len()]))
        })
    }

    /// The value of `key`.
    #[must_use]
    pub fn get(self, key: &str) -> Option<ValueRef<'a>> {
        self.get_encoded(key).map(ValueRef::from_checked)
    }

    /// The encoded value of `key`.
    #[must_use]
    pub fn get_encoded(self, key: &str) -> Option<&'a [u8]> {
        let mut rest = self.0;
        while !rest.is_empty() {
            // What is passed over need not be read as a text.
            let length = take_length(&mut rest);
            let name = take_bytes(&mut rest, length);
            let start = rest;
            skip(&mut rest);
            if name == key.as_bytes() {
                return Some(&start[..start.len() - rest.len()]);
            }
        }
        None
    }

    /// The value at a path of keys.
    #[must_use]
    pub fn at_path(self, path: &[&str]) -> Option<ValueRef<'a>> {
        let (first, rest) = path.split_first()?;
        let value = self.get(first)?;
        if rest.is_empty() { Some(value) } else { value.as_map()?.at_path(rest) }
    }

    /// The object as owned JSON; blobs as in `ValueRef::to_json`.
    #[must_use]
    pub fn to_json(self) -> Map<String, Value> {
        self.iter().map(|(key, value)| (key.to_owned(), value.to_json())).collect()
    }
}

const CHECKED: &str = "the bytes were checked when they were read";

fn take_bytes<'a>(rest: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (head, tail) = rest.split_at_checked(count).expect(CHECKED);
    *rest = tail;
    head
}

fn take_varint(rest: &mut &[u8]) -> u64 {
    read_varint(rest).expect(CHECKED)
}

fn take_length(rest: &mut &[u8]) -> usize {
    usize::try_from(take_varint(rest)).expect(CHECKED)
}

pub(crate) fn take_str<'a>(rest: &mut &'a [u8]) -> &'a str {
    read_str(rest).expect(CHECKED)
}

fn take<'a>(rest: &mut &'a [u8]) -> ValueRef<'a> {
    match take_bytes(rest, 1)[0] {
        NULL => ValueRef::Null,
        FALSE => ValueRef::Bool(false),
        TRUE => ValueRef::Bool(true),
        INT => ValueRef::Int(unzigzag(take_varint(rest))),
        UINT => ValueRef::UInt(take_varint(rest)),
        FLOAT => {
            let bytes = take_bytes(rest, 8).try_into().expect(CHECKED);
            ValueRef::Float(f64::from_le_bytes(bytes))
        }
        STRING => ValueRef::String(take_str(rest)),
        LIST => {
            let length = take_length(rest);
            ValueRef::List(ListRef(take_bytes(rest, length)))
        }
        MAP => {
            let length = take_length(rest);
            ValueRef::Map(MapRef(take_bytes(rest, length)))
        }
        BLOB => {
            let hash = Hash::from_bytes(take_bytes(rest, 32).try_into().expect(CHECKED));
            let size = take_varint(rest);
            ValueRef::Blob(BlobRef { hash, size, head: take_str(rest) })
        }
        tag => unreachable!("tag {tag}: {CHECKED}"),
    }
}

/// Passes over one value.
fn skip(rest: &mut &[u8]) {
    match take_bytes(rest, 1)[0] {
        NULL | FALSE | TRUE => {}
        INT | UINT => {
            take_varint(rest);
        }
        FLOAT => {
            take_bytes(rest, 8);
        }
        STRING | LIST | MAP => {
            let length = take_length(rest);
            take_bytes(rest, length);
        }
        BLOB => {
            take_bytes(rest, 32);
            take_varint(rest);
            let length = take_length(rest);
            take_bytes(rest, length);
        }
        tag => unreachable!("tag {tag}: {CHECKED}"),
    }
}

/// Small magnitudes of either sign become small numbers.
pub(crate) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
