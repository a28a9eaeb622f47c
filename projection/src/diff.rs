//! How two worlds differ, found at the cost of the difference: only branches of the hash trees
//! whose hashes differ are walked.

use log::ValueRef;

use crate::graph::{ElementView, Graph};
use crate::state_hash::{Leaf, Node};

/// One element that is not the same in two worlds. At least one side is there.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'g> {
    /// The element's id.
    pub id: &'g str,
    /// The element in the first world.
    pub before: Option<ElementView<'g>>,
    /// The element in the second world.
    pub after: Option<ElementView<'g>>,
}

/// One property that is not the same in two worlds: its name and its values.
pub type PropertyDifference<'g> = (&'g str, Option<ValueRef<'g>>, Option<ValueRef<'g>>);

impl<'g> Difference<'g> {
    /// The properties that differ, by name. Those of an element that is missing are missing.
    #[must_use]
    pub fn properties(&self) -> Vec<PropertyDifference<'g>> {
        let entries = |view: Option<ElementView<'g>>| {
            view.into_iter().flat_map(|view| view.properties().iter_encoded()).peekable()
        };
        let (mut before, mut after) = (entries(self.before), entries(self.after));
        let mut found = Vec::new();
        let value = ValueRef::from_checked;
        loop {
            let name = match (before.peek(), after.peek()) {
                (None, None) => return found,
                (Some((name, _)), None) | (None, Some((name, _))) => *name,
                (Some((left, _)), Some((right, _))) => *left.min(right),
            };
            let left = before.next_if(|(other, _)| *other == name).map(|(_, value)| value);
            let right = after.next_if(|(other, _)| *other == name).map(|(_, value)| value);
            if left != right {
                found.push((name, left.map(value), right.map(value)));
            }
        }
    }
}

/// The elements that differ in id, type, ends or properties: nodes before edges, each by id.
#[must_use]
pub fn diff<'g>(before: &'g Graph, after: &'g Graph) -> Vec<Difference<'g>> {
    let mut pairs = Vec::new();
    walk(Some(&before.hash_tree()), Some(&after.hash_tree()), &mut pairs);
    let view = |graph: &'g Graph, leaf: Option<Leaf>| {
        leaf.map(|leaf| graph.view(leaf.element).expect("the tree is up to date"))
    };
    let mut found: Vec<_> = pairs
        .into_iter()
        .map(|(left, right)| {
            let (before, after) = (view(before, left), view(after, right));
            let id = before.or(after).expect("one side is there").id();
            Difference { id, before, after }
        })
        .collect();
    let is_edge = |found: &Difference<'_>| {
        found.before.or(found.after).is_some_and(|view| view.ends().is_some())
    };
    found.sort_unstable_by_key(|found| (is_edge(found), found.id));
    found
}

type Pair = (Option<Leaf>, Option<Leaf>);

fn walk<'n>(before: Option<&'n Node>, after: Option<&'n Node>, pairs: &mut Vec<Pair>) {
    if before.map(Node::hash) == after.map(Node::hash) {
        return;
    }
    let children = |node: Option<&'n Node>| node.and_then(Node::children);
    if let (Some(left), Some(right)) = (children(before), children(after)) {
        for (left, right) in left.iter().zip(right) {
            walk(left.as_deref(), right.as_deref(), pairs);
        }
        return;
    }
    let leaves = |node: Option<&Node>| {
        let mut leaves = Vec::new();
        if let Some(node) = node {
            node.collect(&mut leaves);
        }
        leaves.into_iter().peekable()
    };
    let (mut left, mut right) = (leaves(before), leaves(after));
    while let Some(place) = left.peek().into_iter().chain(right.peek()).map(|leaf| leaf.place).min()
    {
        let pair = (left.next_if(|l| l.place == place), right.next_if(|l| l.place == place));
        if pair.0.map(|leaf| leaf.hash) != pair.1.map(|leaf| leaf.hash) {
            pairs.push(pair);
        }
    }
}
