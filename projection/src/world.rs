//! A graph as patterns read it: as it is, or as it was before its last event.

use log::ValueRef;

use crate::delta::Delta;
use crate::graph::{EdgeRef, ElementRef, ElementView, Graph, NodeRef, TypeId};

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
    fn nodes_with(
        &self,
        type_id: TypeId,
        property: &str,
        value: ValueRef<'_>,
    ) -> Option<impl Iterator<Item = NodeRef>>;
    /// The edges of a type whose property equals a value, likewise.
    fn edges_with(
        &self,
        type_id: TypeId,
        property: &str,
        value: ValueRef<'_>,
    ) -> Option<impl Iterator<Item = EdgeRef>>;
}

/// The world before the last event, seen through the graph after it.
#[derive(Debug)]
pub struct Before<'g> {
    graph: &'g Graph,
    delta: &'g Delta,
}

impl<'g> Before<'g> {
    /// The graph before `delta`, which is what the last applied event changed.
    #[must_use]
    pub fn new(graph: &'g Graph, delta: &'g Delta) -> Self {
        Before { graph, delta }
    }
}

macro_rules! skeleton {
    ($name:ty) => {
        impl World for $name {
            fn type_id(&self, _: &str) -> Option<TypeId> {
                todo!("skeleton")
            }
            fn type_name(&self, _: TypeId) -> &str {
                todo!("skeleton")
            }
            fn find(&self, _: &str) -> Option<ElementRef> {
                todo!("skeleton")
            }
            fn at(&self, _: ElementRef) -> Option<ElementView<'_>> {
                todo!("skeleton")
            }
            fn nodes(&self) -> impl Iterator<Item = NodeRef> {
                todo!("skeleton") as std::vec::IntoIter<NodeRef>
            }
            fn edges(&self) -> impl Iterator<Item = EdgeRef> {
                todo!("skeleton") as std::vec::IntoIter<EdgeRef>
            }
            fn nodes_of_type(&self, _: TypeId) -> impl Iterator<Item = NodeRef> {
                todo!("skeleton") as std::vec::IntoIter<NodeRef>
            }
            fn edges_of_type(&self, _: TypeId) -> impl Iterator<Item = EdgeRef> {
                todo!("skeleton") as std::vec::IntoIter<EdgeRef>
            }
            fn out_edges(&self, _: NodeRef, _: Option<TypeId>) -> impl Iterator<Item = EdgeRef> {
                todo!("skeleton") as std::vec::IntoIter<EdgeRef>
            }
            fn in_edges(&self, _: NodeRef, _: Option<TypeId>) -> impl Iterator<Item = EdgeRef> {
                todo!("skeleton") as std::vec::IntoIter<EdgeRef>
            }
            fn nodes_with(
                &self,
                _: TypeId,
                _: &str,
                _: ValueRef<'_>,
            ) -> Option<impl Iterator<Item = NodeRef>> {
                todo!("skeleton") as Option<std::vec::IntoIter<NodeRef>>
            }
            fn edges_with(
                &self,
                _: TypeId,
                _: &str,
                _: ValueRef<'_>,
            ) -> Option<impl Iterator<Item = EdgeRef>> {
                todo!("skeleton") as Option<std::vec::IntoIter<EdgeRef>>
            }
        }
    };
}
skeleton!(Graph);
skeleton!(Before<'_>);
