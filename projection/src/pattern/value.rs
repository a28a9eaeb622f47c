//! Values as expressions compute them, and how they compare.
//!
//! Numbers compare by what they are, exactly, whatever they are stored as. A comparison that has no
//! answer is `None`, which is how *null* appears among truths: never an error.

use std::borrow::Cow;
use std::cmp::Ordering;

use log::{BlobRef, ValueRef};
use serde_json::Value;

use crate::graph::ElementRef;
use crate::pattern::syntax::{Arithmetic, Comparison, Literal};

/// A value while an expression is computed. Texts are borrowed from where they are stored.
#[derive(Clone, Debug)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// A whole number above `i64::MAX`.
    UInt(u64),
    Float(f64),
    Text(Cow<'a, str>),
    Blob(BlobRef<'a>),
    List(Vec<Val<'a>>),
    /// Sorted by key.
    Map(Vec<(Cow<'a, str>, Val<'a>)>),
    Element(ElementRef),
    /// A node, then edges each with the node it leads to.
    Path(Vec<ElementRef>),
}

impl<'a> From<ValueRef<'a>> for Val<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        match value {
            ValueRef::Null => Val::Null,
            ValueRef::Bool(truth) => Val::Bool(truth),
            ValueRef::Int(number) => Val::Int(number),
            ValueRef::UInt(number) => Val::UInt(number),
            ValueRef::Float(number) => Val::Float(number),
            ValueRef::String(text) => Val::Text(Cow::Borrowed(text)),
            ValueRef::List(list) => Val::List(list.iter().map(Val::from).collect()),
            ValueRef::Map(map) => {
                let entries = map.iter().map(|(key, value)| (Cow::Borrowed(key), value.into()));
                Val::Map(entries.collect())
            }
            ValueRef::Blob(blob) => Val::Blob(blob),
        }
    }
}

impl<'a> From<&'a Literal> for Val<'a> {
    fn from(literal: &'a Literal) -> Self {
        match literal {
            Literal::Null => Val::Null,
            Literal::Bool(truth) => Val::Bool(*truth),
            Literal::Int(number) => Val::Int(*number),
            Literal::UInt(number) => Val::UInt(*number),
            Literal::Float(number) => Val::Float(*number),
            Literal::Text(text) => Val::Text(Cow::Borrowed(text)),
        }
    }
}

impl<'a> From<&'a Value> for Val<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Val::Null,
            Value::Bool(truth) => Val::Bool(*truth),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(int), _, _) => Val::Int(int),
                (_, Some(uint), _) => Val::UInt(uint),
                (_, _, Some(float)) => Val::Float(float),
                _ => Val::Null,
            },
            Value::String(text) => Val::Text(Cow::Borrowed(text)),
            Value::Array(items) => Val::List(items.iter().map(Val::from).collect()),
            Value::Object(entries) => {
                let mut map: Vec<_> =
                    entries.iter().map(|(k, v)| (Cow::Borrowed(k.as_str()), v.into())).collect();
                map.sort_by(|(a, _): &(Cow<'_, str>, Val<'_>), (b, _)| a.cmp(b));
                Val::Map(map)
            }
        }
    }
}

impl<'a> Val<'a> {
    /// Whether it is true or false; null for null and for anything that is no truth.
    pub(crate) fn truth(&self) -> Option<bool> {
        if let Val::Bool(truth) = self { Some(*truth) } else { None }
    }

