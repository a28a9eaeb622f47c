//! Indexes by value: from the value of one property of one type to the elements that have it.
//!
//! Numbers are found by what they are worth: `1` and `1.0` are two stored values, and equal ones to
//! a pattern. `null` is found by nobody, since nothing equals it.

use log::ValueRef;
use smol_str::SmolStr;

use super::element::{Element, ElementRef};
use super::hash::{hash_bytes, mix};
use super::sorted::{Keys, Sorted};

/// The index of one property of one type.
#[derive(Clone, Debug)]
pub(crate) struct ValueIndex {
    pub(crate) type_name: SmolStr,
    pub(crate) property: SmolStr,
    /// Hash of the value, then the element: equal values stand together, by creation.
    entries: Sorted<(u64, u32)>,
}

impl ValueIndex {
    pub(crate) fn new(type_name: &str, property: &str) -> Self {
        let entries = Sorted::default();
        ValueIndex { type_name: type_name.into(), property: property.into(), entries }
    }

    fn key(&self, element: &Element) -> Option<u64> {
        value_hash(element.properties().get(&self.property)?)
    }

    pub(crate) fn add(&mut self, reference: ElementRef, element: &Element) {
        if let Some(key) = self.key(element) {
            assert!(self.entries.insert((key, reference.packed())), "an element is indexed once");
        }
    }

    pub(crate) fn remove(&mut self, reference: ElementRef, element: &Element) {
        if let Some(key) = self.key(element) {
            assert!(self.entries.remove((key, reference.packed())), "every element is indexed");
        }
    }

    pub(crate) fn replace(&mut self, reference: ElementRef, old: &Element, new: &Element) {
        if self.key(old) != self.key(new) {
            self.remove(reference, old);
            self.add(reference, new);
        }
    }

    /// The elements whose value may be `value`, packed: nodes before edges, each by creation.
    pub(crate) fn candidates(&self, value: ValueRef<'_>) -> impl Iterator<Item = u32> {
        let keys = match value_hash(value) {
            Some(key) => self.entries.range((key, 0), (key, u32::MAX)),
            None => Keys::none(),
        };
        keys.map(|(_, element)| element)
    }

    /// How many elements have a value of this hash.
    pub(crate) fn count(&self, value: ValueRef<'_>) -> usize {
        let Some(key) = value_hash(value) else { return 0 };
        self.entries.rank((key, u32::MAX)) - self.entries.rank((key, 0))
    }
}

/// What a number is worth: whole numbers as such, whatever they are stored as.
enum Worth {
    Whole(i128),
    Fraction(f64),
}

fn worth(value: ValueRef<'_>) -> Option<Worth> {
    // Beyond 2^64 there is no whole number to be equal to.
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    Some(match value {
        ValueRef::Int(number) => Worth::Whole(i128::from(number)),
        ValueRef::UInt(number) => Worth::Whole(i128::from(number)),
        ValueRef::Float(number) if number.fract() == 0.0 && number.abs() <= LIMIT => {
            Worth::Whole(number as i128)
        }
        ValueRef::Float(number) => Worth::Fraction(number),
        _ => return None,
    })
}

/// A hash that is the same for equal values; `None` for null.
fn value_hash(value: ValueRef<'_>) -> Option<u64> {
    let tagged = |tag: u64, hash: u64| mix(hash ^ 0x2545_f491_4f6c_dd1d, tag | 1 << 40);
    Some(match value {
        ValueRef::Null => return None,
        ValueRef::Bool(truth) => tagged(1, u64::from(truth)),
        ValueRef::Int(_) | ValueRef::UInt(_) | ValueRef::Float(_) => match worth(value)? {
            Worth::Whole(number) => {
                tagged(2, number as u64 ^ ((number >> 64) as u64).rotate_left(7))
            }
            Worth::Fraction(number) => tagged(3, number.to_bits()),
        },
        ValueRef::String(text) => tagged(4, hash_bytes(text.as_bytes())),
        ValueRef::Blob(blob) => tagged(5, hash_bytes(blob.hash.as_bytes())),
        ValueRef::List(items) => items
            .iter()
            .fold(tagged(6, 0), |hash, item| tagged(6, hash ^ value_hash(item).unwrap_or(9))),
        ValueRef::Map(entries) => entries.iter().fold(tagged(7, 0), |hash, (key, value)| {
            let key = hash_bytes(key.as_bytes());
            tagged(7, hash ^ key.rotate_left(9) ^ value_hash(value).unwrap_or(9))
        }),
    })
}

/// Whether two values are equal to a pattern: numbers by what they are worth, null to nothing.
pub(crate) fn equal_values(left: ValueRef<'_>, right: ValueRef<'_>) -> bool {
    match (left, right) {
        (ValueRef::Null, _) | (_, ValueRef::Null) => false,
        (ValueRef::List(left), ValueRef::List(right)) => {
            let (mut left, mut right) = (left.iter(), right.iter());
            loop {
                match (left.next(), right.next()) {
                    (None, None) => return true,
                    (Some(left), Some(right)) if equal_values(left, right) => {}
                    _ => return false,
                }
            }
        }
        (ValueRef::Map(left), ValueRef::Map(right)) => {
            let (mut left, mut right) = (left.iter(), right.iter());
            loop {
                match (left.next(), right.next()) {
                    (None, None) => return true,
                    (Some(left), Some(right))
                        if left.0 == right.0 && equal_values(left.1, right.1) => {}
                    _ => return false,
                }
            }
        }
        _ => match (worth(left), worth(right)) {
            (Some(Worth::Whole(left)), Some(Worth::Whole(right))) => left == right,
            (Some(Worth::Fraction(left)), Some(Worth::Fraction(right))) => left == right,
            (None, None) => left == right,
            _ => false,
        },
    }
}
