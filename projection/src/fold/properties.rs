//! What a write makes of an element's properties, from canonical bytes to canonical bytes.

use std::cmp::Ordering;

use log::{DEPTH_MAX, MapRef, NamesRef, ValueRef, ValueWriter, WriteOp};
use serde_json::Value;

use crate::refusal::Refusal;
use crate::varint::{write_section, write_varint};

/// Memory that is used again for every write.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The id and properties of the element at hand.
    pub(super) bytes: Vec<u8>,
    number: ValueWriter,
}

impl Clone for Scratch {
    /// A copy begins with memory of its own; there is nothing in it to be kept.
    fn clone(&self) -> Self {
        Scratch::default()
    }
}

impl Scratch {
    /// Begins with the id of an element; its properties follow.
    pub(super) fn begin(&mut self, id: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(id);
    }

    fn entry(&mut self, key: &str, value: &[u8]) {
        write_section(&mut self.bytes, key.as_bytes());
        self.bytes.extend_from_slice(value);
    }
}

/// Why one property cannot be written.
#[derive(Debug)]
pub(super) struct Problem {
    property: String,
    why: Why,
}

#[derive(Debug)]
enum Why {
    WrongType { found: String },
    Overflow { value: String, addend: String },
    NotFinite { value: String, addend: String },
    TooDeep,
}

impl Problem {
    pub(super) fn refusal(self, change: usize, op: WriteOp, id: &str) -> Refusal {
        let (id, property) = (id.to_owned(), self.property);
        match self.why {
            Why::WrongType { found } => {
                let wanted = if op == WriteOp::Add { "numbers" } else { "a list" };
                let operation = op.name();
                Refusal::WrongType { change, operation, id, property, wanted, found }
            }
            Why::Overflow { value, addend } => {
                Refusal::Overflow { change, id, property, value, addend }
            }
            Why::NotFinite { value, addend } => {
                Refusal::NotFinite { change, id, property, value, addend }
            }
            Why::TooDeep => Refusal::TooDeep { change, id, property, limit: DEPTH_MAX },
        }
    }
}

/// Writes `old` with every entry of `new` joined to it.
pub(super) fn write(
    old: MapRef<'_>,
    op: WriteOp,
    new: MapRef<'_>,
    out: &mut Scratch,
) -> Result<(), Problem> {
    let (mut old, mut new) = (old.iter_encoded().peekable(), new.iter_encoded().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        if order == Ordering::Less {
            let (key, value) = old.next().expect("just seen");
            out.entry(key, value);
            continue;
        }
        let (key, value) = new.next().expect("just seen");
        let there =
            if order == Ordering::Equal { old.next().map(|(_, value)| value) } else { None };
        let written = match op {
            WriteOp::Set => {
                out.entry(key, value);
                Ok(())
            }
            WriteOp::Add => add(key, there, value, out),
            WriteOp::Append => append(key, there, value, out),
        };
        written.map_err(|why| Problem { property: key.to_owned(), why })?;
    }
}

/// Writes `old` without the named entries.
pub(super) fn unset(old: MapRef<'_>, names: NamesRef<'_>, out: &mut Scratch) {
    for (key, value) in old.iter_encoded() {
        if !names.iter().any(|name| name == key) {
            out.entry(key, value);
        }
    }
}

/// Adds numbers: whole ones exactly, else as floats. What is missing or null counts as 0.
fn add(key: &str, old: Option<&[u8]>, addend: &[u8], out: &mut Scratch) -> Result<(), Why> {
    let old = old.map_or(ValueRef::Null, ValueRef::from_checked);
    let value = if old == ValueRef::Null { ValueRef::Int(0) } else { old };
    let addend = ValueRef::from_checked(addend);
    let whole = |value| match value {
        ValueRef::Int(number) => Some(i128::from(number)),
        ValueRef::UInt(number) => Some(i128::from(number)),
        _ => None,
    };
    let show = |value: ValueRef<'_>| value.to_json().to_string();
    let sum = if let (Some(left), Some(right)) = (whole(value), whole(addend)) {
        let sum = i64::try_from(left + right);
        let overflow = |_| Why::Overflow { value: show(value), addend: show(addend) };
        Value::from(sum.map_err(overflow)?)
    } else {
        let number = |which, value: ValueRef<'_>| {
            value.as_f64().ok_or_else(|| Why::WrongType { found: describe(which, value) })
        };
        let sum = number("the property", value)? + number("what is added", addend)?;
        if !sum.is_finite() {
            return Err(Why::NotFinite { value: show(value), addend: show(addend) });
        }
        Value::from(sum)
    };
    let mut writer = std::mem::take(&mut out.number);
    writer.bytes.clear();
    writer.value(&sum, key).expect("a finite number can be stored");
    out.entry(key, &writer.bytes);
    out.number = writer;
    Ok(())
}

/// Puts an item at the end of a list. What is missing or null counts as empty.
fn append(key: &str, old: Option<&[u8]>, item: &[u8], out: &mut Scratch) -> Result<(), Why> {
    let old = old.map_or(ValueRef::Null, ValueRef::from_checked);
    let items = match old {
        ValueRef::Null => &[][..],
        ValueRef::List(items) => items.as_bytes(),
        other => return Err(Why::WrongType { found: describe("the property", other) }),
    };
    // The entries of an element lie one level down, the items of the list another one.
    if depth(ValueRef::from_checked(item)) + 2 > DEPTH_MAX {
        return Err(Why::TooDeep);
    }
    write_section(&mut out.bytes, key.as_bytes());
    out.bytes.push(list_tag());
    write_varint(&mut out.bytes, (items.len() + item.len()) as u64);
    out.bytes.extend_from_slice(items);
    out.bytes.extend_from_slice(item);
    Ok(())
}

/// The byte that begins a stored list.
fn list_tag() -> u8 {
    let mut writer = ValueWriter::default();
    writer.value(&Value::Array(Vec::new()), "").expect("an empty list can be stored");
    writer.bytes[0]
}

/// How many lists and objects a value nests.
fn depth(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        ValueRef::Map(entries) => 1 + entries.iter().map(|(_, v)| depth(v)).max().unwrap_or(0),
        _ => 0,
    }
}

/// A value for a message: what it is, and how it begins.
fn describe(which: &str, value: ValueRef<'_>) -> String {
    let what = match value {
        ValueRef::Null => return format!("{which} is null"),
        ValueRef::Bool(_) => "a truth value",
        ValueRef::Int(_) | ValueRef::UInt(_) | ValueRef::Float(_) => "a number",
        ValueRef::String(_) | ValueRef::Blob(_) => "a text",
        ValueRef::List(_) => "a list",
        ValueRef::Map(_) => "an object",
    };
    let shown = value.to_json().to_string();
    if shown.chars().count() <= 40 {
        return format!("{which} is {what}, {shown}");
    }
    let begin: String = shown.chars().take(40).collect();
    format!("{which} is {what}, {begin}…")
}
