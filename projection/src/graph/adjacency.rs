//! The edges at a node, by type and then by creation, in both directions.

use super::element::{EdgeRef, TypeId};
use super::sorted::{Keys, Sorted};

/// The edges at one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Adjacency {
    /// The edges that leave it.
    pub(crate) outward: EdgeSet,
    /// The edges that reach it.
    pub(crate) inward: EdgeSet,
}

/// Edges by type and creation. The key is the type in the upper half, the edge in the lower half.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeSet(Sorted<u64>);

/// The key of an edge in an `EdgeSet`.
pub(crate) fn edge_key(type_id: TypeId, edge: EdgeRef) -> u64 {
    u64::from(type_id.0) << 32 | u64::from(edge.0)
}

/// The edge of a key.
pub(crate) fn edge_of(key: u64) -> EdgeRef {
    EdgeRef(key as u32)
}

/// The keys of a type, or all of them.
pub(crate) fn key_range(type_id: Option<TypeId>) -> (u64, u64) {
    match type_id {
        Some(TypeId(number)) => (u64::from(number) << 32, (u64::from(number) + 1) << 32),
        None => (0, u64::MAX),
    }
}

impl EdgeSet {
    pub(crate) fn insert(&mut self, key: u64) {
        assert!(self.0.insert(key), "an edge joins its ends once");
    }

    pub(crate) fn remove(&mut self, key: u64) {
        assert!(self.0.remove(key), "an edge is known at both ends");
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn keys(&self, type_id: Option<TypeId>) -> Keys<'_, u64> {
        let (low, high) = key_range(type_id);
        self.0.range(low, high)
    }

    pub(crate) fn count(&self, type_id: Option<TypeId>) -> usize {
        let Some(_) = type_id else { return self.0.len() };
        let (low, high) = key_range(type_id);
        self.0.rank(high) - self.0.rank(low)
    }
}
