//! The radix tree under a state hash. Its shape is a function of the set of its leaves.
//!
//! Up to sixteen leaves are a bucket; more are a branch of sixteen by the next half byte of their
//! places. A tree is never changed; an update shares with the old one what stays.

use std::sync::Arc;

use crate::graph::ElementRef;

/// Where a leaf stands: the first 128 bits of the hash of the element's id.
pub(crate) type Place = [u8; 16];

/// Leaves of a bucket at most, and children of a branch.
const WIDTH: usize = 16;

/// The place of an element by its id.
pub(crate) fn place_of(id: &[u8]) -> Place {
    *blake3::hash(id).as_bytes().first_chunk().expect("a hash has 32 bytes")
}

/// An element in the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf {
    pub(crate) place: Place,
    pub(crate) hash: [u8; 32],
    pub(crate) element: ElementRef,
}

/// A part of the tree.
#[derive(Debug)]
pub(crate) struct Node {
    hash: [u8; 32],
    len: usize,
    below: Below,
}

#[derive(Debug)]
enum Below {
    Bucket(Vec<Leaf>),
    Branch([Option<Arc<Node>>; WIDTH]),
}

/// What a tree is to be told: what now stands at a place, if anything.
type Change = (Place, Option<Leaf>);

/// The half byte of a place that decides at this depth.
fn turn(place: &Place, depth: usize) -> usize {
    let byte = place[depth / 2];
    usize::from(if depth.is_multiple_of(2) { byte >> 4 } else { byte & 15 })
}

impl Node {
    pub(crate) fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// How many leaves it has.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The tree after `changes`, in any order; where one place has several, a leaf wins.
    pub(crate) fn update(base: Option<&Node>, mut changes: Vec<Change>) -> Node {
        changes.sort_unstable_by_key(|(place, leaf)| (*place, leaf.is_none()));
        changes.dedup_by_key(|(place, _)| *place);
        let updated = updated(base, &changes, 0);
        updated.unwrap_or_else(|| bucket(Vec::new()))
    }

    /// Appends all leaves, by place.
    pub(crate) fn collect(&self, leaves: &mut Vec<Leaf>) {
        match &self.below {
            Below::Bucket(own) => leaves.extend_from_slice(own),
            Below::Branch(children) => {
                children.iter().flatten().for_each(|child| child.collect(leaves));
            }
        }
    }

    /// The children, if it is a branch.
    pub(crate) fn children(&self) -> Option<&[Option<Arc<Node>>; WIDTH]> {
        if let Below::Branch(children) = &self.below { Some(children) } else { None }
    }
}

fn updated(base: Option<&Node>, changes: &[Change], depth: usize) -> Option<Node> {
    let (children, len) = match base.map(|node| (&node.below, node.len)) {
        None => return built(&merged(&[], changes), depth),
        Some((Below::Bucket(leaves), _)) => return built(&merged(leaves, changes), depth),
        Some((Below::Branch(children), len)) => (children, len),
    };
    assert!(len > WIDTH, "a few leaves are a bucket");
    let mut children = children.clone();
    let mut rest = changes;
    while let Some(((place, _), _)) = rest.split_first() {
        let at = turn(place, depth);
        let (here, after) = rest.split_at(rest.partition_point(|(p, _)| turn(p, depth) <= at));
        children[at] = updated(children[at].as_deref(), here, depth + 1).map(Arc::new);
        rest = after;
    }
    let len: usize = children.iter().flatten().map(|child| child.len).sum();
    if len > WIDTH {
        return Some(branch(children, len));
    }
    let mut leaves = Vec::with_capacity(len);
    children.iter().flatten().for_each(|child| child.collect(&mut leaves));
    built(&leaves, depth)
}

/// The leaves after the changes, by place. Both lists are sorted.
fn merged(leaves: &[Leaf], changes: &[Change]) -> Vec<Leaf> {
    let mut merged = Vec::with_capacity(leaves.len() + changes.len());
    let mut leaves = leaves.iter().peekable();
    for (place, leaf) in changes {
        while let Some(before) = leaves.next_if(|other| other.place < *place) {
            merged.push(*before);
        }
        // What stands at the place is replaced, or removed.
        let _ = leaves.next_if(|other| other.place == *place);
        merged.extend(*leaf);
    }
    merged.extend(leaves);
    merged
}

fn built(leaves: &[Leaf], depth: usize) -> Option<Node> {
    if leaves.is_empty() {
        return None;
    }
    if leaves.len() <= WIDTH {
        return Some(bucket(leaves.to_vec()));
    }
    let mut rest = leaves;
    let children = std::array::from_fn(|at| {
        let here;
        (here, rest) = rest.split_at(rest.partition_point(|leaf| turn(&leaf.place, depth) <= at));
        built(here, depth + 1).map(Arc::new)
    });
    Some(branch(children, leaves.len()))
}

fn bucket(leaves: Vec<Leaf>) -> Node {
    let mut bytes = [0u8; 1 + 32 * WIDTH];
    for (place, leaf) in bytes[1..].chunks_exact_mut(32).zip(&leaves) {
        place.copy_from_slice(&leaf.hash);
    }
    let hash = *blake3::hash(&bytes[..1 + 32 * leaves.len()]).as_bytes();
    Node { hash, len: leaves.len(), below: Below::Bucket(leaves) }
}

fn branch(children: [Option<Arc<Node>>; WIDTH], len: usize) -> Node {
    let mut bytes = [0u8; 1 + 32 * WIDTH];
    bytes[0] = 1;
    for (place, child) in bytes[1..].chunks_exact_mut(32).zip(&children) {
        if let Some(child) = child {
            place.copy_from_slice(&child.hash);
        }
    }
    let hash = *blake3::hash(&bytes).as_bytes();
    Node { hash, len, below: Below::Branch(children) }
}
