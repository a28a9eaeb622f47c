//! Putting elements in, replacing them and taking them out, with every index kept in step.
//!
//! Nothing else writes pages. What happens here is exactly reversible: taking out what was put in
//! leaves no trace that anybody can read.

use triomphe::Arc;

use super::adjacency::edge_key;
use super::element::{EdgeRef, Element, ElementRef, NO_END, NodeRef, TypeId};
use super::ids::Ids;
use super::index::ValueIndex;
use super::{Graph, Members, NUMBER_MAX, Types, id_hash};

/// What the fold numbers, as it was before an event: where `undo` turns back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) next_node: u32,
    pub(crate) next_edge: u32,
    pub(crate) types: usize,
}

impl Graph {
    pub(crate) fn counters(&self) -> Counters {
        let types = self.types.len();
        Counters { next_node: self.next_node, next_edge: self.next_edge, types }
    }

    /// Forgets the numbers given since `counters`. What had them is gone already.
    pub(crate) fn reset_counters(&mut self, counters: Counters) {
        assert!(counters.next_node <= self.next_node && counters.next_edge <= self.next_edge);
        self.next_node = counters.next_node;
        self.next_edge = counters.next_edge;
        if counters.types == self.types.len() {
            return;
        }
        for number in counters.types..self.types.len() {
            let members = self.members.take(number as u32);
            assert!(members.nodes.is_empty() && members.edges.is_empty(), "its elements are gone");
        }
        Arc::make_mut(&mut self.types).truncate(counters.types);
    }

    /// The number of a type, a new one if it was not met before.
    pub(crate) fn intern(&mut self, name: &str) -> TypeId {
        if let Some(known) = self.types.find(name) {
            return known;
        }
        let type_id = Arc::make_mut(&mut self.types).add(name);
        let over = |(number, index): (usize, &ValueIndex)| {
            if index.type_name == name { Some(number) } else { None }
        };
        let indexes = self.indexes.iter().enumerate().filter_map(over).collect();
        self.members.insert(type_id.0, Members { indexes, ..Members::default() });
        type_id
    }

    /// The number of the next node or edge, if there is one left.
    pub(crate) fn next_reference(&self, is_edge: bool) -> Option<ElementRef> {
        let next = if is_edge { self.next_edge } else { self.next_node };
        if next == NUMBER_MAX {
            return None;
        }
        Some(if is_edge { EdgeRef(next).into() } else { NodeRef(next).into() })
    }

    /// Puts an element in, unless its id is taken; whether it was put in. Its number is new, or
    /// was freed by `remove_element`.
    #[must_use]
    pub(crate) fn insert_element(&mut self, reference: ElementRef, element: Element) -> bool {
        let id = element.id_bytes();
        let has_it = |other| match other {
            ElementRef::Node(node) => self.nodes.get(node.0).is_some_and(|is| is.id_bytes() == id),
            ElementRef::Edge(edge) => self.edges.get(edge.0).is_some_and(|is| is.id_bytes() == id),
        };
        let free = self.ids.insert(id_hash(id), reference, has_it);
        if free {
            self.place_element(reference, element);
        }
        free
    }

    /// Puts an element in that is not found by its id before `index_ids`.
    pub(crate) fn place_element(&mut self, reference: ElementRef, mut element: Element) {
        assert_eq!(element.from == NO_END, element.to == NO_END, "an edge has two ends");
        self.hashes.note_change(reference, &mut element.marked);
        let members = self.members.get_mut(element.type_id.0);
        for number in &members.indexes {
            Arc::make_mut(&mut self.indexes)[*number].add(reference, &element);
        }
        match reference {
            ElementRef::Node(node) => {
                members.nodes.insert(node.0);
                self.next_node = self.next_node.max(node.0 + 1);
                self.nodes.insert(node.0, element);
            }
            ElementRef::Edge(edge) => {
                members.edges.insert(edge.0);
                self.next_edge = self.next_edge.max(edge.0 + 1);
                self.join(edge, &element);
                self.edges.insert(edge.0, element);
            }
        }
    }

