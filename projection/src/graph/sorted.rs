//! A persistent ordered set of small keys: what leaves a node, what has a type, what has a value.
//!
//! Up to three keys stand in place; more are a balanced tree of shared pieces, so a hub of a
//! hundred thousand edges gains or loses one in the time of a few dozen, also right after a clone.

use std::slice::Iter;
use triomphe::Arc;

/// Keys that need no allocation.
const FEW: usize = 3;
/// Keys of a leaf, or children of an inner piece, at most.
const FULL: usize = 64;

/// An ordered set.
#[derive(Clone, Debug)]
pub(crate) enum Sorted<K> {
    Few { len: u8, keys: [K; FEW] },
    Many { len: u32, root: Arc<Piece<K>> },
}

/// A part of the tree.
#[derive(Clone, Debug)]
pub(crate) enum Piece<K> {
    Leaf(Vec<K>),
    Inner(Vec<Child<K>>),
}

/// A piece, the least key in it and how many keys it has.
#[derive(Clone, Debug)]
pub(crate) struct Child<K> {
    first: K,
    len: u32,
    piece: Arc<Piece<K>>,
}

/// What became of an insertion into a piece.
enum Inserted<K> {
    Present,
    Added,
    /// Added, and the piece gave its upper part away.
    Split(Child<K>),
}

impl<K: Copy + Default> Default for Sorted<K> {
    fn default() -> Self {
        Sorted::Few { len: 0, keys: [K::default(); FEW] }
    }
}

impl<K: Copy + Ord + Default> Sorted<K> {
    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Sorted::Few { len, .. } => usize::from(*len),
            Sorted::Many { len, .. } => *len as usize,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a key; whether it was absent.
    pub(crate) fn insert(&mut self, key: K) -> bool {
        if let Sorted::Few { len, keys } = self {
            let count = usize::from(*len);
            let Err(at) = keys[..count].binary_search(&key) else { return false };
            if count < FEW {
                keys.copy_within(at..count, at + 1);
                keys[at] = key;
                *len += 1;
                return true;
            }
            let mut leaf = Vec::with_capacity(2 * FEW + 2);
            leaf.extend_from_slice(keys);
            *self = Sorted::Many { len: FEW as u32, root: Arc::new(Piece::Leaf(leaf)) };
        }
        let Sorted::Many { len, root } = self else { unreachable!("few keys were handled above") };
        match Arc::make_mut(root).insert(key) {
            Inserted::Present => return false,
            Inserted::Added => {}
            Inserted::Split(right) => {
                let first = root.first();
                let left = Child { first, len: *len + 1 - right.len, piece: Arc::clone(root) };
                *root = Arc::new(Piece::Inner(vec![left, right]));
            }
        }
        *len += 1;
        true
    }

    /// Takes a key away; whether it was there.
    pub(crate) fn remove(&mut self, key: K) -> bool {
        match self {
            Sorted::Few { len, keys } => {
                let count = usize::from(*len);
                let Ok(at) = keys[..count].binary_search(&key) else { return false };
                keys.copy_within(at + 1..count, at);
                *len -= 1;
            }
            Sorted::Many { len, root } => {
                if !Arc::make_mut(root).remove(key) {
                    return false;
                }
                *len -= 1;
                while let Piece::Inner(children) = &**root
                    && let [only] = children.as_slice()
                {
                    *root = Arc::clone(&only.piece);
                }
                if *len as usize <= FEW {
                    *self = self.iter().collect_few();
                }
            }
        }
        true
    }

    /// All keys in order.
    pub(crate) fn iter(&self) -> Keys<'_, K> {
        match self {
            Sorted::Few { len, keys } => Keys::of(&keys[..usize::from(*len)]),
            Sorted::Many { root, .. } => {
                let mut keys = Keys::of(&[]);
                keys.descend(root);
                keys
            }
        }
    }

    /// The keys from `low` to below `high`, in order.
    pub(crate) fn range(&self, low: K, high: K) -> Keys<'_, K> {
        let mut keys = match self {
            Sorted::Few { len, keys } => {
                let keys = &keys[..usize::from(*len)];
                Keys::of(&keys[keys.partition_point(|key| *key < low)..])
            }
            Sorted::Many { root, .. } => {
                let mut keys = Keys::of(&[]);
                keys.descend_to(root, low);
                keys
            }
        };
        keys.end = Some(high);
        keys
    }

    /// How many keys are below `key`.
    pub(crate) fn rank(&self, key: K) -> usize {
        match self {
            Sorted::Few { len, keys } => {
                keys[..usize::from(*len)].partition_point(|other| *other < key)
            }
            Sorted::Many { root, .. } => root.rank(key),
        }
    }
}

