//! The order of all values: what ORDER BY sorts by, and by which rows are the same.
//!
//! From least to greatest: maps, nodes, edges, lists, paths, texts, truths, numbers, what is not a
//! number, null. Here null is equal to null; a comparison in an expression is another matter.

use std::cmp::Ordering;

use crate::graph::ElementRef;
use crate::pattern::{Val, compare_numbers};

/// The place of a kind of value among the others.
fn rank(value: &Val<'_>) -> u8 {
    match value {
        Val::Map(_) => 0,
        Val::Element(ElementRef::Node(_)) => 1,
        Val::Element(ElementRef::Edge(_)) => 2,
        Val::List(_) => 3,
        Val::Path(_) => 4,
        Val::Text(_) => 5,
        Val::Blob(_) => 6,
        Val::Bool(_) => 7,
        Val::Float(number) if number.is_nan() => 9,
        Val::Int(_) | Val::UInt(_) | Val::Float(_) => 8,
        Val::Null => 10,
    }
}

/// How two values are ordered, whatever they are.
pub(crate) fn order(a: &Val<'_>, b: &Val<'_>) -> Ordering {
    match (a, b) {
        (Val::Bool(a), Val::Bool(b)) => a.cmp(b),
        (Val::Text(a), Val::Text(b)) => a.cmp(b),
        (Val::Blob(a), Val::Blob(b)) => {
            let hashes = || a.hash.as_bytes().cmp(b.hash.as_bytes());
            a.head.cmp(b.head).then_with(hashes)
        }
        (Val::Element(a), Val::Element(b)) => a.cmp(b),
        (Val::Path(a), Val::Path(b)) => a.cmp(b),
        (Val::List(a), Val::List(b)) => order_all(a, b),
        (Val::Map(a), Val::Map(b)) => {
            let keys = a.iter().map(|(key, _)| key).cmp(b.iter().map(|(key, _)| key));
            let values = || {
                let pairs = a.iter().zip(b).map(|((_, a), (_, b))| order(a, b));
                pairs.fold(Ordering::Equal, Ordering::then)
            };
            keys.then_with(values)
        }
        (a, b) if rank(a) == 8 && rank(b) == 8 => compare_numbers(a, b).expect("both are numbers"),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

/// How two lists are ordered: by the first items that differ, then by length.
pub(crate) fn order_all(a: &[Val<'_>], b: &[Val<'_>]) -> Ordering {
    let pairs = a.iter().zip(b).map(|(a, b)| order(a, b));
    let differing = pairs.into_iter().find(|ordering| ordering.is_ne());
    differing.unwrap_or(Ordering::Equal).then_with(|| a.len().cmp(&b.len()))
}

/// Values by which rows are told apart.
#[derive(Clone, Debug)]
pub(crate) struct Key<'a>(pub(crate) Vec<Val<'a>>);

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        order_all(&self.0, &other.0)
    }
}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key<'_> {}
