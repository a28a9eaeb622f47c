//! The graph: typed nodes and directed edges, in a structure whose copies are cheap.
//!
//! Elements stand on pages by number, and are numbered as they are created, so the order of numbers
//! is the canonical order. Numbers are never used twice, except when an event is taken back.

mod adjacency;
mod element;
mod hash;
mod ids;
mod index;
mod pages;
mod sorted;
mod store;
mod types;

pub(crate) use adjacency::{edge_key, edge_of, key_range};
pub use element::{Born, EdgeRef, ElementRef, ElementView, NodeRef, TypeId};
pub(crate) use element::{Element, NO_END};
pub(crate) use ids::NUMBER_MAX;
pub(crate) use index::equal_values;
pub(crate) use pages::Pages;
pub(crate) use store::Counters;
pub(crate) use types::Types;

use log::{Head, ValueRef};
use triomphe::Arc;

use crate::fold::Scratch;
use crate::schema::Schemas;
use crate::state_hash::HashState;
use adjacency::Adjacency;
use hash::hash_bytes;
use ids::Ids;
use index::ValueIndex;
use sorted::{Keys, Sorted};

/// A world: what a prefix of a log folds into.
///
/// Cloning one takes less than a microsecond; clones share what neither of them has changed, and
/// never see each other's changes. `World` has what patterns read; the fold (`apply`, `undo`) is
/// the only writer.
///
/// ```
/// use log::{Change, Draft, Event, EventId, Offset};
/// use projection::Graph;
///
/// let mut draft = Draft::new(EventId::ZERO, "trip.planned", "user:ann");
/// draft.changes.push(Change::Ensure {
///     id: "trip:shenzhen".into(),
///     type_name: "Trip".into(),
///     properties: serde_json::from_str(r#"{"status": "open"}"#).expect("an object"),
/// });
/// let (event, _) = Event::encode(&draft, Offset::ZERO).expect("a small event");
///
/// let mut graph = Graph::new();
/// graph.apply(&event).expect("nothing is in its way");
/// let trip = graph.node("trip:shenzhen").expect("just created");
/// assert_eq!(trip.property("status").and_then(|status| status.as_str()), Some("open"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub(crate) head: Head,
    nodes: Pages<Element>,
    edges: Pages<Element>,
    /// By node, for nodes that have edges.
    adjacency: Pages<Adjacency>,
    ids: Ids,
    types: Arc<Types>,
    /// By type.
    members: Pages<Members>,
    indexes: Arc<Vec<ValueIndex>>,
    /// The numbers that the next node and edge get.
    next_node: u32,
    next_edge: u32,
    pub(crate) schemas: Schemas,
    pub(crate) hashes: HashState,
    /// Memory that the fold uses again; it means nothing between events.
    pub(crate) scratch: Scratch,
}

