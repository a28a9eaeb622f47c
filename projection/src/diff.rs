//! How two worlds differ, found at the cost of the difference.

use crate::graph::{ElementView, Graph};

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

/// The elements that differ in id, type, ends or properties: nodes before edges, each by id.
#[must_use]
pub fn diff<'g>(_before: &'g Graph, _after: &'g Graph) -> Vec<Difference<'g>> {
    todo!("skeleton")
}
