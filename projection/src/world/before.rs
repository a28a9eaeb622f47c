//! The world before the last event, seen through the graph after it.
//!
//! What the event created is left out, what it removed is put back from the delta, what it changed
//! is read as it was. No copy of the graph is made, and an event that removes nothing allocates
//! nothing.

use std::iter::Peekable;

use log::ValueRef;

use super::World;
use crate::delta::Delta;
use crate::graph::{
    EdgeRef, Element, ElementRef, ElementView, Graph, NodeRef, TypeId, edge_key, edge_of,
    equal_values, key_range,
};

/// The world before the last event of a graph.
#[derive(Debug)]
pub struct Before<'g> {
    graph: &'g Graph,
    delta: &'g Delta,
    /// What the event removed, by type and creation.
    gone_nodes: Vec<(TypeId, NodeRef)>,
    gone_edges: Vec<(TypeId, EdgeRef)>,
    /// The removed edges that left, and that reached, each node.
    gone_out: Vec<(NodeRef, u64)>,
    gone_in: Vec<(NodeRef, u64)>,
}

impl<'g> Before<'g> {
    /// The graph before `delta`, which is what the last event of `graph` changed.
    ///
    /// # Panics
    /// The delta is that of another event.
    #[must_use]
    pub fn new(graph: &'g Graph, delta: &'g Delta) -> Self {
        assert_eq!(graph.head().last(), Some(delta.offset), "the delta is that of the last event");
        let mut before = Before {
            graph,
            delta,
            gone_nodes: Vec::new(),
            gone_edges: Vec::new(),
            gone_out: Vec::new(),
            gone_in: Vec::new(),
        };
        for (reference, element) in delta.removed(graph) {
            match reference {
                ElementRef::Node(node) => before.gone_nodes.push((element.type_id, node)),
                ElementRef::Edge(edge) => {
                    let key = edge_key(element.type_id, edge);
                    before.gone_edges.push((element.type_id, edge));
                    before.gone_out.push((element.from, key));
                    before.gone_in.push((element.to, key));
                }
            }
        }
        before.gone_nodes.sort_unstable();
        before.gone_edges.sort_unstable();
        before.gone_out.sort_unstable();
        before.gone_in.sort_unstable();
        before
    }

    fn is_new_node(&self, node: NodeRef) -> bool {
        node.0 >= self.delta.counters.next_node
    }

    fn is_new_edge(&self, edge: EdgeRef) -> bool {
        edge.0 >= self.delta.counters.next_edge
    }

    fn is_new(&self, element: ElementRef) -> bool {
        match element {
            ElementRef::Node(node) => self.is_new_node(node),
            ElementRef::Edge(edge) => self.is_new_edge(edge),
        }
    }

    fn stored(&self, element: ElementRef) -> Option<&Element> {
        match self.graph.stored(element) {
            Some(now) if now.changed != self.delta.offset => Some(now),
            // Changed, created or removed by the event.
            _ => self.delta.find(element)?.as_ref(),
        }
    }

    /// The keys of edges at a node: those that are there now and were before, and the removed ones.
    fn keys(
        &self,
        now: impl Iterator<Item = u64>,
        gone: &[(NodeRef, u64)],
        node: NodeRef,
        type_id: Option<TypeId>,
    ) -> impl Iterator<Item = u64> {
        let (low, high) = key_range(type_id);
        let start = gone.partition_point(|entry| *entry < (node, low));
        let end = gone.partition_point(|entry| *entry < (node, high));
        let now = now.filter(|key| !self.is_new_edge(edge_of(*key)));
        merge(now, gone[start..end].iter().map(|(_, key)| *key))
    }

    fn elements_with<'w>(
        &'w self,
        type_id: TypeId,
        property: &str,
        value: ValueRef<'w>,
    ) -> Option<impl Iterator<Item = ElementRef> + use<'w>> {
        let now = self.graph.elements_with(type_id, property, value)?;
        let unchanged = now.filter(|element| {
            let stored = self.graph.stored(*element).expect("what is indexed is there");
            stored.changed != self.delta.offset
        });
        let had_it = |element: &Element| {
            let found = element.properties().get(property);
            element.type_id == type_id && found.is_some_and(|found| equal_values(found, value))
        };
        let changed = self.delta.touched.iter().filter_map(|(reference, before)| {
            if before.as_ref().is_some_and(had_it) { Some(*reference) } else { None }
        });
        let changed: Vec<ElementRef> = changed.collect();
        Some(merge(unchanged, changed.into_iter()))
    }
}

