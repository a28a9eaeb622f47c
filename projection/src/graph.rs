//! The graph: typed nodes and directed edges, in a structure whose copies are cheap.

mod element;
mod types;

pub(crate) use element::Element;
pub use element::{Born, EdgeRef, ElementRef, ElementView, NodeRef, TypeId};

use log::Head;

/// A world: what a prefix of a log folds into.
///
/// `World` has what patterns read; the fold (`apply`, `undo`) is its only writer.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    head: Head,
}

impl Graph {
    /// The graph of an empty branch.
    #[must_use]
    pub fn new() -> Self {
        Graph::default()
    }

    /// The head of the branch whose world this is.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// The node or edge with this id.
    #[must_use]
    pub fn element(&self, _id: &str) -> Option<ElementView<'_>> {
        todo!("skeleton")
    }

    /// The node with this id.
    #[must_use]
    pub fn node(&self, _id: &str) -> Option<ElementView<'_>> {
        todo!("skeleton")
    }

    /// The edge with this id.
    #[must_use]
    pub fn edge(&self, _id: &str) -> Option<ElementView<'_>> {
        todo!("skeleton")
    }

    /// Up to `limit` elements whose id begins with `prefix`, by id.
    #[must_use]
    pub fn find_prefix(&self, _prefix: &str, _limit: usize) -> Vec<ElementView<'_>> {
        todo!("skeleton")
    }

    /// How many nodes there are.
    #[must_use]
    pub fn node_count(&self) -> usize {
        todo!("skeleton")
    }

    /// How many edges there are.
    #[must_use]
    pub fn edge_count(&self) -> usize {
        todo!("skeleton")
    }

    /// How many nodes have this type.
    #[must_use]
    pub fn node_count_of_type(&self, _type_id: TypeId) -> usize {
        todo!("skeleton")
    }

    /// How many edges have this type.
    #[must_use]
    pub fn edge_count_of_type(&self, _type_id: TypeId) -> usize {
        todo!("skeleton")
    }

    /// How many edges (of a type) leave a node.
    #[must_use]
    pub fn out_degree(&self, _node: NodeRef, _type_id: Option<TypeId>) -> usize {
        todo!("skeleton")
    }

    /// How many edges (of a type) reach a node.
    #[must_use]
    pub fn in_degree(&self, _node: NodeRef, _type_id: Option<TypeId>) -> usize {
        todo!("skeleton")
    }

    /// From now on, elements of this type can be found by the value of this property. Building the
    /// index reads every element of the type once. Indexes are no part of the fold: a snapshot
    /// does not hold them.
    pub fn declare_index(&mut self, _type_name: &str, _property: &str) {
        todo!("skeleton")
    }

    /// Whether `declare_index` was called for type and property.
    #[must_use]
    pub fn has_index(&self, _type_name: &str, _property: &str) -> bool {
        todo!("skeleton")
    }
}