impl<K: Copy + Ord> Piece<K> {
    fn len(&self) -> usize {
        match self {
            Piece::Leaf(keys) => keys.len(),
            Piece::Inner(children) => children.len(),
        }
    }

    fn first(&self) -> K {
        match self {
            Piece::Leaf(keys) => keys[0],
            Piece::Inner(children) => children[0].first,
        }
    }

    fn rank(&self, key: K) -> usize {
        match self {
            Piece::Leaf(keys) => keys.partition_point(|other| *other < key),
            Piece::Inner(children) => {
                let at = child_of(children, key);
                let before: usize = children[..at].iter().map(|child| child.len as usize).sum();
                before + children[at].piece.rank(key)
            }
        }
    }

    fn insert(&mut self, key: K) -> Inserted<K> {
        match self {
            Piece::Leaf(keys) => {
                // Keys mostly come in order.
                let at = if keys.last().is_some_and(|last| *last < key) {
                    Err(keys.len())
                } else {
                    keys.binary_search(&key)
                };
                let Err(at) = at else { return Inserted::Present };
                let Some(mut right) = split(keys, at) else {
                    keys.insert(at, key);
                    return Inserted::Added;
                };
                if at <= keys.len() && !right.is_empty() {
                    keys.insert(at, key);
                } else {
                    right.insert(at - keys.len(), key);
                }
                let (first, len) = (right[0], right.len() as u32);
                Inserted::Split(Child { first, len, piece: Arc::new(Piece::Leaf(right)) })
            }
            Piece::Inner(children) => {
                let at = child_of(children, key);
                let child = &mut children[at];
                let right = match Arc::make_mut(&mut child.piece).insert(key) {
                    Inserted::Present => return Inserted::Present,
                    Inserted::Added => None,
                    Inserted::Split(right) => Some(right),
                };
                child.first = child.first.min(key);
                child.len += 1;
                let Some(right) = right else { return Inserted::Added };
                child.len -= right.len;
                add_child(children, at + 1, right)
            }
        }
    }

    fn remove(&mut self, key: K) -> bool {
        match self {
            Piece::Leaf(keys) => {
                let Ok(at) = keys.binary_search(&key) else { return false };
                keys.remove(at);
            }
            Piece::Inner(children) => {
                let at = child_of(children, key);
                let child = &mut children[at];
                if !Arc::make_mut(&mut child.piece).remove(key) {
                    return false;
                }
                child.len -= 1;
                if child.len == 0 {
                    children.remove(at);
                } else {
                    child.first = child.piece.first();
                    join_neighbors(children, at);
                }
            }
        }
        true
    }
}

/// The child in whose range `key` lies; the first one for a key below all.
fn child_of<K: Copy + Ord>(children: &[Child<K>], key: K) -> usize {
    match children.last() {
        Some(last) if last.first <= key => children.len() - 1,
        _ => children.partition_point(|child| child.first <= key).saturating_sub(1),
    }
}

/// The upper part of what is full; nothing of it when the new place is at the end, since keys
/// mostly come in order and full pieces are then best. `None` if there is room.
fn split<T>(items: &mut Vec<T>, at: usize) -> Option<Vec<T>> {
    if items.len() < FULL {
        return None;
    }
    let cut = if at == items.len() { items.len() } else { items.len() / 2 };
    Some(items.split_off(cut))
}

fn add_child<K: Copy + Ord>(
    children: &mut Vec<Child<K>>,
    at: usize,
    child: Child<K>,
) -> Inserted<K> {
    let Some(mut right) = split(children, at) else {
        children.insert(at, child);
        return Inserted::Added;
    };
    if at <= children.len() && !right.is_empty() {
        children.insert(at, child);
    } else {
        right.insert(at - children.len(), child);
    }
    let (first, len) = (right[0].first, right.iter().map(|child| child.len).sum());
    Inserted::Split(Child { first, len, piece: Arc::new(Piece::Inner(right)) })
}

