//! Equality of worlds in one comparison: the root of a radix tree over the hashes of all elements.
//!
//! An element's place in the tree is the hash of its id, so the tree, and with it the root, depends
//! on what there is and not on how it came about. Nothing is hashed until somebody asks. From then
//! on the fold notes what it touches, and the next question rehashes that and the branches above
//! it.

mod tree;

use std::sync::{Arc, Mutex, MutexGuard};

use log::Hash;

use crate::graph::{Element, ElementRef, Graph, Pages};
pub(crate) use tree::{Leaf, Node, Place, place_of};

/// With more notes than this and than elements, the tree is built anew.
const NOTES_MAX: usize = 1 << 16;

/// What is known of the state hash of one graph.
#[derive(Debug, Default)]
pub(crate) struct HashState(Mutex<Known>);

#[derive(Clone, Debug, Default)]
struct Known {
    /// The tree as of the last question, if there was one.
    tree: Option<Arc<Node>>,
    /// Counts the questions, so that an element is noted once between two of them.
    round: u32,
    /// Elements that were put in or changed since.
    changed: Pages<ElementRef>,
    /// Places of elements that were taken out since.
    removed: Pages<Place>,
}

impl Clone for HashState {
    fn clone(&self) -> Self {
        HashState(Mutex::new(self.known().clone()))
    }
}

impl HashState {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().expect("hashing does not panic")
    }

    fn known_mut(&mut self) -> &mut Known {
        self.0.get_mut().expect("hashing does not panic")
    }

    /// Notes that an element was put in or changed. `marked` is the round of its last note.
    pub(crate) fn note_change(&mut self, element: ElementRef, marked: &mut u32) {
        let known = self.known_mut();
        if known.tree.is_none() || *marked == known.round {
            return;
        }
        *marked = known.round;
        known.changed.insert(known.changed.len() as u32, element);
        known.forget_if_cheaper();
    }

    /// Notes that the element with this id was taken out.
    pub(crate) fn note_removal(&mut self, id: &[u8]) {
        let known = self.known_mut();
        if known.tree.is_some() {
            known.removed.insert(known.removed.len() as u32, place_of(id));
            known.forget_if_cheaper();
        }
    }
}

impl Known {
    /// Drops the tree when building it anew costs no more than bringing it up to date.
    fn forget_if_cheaper(&mut self) {
        let notes = self.changed.len() + self.removed.len();
        let leaves = self.tree.as_ref().map_or(0, |tree| tree.len());
        if notes > NOTES_MAX.max(leaves) {
            *self = Known { round: self.round, ..Known::default() };
        }
    }
}

impl Graph {
    /// The hash of the world: ids, types, ends and properties, whatever events led to them.
    /// Versions and offsets are not covered.
    #[must_use]
    pub fn state_hash(&self) -> Hash {
        Hash::from_bytes(*self.hash_tree().hash())
    }

    /// The tree, up to date.
    pub(crate) fn hash_tree(&self) -> Arc<Node> {
        let mut known = self.hashes.known();
        if let Some(tree) = &known.tree
            && known.changed.len() + known.removed.len() == 0
        {
            return Arc::clone(tree);
        }
        let mut changes: Vec<(Place, Option<Leaf>)> = Vec::new();
        let mut buffer = Vec::new();
        let mut leaf = |reference, element: &Element| {
            let leaf = self.leaf(reference, element, &mut buffer);
            (leaf.place, Some(leaf))
        };
        let base = known.tree.take();
        if base.is_some() {
            changes.extend(known.removed.iter().map(|(_, place)| (*place, None)));
            let noted = known
                .changed
                .iter()
                .filter_map(|(_, reference)| Some(leaf(*reference, self.stored(*reference)?)));
            changes.extend(noted);
        } else {
            changes.extend(self.stored_nodes().map(|(node, element)| leaf(node.into(), element)));
            changes.extend(self.stored_edges().map(|(edge, element)| leaf(edge.into(), element)));
        }
        let tree = Arc::new(Node::update(base.as_deref(), changes));
        assert_eq!(tree.len(), self.node_count() + self.edge_count(), "every element has a leaf");
        // Round zero is that of elements which were never noted.
        let round = known.round.checked_add(1).unwrap_or(1);
        *known = Known { tree: Some(Arc::clone(&tree)), round, ..Known::default() };
        tree
    }

    /// The hash of one element, and its place. `buffer` is memory to use again.
    fn leaf(&self, reference: ElementRef, element: &Element, buffer: &mut Vec<u8>) -> Leaf {
        buffer.clear();
        let mut text = |text: &[u8]| {
            buffer.extend_from_slice(&(text.len() as u64).to_le_bytes());
            buffer.extend_from_slice(text);
        };
        text(element.id_bytes());
        text(self.types().name(element.type_id).as_bytes());
        if let Some((from, to)) = element.ends() {
            for end in [from, to] {
                text(self.stored(end.into()).expect("an edge has its ends").id_bytes());
            }
        }
        // The properties come last and need no length: what is before them tells its own.
        buffer.push(u8::from(element.ends().is_some()));
        buffer.extend_from_slice(element.properties().as_bytes());
        let hash = *blake3::hash(buffer).as_bytes();
        Leaf { place: place_of(element.id_bytes()), hash, element: reference }
    }
}