    /// Makes every element known by its id, all at once. Tells whether no two have the same.
    pub(crate) fn index_ids(&mut self) -> bool {
        let nodes = self.nodes.iter().map(|(n, element)| (NodeRef(n).into(), element));
        let edges = self.edges.iter().map(|(n, element)| (EdgeRef(n).into(), element));
        let all = nodes.chain(edges);
        self.ids =
            Ids::of(all.map(|(reference, element)| (id_hash(element.id_bytes()), reference)));
        let id = |element| self.stored(element).expect("what is indexed is there").id_bytes();
        !self.ids.any_twins(|a, b| id(a) == id(b))
    }

    /// Takes an element out. The edges at a node are gone before it.
    pub(crate) fn remove_element(&mut self, reference: ElementRef) -> Element {
        let element = match reference {
            ElementRef::Node(node) => {
                assert!(self.adjacency.get(node.0).is_none(), "edges fall before their node");
                self.nodes.take(node.0)
            }
            ElementRef::Edge(edge) => {
                let element = self.edges.take(edge.0);
                self.part(edge, &element);
                element
            }
        };
        self.hashes.note_removal(element.id_bytes());
        self.ids.remove(id_hash(element.id_bytes()), reference);
        let members = self.members.get_mut(element.type_id.0);
        match reference {
            ElementRef::Node(node) => assert!(members.nodes.remove(node.0)),
            ElementRef::Edge(edge) => assert!(members.edges.remove(edge.0)),
        }
        for number in &members.indexes {
            Arc::make_mut(&mut self.indexes)[*number].remove(reference, &element);
        }
        element
    }

    /// Puts another state of the same element in its place, and hands the old one out.
    pub(crate) fn replace_element(&mut self, reference: ElementRef, mut new: Element) -> Element {
        self.hashes.note_change(reference, &mut new.marked);
        let place = match reference {
            ElementRef::Node(node) => self.nodes.get_mut(node.0),
            ElementRef::Edge(edge) => self.edges.get_mut(edge.0),
        };
        assert_eq!(place.type_id, new.type_id, "an element keeps its type");
        let old = std::mem::replace(place, new);
        let members = self.members.get(old.type_id.0).expect("the element's type is known");
        for number in &members.indexes {
            Arc::make_mut(&mut self.indexes)[*number].replace(reference, &old, place);
        }
        old
    }

    /// Makes an edge known at both ends.
    fn join(&mut self, edge: EdgeRef, element: &Element) {
        let key = edge_key(element.type_id, edge);
        self.adjacency.get_or_default(element.from.0).outward.insert(key);
        self.adjacency.get_or_default(element.to.0).inward.insert(key);
    }

    /// Makes an edge unknown at both ends.
    fn part(&mut self, edge: EdgeRef, element: &Element) {
        let key = edge_key(element.type_id, edge);
        self.adjacency.get_mut(element.from.0).outward.remove(key);
        self.adjacency.get_mut(element.to.0).inward.remove(key);
        for node in [element.from, element.to] {
            let edges = self.adjacency.get(node.0);
            if edges.is_some_and(|edges| edges.outward.is_empty() && edges.inward.is_empty()) {
                self.adjacency.take(node.0);
            }
        }
    }

    /// From now on, elements of this type can be found by the value of this property. Building the
    /// index reads every element of the type once. Indexes are no part of the fold: a snapshot
    /// does not hold them.
    pub fn declare_index(&mut self, type_name: &str, property: &str) {
        if self.has_index(type_name, property) {
            return;
        }
        let mut index = ValueIndex::new(type_name, property);
        if let Some(type_id) = self.types.find(type_name) {
            let nodes = self.nodes_in(type_id).map(ElementRef::Node);
            for reference in nodes.chain(self.edges_in(type_id).map(ElementRef::Edge)) {
                index.add(reference, self.stored(reference).expect("a member is there"));
            }
            self.members.get_mut(type_id.0).indexes.push(self.indexes.len());
        }
        Arc::make_mut(&mut self.indexes).push(index);
    }

    /// Whether `declare_index` was called for type and property.
    #[must_use]
    pub fn has_index(&self, type_name: &str, property: &str) -> bool {
        let is_it = |index: &ValueIndex| index.type_name == type_name && index.property == property;
        self.indexes.iter().any(is_it)
    }

    /// Gives a graph that is being read from a snapshot its types, in their order.
    pub(crate) fn set_types(&mut self, types: Types) {
        assert!(self.types.len() == 0 && self.indexes.is_empty(), "the graph is new");
        for number in 0..types.len() {
            self.members.insert(number as u32, Members::default());
        }
        self.types = Arc::new(types);
    }
}
