//! What one event really changed: enough to take it back, and to see the graph as it was before.

use log::{ChangeRef, Event, MapRef, Offset, WriteOp};

use crate::graph::{Counters, Element, ElementRef, ElementView, Graph};
use crate::schema::Schemas;

/// What one event changed. Made by `Graph::apply`, taken back by `Graph::undo`.
#[derive(Debug, Default)]
pub struct Delta {
    pub(crate) offset: Offset,
    /// What was touched, and how it was before. After the event: by element, each once.
    pub(crate) touched: Vec<(ElementRef, Option<Element>)>,
    /// Whether anything was removed while the event was applied.
    pub(crate) removals: bool,
    /// How many of what was touched are no longer there.
    pub(crate) gone: usize,
    /// For each change, what it made or touched.
    pub(crate) targets: Vec<Option<ElementRef>>,
    /// Where the numbering stood before the event.
    pub(crate) counters: Counters,
    /// The schemas before the event, if it declared one.
    pub(crate) schemas: Option<Schemas>,
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

    /// Whether no element was created, changed or removed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.touched.is_empty()
    }

    /// Every element that was created, changed or removed, edges that fell with a node included:
    /// nodes before edges, each in order of creation. `before` tells how it was, the graph how it
    /// is.
    pub fn touched(&self) -> impl Iterator<Item = ElementRef> {
        self.touched.iter().map(|(element, _)| *element)
    }

    /// Whether the event created this element, and it is still there.
    #[must_use]
    pub fn created(&self, element: ElementRef) -> bool {
        self.find(element).is_some_and(|before| before.is_none())
    }

    /// What change number `change` made or touched; `None` for a removal of what was not there.
    #[must_use]
    pub fn target(&self, change: usize) -> Option<ElementRef> {
        self.targets.get(change).copied().flatten()
    }

    /// A touched element as it was before the event; `None` if the event created it or left it
    /// alone.
    #[must_use]
    pub fn before<'d>(&'d self, graph: &'d Graph, element: ElementRef) -> Option<ElementView<'d>> {
        let stored = self.find(element)?.as_ref()?;
        Some(ElementView { reference: element, element: stored, types: graph.types() })
    }

    /// The properties that the changes of `event`, whose delta this is, ask to write.
    pub fn written<'e>(&'e self, event: &'e Event) -> impl Iterator<Item = Written<'e>> {
        assert_eq!(event.offset(), self.offset, "the delta is this event's");
        event.changes().iter().enumerate().flat_map(move |(change, what)| {
            let target = self.target(change);
            let of = move |operation, property, value| {
                target.map(|element| Written { change, element, property, operation, value })
            };
            let creates = |made: Option<ElementRef>| {
                made.filter(|made| self.created(*made)).map(|_| Operation::Set)
            };
            let (operation, properties) = match what {
                ChangeRef::Create { properties, .. }
                | ChangeRef::Ensure { properties, .. }
                | ChangeRef::Link { properties, .. }
                | ChangeRef::EnsureLink { properties, .. } => (creates(target), properties),
                ChangeRef::Write { op, properties, .. } => (Some(op.into()), properties),
                ChangeRef::Unset { .. } | ChangeRef::Remove { .. } => (None, MapRef::EMPTY),
            };
            let names = if let ChangeRef::Unset { names, .. } = what { Some(names) } else { None };
            let unset = names.into_iter().flat_map(|names| names.iter());
            let unset = unset.filter_map(move |name| of(Operation::Unset, name, &[][..]));
            let entries = properties.iter_encoded();
            entries.filter_map(move |(name, value)| of(operation?, name, value)).chain(unset)
        })
    }

    /// What is known of an element: `None` if it was left alone.
    pub(crate) fn find(&self, element: ElementRef) -> Option<&Option<Element>> {
        let at = self.touched.binary_search_by_key(&element, |(element, _)| *element).ok()?;
        Some(&self.touched[at].1)
    }

    /// Elements that were there before the event and are not any more.
    pub(crate) fn removed<'d>(
        &'d self,
        graph: &'d Graph,
    ) -> impl Iterator<Item = (ElementRef, &'d Element)> {
        // Most events remove nothing; then no element is looked up.
        let touched = if self.gone == 0 { &[][..] } else { &self.touched };
        touched.iter().filter_map(|(element, before)| {
            let before = before.as_ref()?;
            if graph.stored(*element).is_none() { Some((*element, before)) } else { None }
        })
    }

    /// Begins the delta of another event; memory is used again.
    pub(crate) fn begin(&mut self, offset: Offset, counters: Counters) {
        self.touched.clear();
        self.targets.clear();
        (self.offset, self.counters, self.schemas) = (offset, counters, None);
        (self.removals, self.gone) = (false, 0);
    }

    /// Brings what was touched into its order. What came and went within the event is forgotten.
    pub(crate) fn finish(&mut self, graph: &Graph) {
        self.touched.sort_unstable_by_key(|(element, _)| *element);
        if self.removals {
            let mut gone = 0;
            self.touched.retain(|(element, before)| {
                let is_gone = graph.stored(*element).is_none();
                gone += usize::from(is_gone && before.is_some());
                !is_gone || before.is_some()
            });
            self.gone = gone;
        }
        let twice = self.touched.windows(2).any(|pair| pair[0].0 == pair[1].0);
        assert!(!twice, "an element is touched once");
    }
}
