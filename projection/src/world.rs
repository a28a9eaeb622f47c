//! A graph as patterns read it: as it is, or as it was before its last event.

mod before;

pub use before::Before;

use log::ValueRef;

use crate::graph::{EdgeRef, ElementRef, ElementView, Graph, NodeRef, TypeId, edge_of};

/// What can be asked of a graph, now or before its last event. Everything is listed in order of
/// creation; edges at a node, asked for without a type, come by type first.
pub trait World {
    /// The number of a type; `None` if no element ever had it.
    fn type_id(&self, name: &str) -> Option<TypeId>;
    /// The name of a type.
    fn type_name(&self, type_id: TypeId) -> &str;
    /// The element with this id.
    fn find(&self, id: &str) -> Option<ElementRef>;
    /// Reads an element; `None` if it is not there.
    fn at(&self, element: ElementRef) -> Option<ElementView<'_>>;
    /// All nodes.
    fn nodes(&self) -> impl Iterator<Item = NodeRef>;
    /// All edges.
    fn edges(&self) -> impl Iterator<Item = EdgeRef>;
    /// The nodes of a type.
    fn nodes_of_type(&self, type_id: TypeId) -> impl Iterator<Item = NodeRef>;
    /// The edges of a type.
    fn edges_of_type(&self, type_id: TypeId) -> impl Iterator<Item = EdgeRef>;
    /// The edges that leave a node.
    fn out_edges(&self, node: NodeRef, type_id: Option<TypeId>) -> impl Iterator<Item = EdgeRef>;
    /// The edges that reach a node.
    fn in_edges(&self, node: NodeRef, type_id: Option<TypeId>) -> impl Iterator<Item = EdgeRef>;
    /// The nodes of a type whose property equals a value (`1` and `1.0` are equal here), found
    /// through an index; `None` if `Graph::declare_index` was not called for type and property.
    fn nodes_with<'w>(
        &'w self,
        type_id: TypeId,
        property: &str,
        value: ValueRef<'w>,
    ) -> Option<impl Iterator<Item = NodeRef> + use<'w, Self>>;
    /// The edges of a type whose property equals a value, likewise.
    fn edges_with<'w>(
        &'w self,
        type_id: TypeId,
        property: &str,
        value: ValueRef<'w>,
    ) -> Option<impl Iterator<Item = EdgeRef> + use<'w, Self>>;
}

impl World for Graph {
    fn type_id(&self, name: &str) -> Option<TypeId> {
        self.types().find(name)
    }

    fn type_name(&self, type_id: TypeId) -> &str {
        self.types().name(type_id)
    }

    fn find(&self, id: &str) -> Option<ElementRef> {
        self.reference_of(id.as_bytes())
    }

    fn at(&self, element: ElementRef) -> Option<ElementView<'_>> {
        self.view(element)
    }

    fn nodes(&self) -> impl Iterator<Item = NodeRef> {
        self.all_nodes()
    }

    fn edges(&self) -> impl Iterator<Item = EdgeRef> {
        self.all_edges()
    }

    fn nodes_of_type(&self, type_id: TypeId) -> impl Iterator<Item = NodeRef> {
        self.nodes_in(type_id)
    }

    fn edges_of_type(&self, type_id: TypeId) -> impl Iterator<Item = EdgeRef> {
        self.edges_in(type_id)
    }

    fn out_edges(&self, node: NodeRef, type_id: Option<TypeId>) -> impl Iterator<Item = EdgeRef> {
        self.out_keys(node, type_id).map(edge_of)
    }

    fn in_edges(&self, node: NodeRef, type_id: Option<TypeId>) -> impl Iterator<Item = EdgeRef> {
        self.in_keys(node, type_id).map(edge_of)
    }

    fn nodes_with<'w>(
        &'w self,
        type_id: TypeId,
        property: &str,
        value: ValueRef<'w>,
    ) -> Option<impl Iterator<Item = NodeRef> + use<'w>> {
        Some(self.elements_with(type_id, property, value)?.filter_map(ElementRef::node))
    }

    fn edges_with<'w>(
        &'w self,
        type_id: TypeId,
        property: &str,
        value: ValueRef<'w>,
    ) -> Option<impl Iterator<Item = EdgeRef> + use<'w>> {
        Some(self.elements_with(type_id, property, value)?.filter_map(ElementRef::edge))
    }
}