/// The elements of one type, and the indexes over it.
#[derive(Clone, Debug, Default)]
struct Members {
    nodes: Sorted<u32>,
    edges: Sorted<u32>,
    indexes: Vec<usize>,
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
    pub fn element(&self, id: &str) -> Option<ElementView<'_>> {
        self.view(self.reference_of(id.as_bytes())?)
    }

    /// The node with this id.
    #[must_use]
    pub fn node(&self, id: &str) -> Option<ElementView<'_>> {
        self.element(id).filter(|view| view.ends().is_none())
    }

    /// The edge with this id.
    #[must_use]
    pub fn edge(&self, id: &str) -> Option<ElementView<'_>> {
        self.element(id).filter(|view| view.ends().is_some())
    }

    /// Up to `limit` elements whose id begins with `prefix`, by id. Reads every id.
    #[must_use]
    pub fn find_prefix(&self, prefix: &str, limit: usize) -> Vec<ElementView<'_>> {
        let all = self.all_nodes().map(ElementRef::Node).chain(self.all_edges().map(Into::into));
        let views = all.filter_map(|element| self.view(element));
        let mut found: Vec<_> = views.filter(|view| view.id().starts_with(prefix)).collect();
        found.sort_unstable_by_key(|view| view.id());
        found.truncate(limit);
        found
    }

    /// How many nodes there are.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// How many edges there are.
    #[must_use]
    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// How many nodes have this type.
    #[must_use]
    pub fn node_count_of_type(&self, type_id: TypeId) -> usize {
        self.members.get(type_id.0).map_or(0, |members| members.nodes.len())
    }

    /// How many edges have this type.
    #[must_use]
    pub fn edge_count_of_type(&self, type_id: TypeId) -> usize {
        self.members.get(type_id.0).map_or(0, |members| members.edges.len())
    }

    /// How many elements of this type have, by the index over `property`, a value equal to `value`
    /// (in rare cases a few too many); `None` without such an index.
    #[must_use]
    pub fn count_with(
        &self,
        type_id: TypeId,
        property: &str,
        value: ValueRef<'_>,
    ) -> Option<usize> {
        Some(self.index_over(type_id, property)?.count(value))
    }

    /// How many edges (of a type) leave a node.
    #[must_use]
    pub fn out_degree(&self, node: NodeRef, type_id: Option<TypeId>) -> usize {
        self.adjacency.get(node.0).map_or(0, |edges| edges.outward.count(type_id))
    }

    /// How many edges (of a type) reach a node.
    #[must_use]
    pub fn in_degree(&self, node: NodeRef, type_id: Option<TypeId>) -> usize {
        self.adjacency.get(node.0).map_or(0, |edges| edges.inward.count(type_id))
    }

    pub(crate) fn types(&self) -> &Types {
        &self.types
    }

    pub(crate) fn stored(&self, element: ElementRef) -> Option<&Element> {
        match element {
            ElementRef::Node(node) => self.nodes.get(node.0),
            ElementRef::Edge(edge) => self.edges.get(edge.0),
        }
    }

    pub(crate) fn view(&self, reference: ElementRef) -> Option<ElementView<'_>> {
        Some(ElementView { reference, element: self.stored(reference)?, types: &self.types })
    }

    pub(crate) fn reference_of(&self, id: &[u8]) -> Option<ElementRef> {
        let is_it = |element| self.stored(element).is_some_and(|stored| stored.id_bytes() == id);
        self.ids.find(id_hash(id), is_it)
    }

    /// Reads what the elements with these ids are stored in, step by step for all of them, so that
    /// each step waits for memory once.
    pub(crate) fn look_ahead(&self, ids: &[&str]) {
        let hashes: Vec<u32> = ids.iter().map(|id| id_hash(id.as_bytes())).collect();
        let mut seen = hashes.iter().map(|hash| self.ids.peek(*hash)).fold(0, u64::wrapping_add);
        let elements: Vec<_> =
            hashes.iter().filter_map(|hash| self.ids.find(*hash, |_| true)).collect();
        for element in &elements {
            seen ^= self.stored(*element).map_or(0, |stored| stored.version);
            if let ElementRef::Node(node) = element {
                seen ^=
                    self.adjacency.get(node.0).map_or(0, |edges| edges.outward.count(None) as u64);
            }
        }
        for element in &elements {
            let stored = self.stored(*element);
            seen ^=
                stored.and_then(|stored| stored.data.first()).map_or(0, |byte| u64::from(*byte));
        }
        std::hint::black_box(seen);
    }

    pub(crate) fn all_nodes(&self) -> impl Iterator<Item = NodeRef> {
        self.nodes.iter().map(|(number, _)| NodeRef(number))
    }

    pub(crate) fn all_edges(&self) -> impl Iterator<Item = EdgeRef> {
        self.edges.iter().map(|(number, _)| EdgeRef(number))
    }

    pub(crate) fn stored_nodes(&self) -> impl Iterator<Item = (NodeRef, &Element)> {
        self.nodes.iter().map(|(number, element)| (NodeRef(number), element))
    }

    pub(crate) fn stored_edges(&self) -> impl Iterator<Item = (EdgeRef, &Element)> {
        self.edges.iter().map(|(number, element)| (EdgeRef(number), element))
    }

    /// The nodes of a type by number.
    pub(crate) fn nodes_in(&self, type_id: TypeId) -> impl Iterator<Item = NodeRef> {
        let keys = self.members.get(type_id.0).map_or(Keys::none(), |of| of.nodes.iter());
        keys.map(NodeRef)
    }

    /// The edges of a type by number.
    pub(crate) fn edges_in(&self, type_id: TypeId) -> impl Iterator<Item = EdgeRef> {
        let keys = self.members.get(type_id.0).map_or(Keys::none(), |of| of.edges.iter());
        keys.map(EdgeRef)
    }

    /// The edges that leave a node, as keys.
    pub(crate) fn out_keys(
        &self,
        node: NodeRef,
        type_id: Option<TypeId>,
    ) -> impl Iterator<Item = u64> {
        self.adjacency.get(node.0).map_or(Keys::none(), |edges| edges.outward.keys(type_id))
    }

    /// The edges that reach a node, as keys.
    pub(crate) fn in_keys(
        &self,
        node: NodeRef,
        type_id: Option<TypeId>,
    ) -> impl Iterator<Item = u64> {
        self.adjacency.get(node.0).map_or(Keys::none(), |edges| edges.inward.keys(type_id))
    }

    /// The elements of a type whose property equals a value, nodes before edges.
    pub(crate) fn elements_with<'g>(
        &'g self,
        type_id: TypeId,
        property: &str,
        value: ValueRef<'g>,
    ) -> Option<impl Iterator<Item = ElementRef> + use<'g>> {
        let index = self.index_over(type_id, property)?;
        let equal = move |element: &ElementRef| {
            let element = self.stored(*element).expect("what is indexed is there");
            let found = element.properties().get(&index.property);
            equal_values(found.expect("what is indexed has a value"), value)
        };
        Some(index.candidates(value).map(ElementRef::unpacked).filter(equal))
    }

    fn index_over(&self, type_id: TypeId, property: &str) -> Option<&ValueIndex> {
        let mut numbers = self.members.get(type_id.0)?.indexes.iter();
        numbers.find_map(|number| {
            let index = &self.indexes[*number];
            if index.property == property { Some(index) } else { None }
        })
    }
}

/// The hash of an id in the table of ids.
fn id_hash(id: &[u8]) -> u32 {
    (hash_bytes(id) >> 32) as u32
}