impl<'g> World for Before<'g> {
    fn type_id(&self, name: &str) -> Option<TypeId> {
        self.graph.type_id(name)
    }

    fn type_name(&self, type_id: TypeId) -> &str {
        self.graph.type_name(type_id)
    }

    fn find(&self, id: &str) -> Option<ElementRef> {
        let now = self.graph.find(id).filter(|element| !self.is_new(*element));
        now.or_else(|| {
            let mut removed = self.delta.removed(self.graph);
            removed.find(|(_, element)| element.id_bytes() == id.as_bytes()).map(|(gone, _)| gone)
        })
    }

    fn at(&self, element: ElementRef) -> Option<ElementView<'_>> {
        let stored = self.stored(element)?;
        Some(ElementView { reference: element, element: stored, types: self.graph.types() })
    }

    fn nodes(&self) -> impl Iterator<Item = NodeRef> {
        let now = self.graph.all_nodes().filter(|node| !self.is_new_node(*node));
        let mut gone: Vec<_> = self.gone_nodes.iter().map(|(_, node)| *node).collect();
        gone.sort_unstable();
        merge(now, gone.into_iter())
    }

    fn edges(&self) -> impl Iterator<Item = EdgeRef> {
        let now = self.graph.all_edges().filter(|edge| !self.is_new_edge(*edge));
        let mut gone: Vec<_> = self.gone_edges.iter().map(|(_, edge)| *edge).collect();
        gone.sort_unstable();
        merge(now, gone.into_iter())
    }

    fn nodes_of_type(&self, type_id: TypeId) -> impl Iterator<Item = NodeRef> {
        let now = self.graph.nodes_in(type_id).filter(|node| !self.is_new_node(*node));
        merge(now, of_type(&self.gone_nodes, type_id))
    }

    fn edges_of_type(&self, type_id: TypeId) -> impl Iterator<Item = EdgeRef> {
        let now = self.graph.edges_in(type_id).filter(|edge| !self.is_new_edge(*edge));
        merge(now, of_type(&self.gone_edges, type_id))
    }

    fn out_edges(&self, node: NodeRef, type_id: Option<TypeId>) -> impl Iterator<Item = EdgeRef> {
        let now = self.graph.out_keys(node, type_id);
        self.keys(now, &self.gone_out, node, type_id).map(edge_of)
    }

    fn in_edges(&self, node: NodeRef, type_id: Option<TypeId>) -> impl Iterator<Item = EdgeRef> {
        let now = self.graph.in_keys(node, type_id);
        self.keys(now, &self.gone_in, node, type_id).map(edge_of)
    }

    fn nodes_with<'w>(
        &'w self,
        type_id: TypeId,
        property: &str,
        value: ValueRef<'w>,
    ) -> Option<impl Iterator<Item = NodeRef> + use<'w, 'g>> {
        Some(self.elements_with(type_id, property, value)?.filter_map(ElementRef::node))
    }

    fn edges_with<'w>(
        &'w self,
        type_id: TypeId,
        property: &str,
        value: ValueRef<'w>,
    ) -> Option<impl Iterator<Item = EdgeRef> + use<'w, 'g>> {
        Some(self.elements_with(type_id, property, value)?.filter_map(ElementRef::edge))
    }
}

/// The entries of a type in a sorted list.
fn of_type<T: Copy>(gone: &[(TypeId, T)], type_id: TypeId) -> impl Iterator<Item = T> {
    let start = gone.partition_point(|(other, _)| *other < type_id);
    let end = gone.partition_point(|(other, _)| *other <= type_id);
    gone[start..end].iter().map(|(_, item)| *item)
}

/// Two sorted sequences as one.
fn merge<T: Ord>(
    left: impl Iterator<Item = T>,
    right: impl Iterator<Item = T>,
) -> impl Iterator<Item = T> {
    let (mut left, mut right): (Peekable<_>, Peekable<_>) = (left.peekable(), right.peekable());
    std::iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some(first), Some(second)) if second < first => right.next(),
        (Some(_), _) => left.next(),
        (None, _) => right.next(),
    })
}
