//! One node or edge as it is stored, the small numbers that name it, and how it is read.

use std::sync::Arc;

use log::{MapRef, Offset, ValueRef};
use serde_json::{Map, Value};

use super::types::Types;

/// Names a node inside one graph and its clones. Nodes are numbered as they are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeRef(pub(crate) u32);

/// Names an edge inside one graph and its clones. Edges are numbered as they are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeRef(pub(crate) u32);

/// Names a node or an edge inside one graph and its clones.
///
/// It is not stored anywhere: a snapshot numbers anew, in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElementRef {
    /// A node.
    Node(NodeRef),
    /// An edge.
    Edge(EdgeRef),
}

/// The number of a type's name, in the order in which the graph first met it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub(crate) u32);

/// Where an element was created: the canonical order of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Born {
    /// The event that created it.
    pub offset: Offset,
    /// The number of the change in that event.
    pub index: u32,
}

impl ElementRef {
    /// The node, if it is one.
    #[must_use]
    pub fn node(self) -> Option<NodeRef> {
        if let ElementRef::Node(node) = self { Some(node) } else { None }
    }

    /// The edge, if it is one.
    #[must_use]
    pub fn edge(self) -> Option<EdgeRef> {
        if let ElementRef::Edge(edge) = self { Some(edge) } else { None }
    }
}

impl From<NodeRef> for ElementRef {
    fn from(node: NodeRef) -> Self {
        ElementRef::Node(node)
    }
}

impl From<EdgeRef> for ElementRef {
    fn from(edge: EdgeRef) -> Self {
        ElementRef::Edge(edge)
    }
}

/// An element as stored. It takes one cache line and one allocation.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    /// The id, then the properties in canonical form.
    pub(crate) data: Arc<[u8]>,
    pub(crate) id_length: u32,
    pub(crate) type_id: TypeId,
    pub(crate) version: u64,
    pub(crate) changed: Offset,
    pub(crate) born_offset: Offset,
    pub(crate) born_index: u32,
    /// Both ends of an edge; of a node, `NO_END` twice.
    pub(crate) from: NodeRef,
    pub(crate) to: NodeRef,
    /// The last round of state hashing that was told of a change here.
    pub(crate) marked: u32,
}

/// Stands for the ends of a node.
pub(crate) const NO_END: NodeRef = NodeRef(u32::MAX);

impl Element {
    pub(crate) fn id_bytes(&self) -> &[u8] {
        &self.data[..self.id_length as usize]
    }

    pub(crate) fn id(&self) -> &str {
        std::str::from_utf8(self.id_bytes()).expect("an id is stored from a text")
    }

    pub(crate) fn properties(&self) -> MapRef<'_> {
        MapRef::from_checked(&self.data[self.id_length as usize..])
    }

    pub(crate) fn born(&self) -> Born {
        Born { offset: self.born_offset, index: self.born_index }
    }

    pub(crate) fn ends(&self) -> Option<(NodeRef, NodeRef)> {
        if self.from == NO_END { None } else { Some((self.from, self.to)) }
    }
}

/// A node or an edge, read in place.
#[derive(Clone, Copy)]
pub struct ElementView<'g> {
    pub(crate) reference: ElementRef,
    pub(crate) element: &'g Element,
    pub(crate) types: &'g Types,
}

impl<'g> ElementView<'g> {
    /// Its number in this graph.
    #[must_use]
    pub fn reference(self) -> ElementRef {
        self.reference
    }

    /// Its id.
    #[must_use]
    pub fn id(self) -> &'g str {
        self.element.id()
    }

    /// The name of its type.
    #[must_use]
    pub fn type_name(self) -> &'g str {
        self.types.name(self.element.type_id)
    }

    /// The number of its type.
    #[must_use]
    pub fn type_id(self) -> TypeId {
        self.element.type_id
    }

    /// Its properties.
    #[must_use]
    pub fn properties(self) -> MapRef<'g> {
        self.element.properties()
    }

    /// One property; `None` when it is missing.
    #[must_use]
    pub fn property(self, name: &str) -> Option<ValueRef<'g>> {
        self.properties().get(name)
    }

    /// How often it really changed, its creation included.
    #[must_use]
    pub fn version(self) -> u64 {
        self.element.version
    }

    /// The event that last changed it.
    #[must_use]
    pub fn changed(self) -> Offset {
        self.element.changed
    }

    /// Where it was created.
    #[must_use]
    pub fn born(self) -> Born {
        self.element.born()
    }

    /// Where it comes from and goes to, if it is an edge.
    #[must_use]
    pub fn ends(self) -> Option<(NodeRef, NodeRef)> {
        self.element.ends()
    }

    /// The properties as owned JSON.
    #[must_use]
    pub fn properties_json(self) -> Map<String, Value> {
        self.properties().to_json()
    }
}

impl std::fmt::Debug for ElementView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let properties = Value::Object(self.properties_json());
        write!(f, "({}:{} {properties} v{})", self.id(), self.type_name(), self.version())
    }
}