    /// A truth as a value.
    pub(crate) fn of_truth(truth: Option<bool>) -> Val<'a> {
        truth.map_or(Val::Null, Val::Bool)
    }

    /// A whole number as a value; null when it is too large to be stored.
    pub(crate) fn whole(number: i128) -> Val<'a> {
        match (i64::try_from(number), u64::try_from(number)) {
            (Ok(int), _) => Val::Int(int),
            (_, Ok(uint)) => Val::UInt(uint),
            _ => Val::Null,
        }
    }

    pub(crate) fn as_whole(&self) -> Option<i128> {
        match self {
            Val::Int(number) => Some(i128::from(*number)),
            Val::UInt(number) => Some(i128::from(*number)),
            _ => None,
        }
    }

    pub(crate) fn as_float(&self) -> Option<f64> {
        match self {
            Val::Int(number) => Some(*number as f64),
            Val::UInt(number) => Some(*number as f64),
            Val::Float(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Val::Int(_) | Val::UInt(_) | Val::Float(_))
    }

    /// The same value as a stored one to look up in an index: no null, list, map or element.
    pub(crate) fn as_key(&self) -> Option<ValueRef<'_>> {
        Some(match self {
            Val::Bool(truth) => ValueRef::Bool(*truth),
            Val::Int(number) => ValueRef::Int(*number),
            Val::UInt(number) => ValueRef::UInt(*number),
            Val::Float(number) => ValueRef::Float(*number),
            Val::Text(text) => ValueRef::String(text),
            Val::Blob(blob) => ValueRef::Blob(*blob),
            _ => return None,
        })
    }

    /// The field of a map, or of the reference to a long text.
    pub(crate) fn field(self, name: &str) -> Val<'a> {
        match self {
            Val::Map(entries) => {
                let found = entries.into_iter().find(|(key, _)| key == name);
                found.map_or(Val::Null, |(_, value)| value)
            }
            Val::Blob(blob) => match name {
                "hash" => Val::Text(Cow::Owned(blob.hash.to_string())),
                "size" => Val::whole(i128::from(blob.size)),
                "head" => Val::Text(Cow::Borrowed(blob.head)),
                _ => Val::Null,
            },
            _ => Val::Null,
        }
    }

    /// What it is called in messages.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Val::Null => "null",
            Val::Bool(_) => "a truth",
            Val::Int(_) | Val::UInt(_) | Val::Float(_) => "a number",
            Val::Text(_) => "a text",
            Val::Blob(_) => "a long text that is stored apart",
            Val::List(_) => "a list",
            Val::Map(_) => "a map",
            Val::Element(ElementRef::Node(_)) => "a node",
            Val::Element(ElementRef::Edge(_)) => "an edge",
            Val::Path(_) => "a path",
        }
    }

    /// The item at a place, counted from the end if negative.
    pub(crate) fn item(self, place: i64) -> Val<'a> {
        let Val::List(mut items) = self else { return Val::Null };
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let from_start = if place < 0 { place + length } else { place };
        match usize::try_from(from_start) {
            Ok(place) if place < items.len() => items.swap_remove(place),
            _ => Val::Null,
        }
    }
}

/// Whether two values are equal; null if a null decides it. Values of different types are not.
pub(crate) fn equal(a: &Val<'_>, b: &Val<'_>) -> Option<bool> {
    match (a, b) {
        (Val::Null, _) | (_, Val::Null) => None,
        (Val::Bool(a), Val::Bool(b)) => Some(a == b),
        (Val::Text(a), Val::Text(b)) => Some(a == b),
        (Val::Element(a), Val::Element(b)) => Some(a == b),
        (Val::Path(a), Val::Path(b)) => Some(a == b),
        (Val::Blob(a), Val::Blob(b)) => Some(a.hash == b.hash),
        (Val::Blob(blob), Val::Text(text)) | (Val::Text(text), Val::Blob(blob)) => {
            Some(is_text_of(blob, text))
        }
        (Val::List(a), Val::List(b)) => {
            if a.len() != b.len() {
                return Some(false);
            }
            all(a.iter().zip(b).map(|(a, b)| equal(a, b)))
        }
        (Val::Map(a), Val::Map(b)) => {
            if !a.iter().map(|(key, _)| key).eq(b.iter().map(|(key, _)| key)) {
                return Some(false);
            }
            all(a.iter().zip(b).map(|((_, a), (_, b))| equal(a, b)))
        }
        (a, b) if a.is_number() && b.is_number() => {
            Some(compare_numbers(a, b) == Some(Ordering::Equal))
        }
        _ => Some(false),
    }
}

fn is_text_of(blob: &BlobRef<'_>, text: &str) -> bool {
    blob.size == text.len() as u64
        && blake3::hash(text.as_bytes()).as_bytes() == blob.hash.as_bytes()
}

/// True if all are, false if one is, else null.
pub(crate) fn all(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut out = Some(true);
    for truth in truths {
        match truth {
            Some(false) => return Some(false),
            None => out = None,
            Some(true) => {}
        }
    }
    out
}

/// The answer of a comparison.
pub(crate) fn compare(op: Comparison, a: &Val<'_>, b: &Val<'_>) -> Option<bool> {
    let holds = match op {
        Comparison::Equal => return equal(a, b),
        Comparison::NotEqual => return equal(a, b).map(|same| !same),
        Comparison::Less => Ordering::is_lt,
        Comparison::LessOrEqual => Ordering::is_le,
        Comparison::Greater => Ordering::is_gt,
        Comparison::GreaterOrEqual => Ordering::is_ge,
    };
    if a.is_number() && b.is_number() {
        // What is not a number is neither less nor greater than one.
        return Some(compare_numbers(a, b).is_some_and(holds));
    }
    order(a, b).map(holds)
}