/// Joins a piece that has become small with the one beside it, where both fit well into one.
fn join_neighbors<K: Copy + Ord>(children: &mut Vec<Child<K>>, at: usize) {
    if children.len() < 2 || children[at].piece.len() >= FULL / 4 {
        return;
    }
    let left = at.saturating_sub(1);
    if children[left].piece.len() + children[left + 1].piece.len() > FULL * 3 / 4 {
        return;
    }
    let right = children.remove(left + 1);
    let left = &mut children[left];
    left.len += right.len;
    match (Arc::make_mut(&mut left.piece), Arc::unwrap_or_clone(right.piece)) {
        (Piece::Leaf(keys), Piece::Leaf(more)) => keys.extend(more),
        (Piece::Inner(children), Piece::Inner(more)) => children.extend(more),
        _ => unreachable!("all leaves are equally deep"),
    }
}

/// Keys in order.
#[derive(Clone, Debug)]
pub(crate) struct Keys<'a, K> {
    keys: Iter<'a, K>,
    above: Vec<Iter<'a, Child<K>>>,
    end: Option<K>,
}

impl<'a, K: Copy + Ord> Keys<'a, K> {
    fn of(keys: &'a [K]) -> Self {
        Keys { keys: keys.iter(), above: Vec::new(), end: None }
    }

    /// No keys.
    pub(crate) fn none() -> Self {
        Self::of(&[])
    }

    fn descend(&mut self, mut piece: &'a Piece<K>) {
        loop {
            match piece {
                Piece::Leaf(keys) => {
                    self.keys = keys.iter();
                    return;
                }
                Piece::Inner(children) => {
                    let (first, rest) = children.split_first().expect("no piece is empty");
                    self.above.push(rest.iter());
                    piece = &first.piece;
                }
            }
        }
    }

    fn descend_to(&mut self, mut piece: &'a Piece<K>, low: K) {
        loop {
            match piece {
                Piece::Leaf(keys) => {
                    self.keys = keys[keys.partition_point(|key| *key < low)..].iter();
                    return;
                }
                Piece::Inner(children) => {
                    let at = child_of(children, low);
                    self.above.push(children[at + 1..].iter());
                    piece = &children[at].piece;
                }
            }
        }
    }
}

impl<K: Copy + Ord + Default> Keys<'_, K> {
    fn collect_few(self) -> Sorted<K> {
        let (mut len, mut keys) = (0u8, [K::default(); FEW]);
        for key in self {
            keys[usize::from(len)] = key;
            len += 1;
        }
        Sorted::Few { len, keys }
    }
}

impl<K: Copy + Ord> Iterator for Keys<'_, K> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        loop {
            if let Some(&key) = self.keys.next() {
                if self.end.is_some_and(|end| key >= end) {
                    *self = Keys::of(&[]);
                    return None;
                }
                return Some(key);
            }
            match self.above.last_mut()?.next() {
                Some(child) => self.descend(&child.piece),
                None => drop(self.above.pop()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::{any, prop};
    use proptest::{prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::{Piece, Sorted};

    /// Pieces are never empty, and counts and least keys are right.
    fn check(piece: &Piece<u32>, root: bool) -> usize {
        match piece {
            Piece::Leaf(keys) => {
                assert!(keys.is_sorted() && (root || !keys.is_empty()));
                keys.len()
            }
            Piece::Inner(children) => {
                assert!(!children.is_empty());
                let count = |child: &super::Child<u32>| {
                    assert_eq!(child.first, child.piece.first());
                    assert_eq!(child.len as usize, check(&child.piece, false));
                    child.len as usize
                };
                children.iter().map(count).sum()
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_a_set(
            runs in prop::collection::vec(
                (
                    prop_oneof![0u32..100, 0u32..20_000],
                    1u32..400,
                    any::<bool>(),
                    any::<bool>(),
                ),
                1..40,
            ),
            low in 0u32..20_000,
            width in 0u32..5_000,
        ) {
            let (mut set, mut model) = (Sorted::default(), BTreeSet::new());
            let mut kept = Vec::new();
            for (start, count, add, backward) in runs {
                kept.push((set.clone(), model.clone()));
                for nth in 0..count {
                    let key = if backward { start + count - nth } else { start + nth };
                    if add {
                        prop_assert_eq!(set.insert(key), model.insert(key));
                    } else {
                        prop_assert_eq!(set.remove(key), model.remove(&key));
                    }
                }
            }
            kept.push((set, model));
            for (set, model) in kept {
                if let Sorted::Many { len, root } = &set {
                    prop_assert_eq!(check(root, true), *len as usize);
                }
                prop_assert_eq!(set.len(), model.len());
                prop_assert!(set.iter().eq(model.iter().copied()));
                let high = low + width;
                prop_assert!(set.range(low, high).eq(model.range(low..high).copied()));
                prop_assert_eq!(set.rank(low), model.range(..low).count());
            }
        }
    }
}
