//! What one event really changed: enough to take it back, and to see the graph as it was before.

use log::{Event, Offset, WriteOp};

use crate::graph::{Element, ElementRef, ElementView, Graph};

/// What one event changed. Made by `Graph::apply`.
#[derive(Debug, Default)]
pub struct Delta {
    offset: Offset,
    /// By element, so nodes before edges and each in order of creation.
    touched: Vec<(ElementRef, Option<Element>)>,
    targets: Vec<Option<ElementRef>>,
}

/// How one property was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Given a value: by `set`, or with the element's creation.
    Set,
    /// A number was added.
    Add,
    /// An item was put at the end.
    Append,
    /// Dropped.
    Unset,
}

impl From<WriteOp> for Operation {
    fn from(op: WriteOp) -> Self {
        match op {
            WriteOp::Set => Operation::Set,
            WriteOp::Add => Operation::Add,
            WriteOp::Append => Operation::Append,
        }
    }
}

/// One property that an event asked to write, whether or not its value became another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written<'e> {
    /// The number of the change.
    pub change: usize,
    /// The element.
    pub element: ElementRef,
    /// The property.
    pub property: &'e str,
    /// How.
    pub operation: Operation,
    /// The encoded value that the change carries; empty for `unset`.
    pub value: &'e [u8],
}

impl Delta {
    /// The event's offset.
    #[must_use]
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// Whether the graph is the same before and after.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.touched().next().is_none()
    }

    /// Every element that was created, changed or removed, edges that fell with a node included:
    /// nodes before edges, each in order of creation.
    pub fn touched(&self) -> impl Iterator<Item = ElementRef> {
        self.touched.iter().map(|(element, _)| *element)
    }

    /// What change number `change` made or touched; `None` for a removal of what was not there.
    #[must_use]
    pub fn target(&self, change: usize) -> Option<ElementRef> {
        self.targets.get(change).copied().flatten()
    }

    /// The properties that the changes of `event`, whose delta this is, ask to write.
    pub fn written<'e>(&self, event: &'e Event) -> impl Iterator<Item = Written<'e>> {
        let _ = event;
        todo!("skeleton") as std::vec::IntoIter<Written<'e>>
    }

    /// A touched element as it was before the event; `None` if the event created it.
    #[must_use]
    pub fn before<'d>(&'d self, graph: &'d Graph, element: ElementRef) -> Option<ElementView<'d>> {
        let _ = (graph, element);
        todo!("skeleton")
    }
}