/// How two values of one type are ordered; null for others.
fn order(a: &Val<'_>, b: &Val<'_>) -> Option<Ordering> {
    match (a, b) {
        (Val::Bool(a), Val::Bool(b)) => Some(a.cmp(b)),
        (Val::Text(a), Val::Text(b)) => Some(a.cmp(b)),
        (Val::List(a), Val::List(b)) => {
            for (a, b) in a.iter().zip(b) {
                match order(a, b)? {
                    Ordering::Equal => {}
                    other => return Some(other),
                }
            }
            Some(a.len().cmp(&b.len()))
        }
        (a, b) if a.is_number() && b.is_number() => compare_numbers(a, b),
        _ => None,
    }
}

/// How two numbers are ordered, exactly; `None` if one is not a number.
pub(crate) fn compare_numbers(a: &Val<'_>, b: &Val<'_>) -> Option<Ordering> {
    match (a, b) {
        (Val::Float(a), Val::Float(b)) => a.partial_cmp(b),
        (Val::Float(a), b) => compare_whole(b.as_whole()?, *a).map(Ordering::reverse),
        (a, Val::Float(b)) => compare_whole(a.as_whole()?, *b),
        (a, b) => Some(a.as_whole()?.cmp(&b.as_whole()?)),
    }
}

/// How a whole number is ordered against a float.
fn compare_whole(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Beyond this lies no stored whole number; inside it, the conversion of the floor is exact.
    if float.abs() >= 2f64.powi(70) {
        return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let floor = float.floor();
    let above = if float > floor { Ordering::Less } else { Ordering::Equal };
    Some(whole.cmp(&(floor as i128)).then(above))
}

/// `a op b`; null where it has no value.
pub(crate) fn arithmetic<'a>(op: Arithmetic, a: Val<'a>, b: Val<'a>) -> Val<'a> {
    match (op, a, b) {
        (_, Val::Null, _) | (_, _, Val::Null) => Val::Null,
        (Arithmetic::Add, Val::List(mut a), Val::List(b)) => {
            a.extend(b);
            Val::List(a)
        }
        (Arithmetic::Add, Val::List(mut a), b) => {
            a.push(b);
            Val::List(a)
        }
        (Arithmetic::Add, a, Val::List(mut b)) => {
            b.insert(0, a);
            Val::List(b)
        }
        (Arithmetic::Add, Val::Text(a), b) => joined(Some(a), text_of(b)),
        (Arithmetic::Add, a, Val::Text(b)) => joined(text_of(a), Some(b)),
        (op, a, b) => match (op, a.as_whole(), b.as_whole()) {
            (Arithmetic::Power, ..) => floats(op, &a, &b),
            (_, Some(a), Some(b)) => wholes(op, a, b),
            _ => floats(op, &a, &b),
        },
    }
}

/// A text, or a number as one; `None` of anything else.
pub(crate) fn text_of(value: Val<'_>) -> Option<Cow<'_, str>> {
    match value {
        Val::Text(text) => Some(text),
        Val::Int(number) => Some(number.to_string().into()),
        Val::UInt(number) => Some(number.to_string().into()),
        // The debug form always shows that it is not a whole number.
        Val::Float(number) => Some(format!("{number:?}").into()),
        _ => None,
    }
}

fn joined<'a>(a: Option<Cow<'a, str>>, b: Option<Cow<'a, str>>) -> Val<'a> {
    match (a, b) {
        (Some(a), Some(b)) => Val::Text(a + b),
        _ => Val::Null,
    }
}

fn wholes<'a>(op: Arithmetic, a: i128, b: i128) -> Val<'a> {
    // Both are below 2^64 in magnitude, so nothing here can leave 128 bits.
    match op {
        Arithmetic::Add => Val::whole(a + b),
        Arithmetic::Subtract => Val::whole(a - b),
        Arithmetic::Multiply => a.checked_mul(b).map_or(Val::Null, Val::whole),
        Arithmetic::Divide => a.checked_div(b).map_or(Val::Null, Val::whole),
        Arithmetic::Remainder => a.checked_rem(b).map_or(Val::Null, Val::whole),
        Arithmetic::Power => unreachable!("a power is computed in floats"),
    }
}

fn floats<'a>(op: Arithmetic, a: &Val<'_>, b: &Val<'_>) -> Val<'a> {
    let (Some(a), Some(b)) = (a.as_float(), b.as_float()) else { return Val::Null };
    Val::Float(match op {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide => a / b,
        Arithmetic::Remainder => a % b,
        Arithmetic::Power => a.powf(b),
    })
}
