//! One change after the other, onto the graph.

use std::sync::Arc;

use log::{ChangeRef, Event, MapRef, NamesRef, Offset, WriteOp};
use log::{change_reference, element_id, ensured_edge_id};

use super::derived::write_element_id;
use super::properties::{self, Scratch};
use crate::delta::Delta;
use crate::graph::{Element, ElementRef, Graph, NO_END, NUMBER_MAX, NodeRef};
use crate::refusal::Refusal;

/// The application of one event.
pub(super) struct Fold<'f> {
    graph: &'f mut Graph,
    delta: &'f mut Delta,
    event: &'f Event,
    offset: Offset,
    /// The number of the change at hand.
    index: usize,
    scratch: Scratch,
}

/// What a new element is made of.
#[derive(Clone, Copy)]
struct New<'a> {
    type_name: &'a str,
    ends: (NodeRef, NodeRef),
    properties: MapRef<'a>,
}

impl<'f> Fold<'f> {
    pub(super) fn new(graph: &'f mut Graph, delta: &'f mut Delta, event: &'f Event) -> Self {
        let scratch = std::mem::take(&mut graph.scratch);
        Fold { graph, delta, event, offset: event.offset(), index: 0, scratch }
    }

    /// Applies every change, up to the first that cannot be.
    pub(super) fn all(mut self) -> Result<(), Refusal> {
        let mut done = Ok(());
        for (index, change) in self.event.changes().iter().enumerate() {
            self.index = index;
            match self.change(change) {
                Ok(target) => self.delta.targets.push(target),
                Err(refusal) => {
                    done = Err(refusal);
                    break;
                }
            }
        }
        self.graph.scratch = self.scratch;
        done
    }

    /// Applies one change; the element that it made or touched.
    fn change(&mut self, change: ChangeRef<'_>) -> Result<Option<ElementRef>, Refusal> {
        Ok(match change {
            ChangeRef::Create { id, type_name, properties } => {
                let ends = (NO_END, NO_END);
                Some(self.create(id, New { type_name, ends, properties })?)
            }
            ChangeRef::Ensure { id, type_name, properties } => match self.resolve(id)? {
                Some(there) => Some(there),
                None => {
                    let ends = (NO_END, NO_END);
                    Some(self.create(Some(id), New { type_name, ends, properties })?)
                }
            },
            ChangeRef::Link { id, type_name, from, to, properties } => {
                let ends = self.ends(type_name, from, to)?;
                Some(self.create(id, New { type_name, ends, properties })?)
            }
            ChangeRef::EnsureLink { type_name, from, to, properties } => {
                Some(self.ensure_link(type_name, from, to, properties)?)
            }
            ChangeRef::Write { op, id, properties, if_version } => {
                Some(self.write(op, id, properties, if_version)?)
            }
            ChangeRef::Unset { id, names } => Some(self.unset(id, names)?),
            ChangeRef::Remove { id } => {
                let target = self.resolve(id)?;
                if let Some(target) = target {
                    self.remove(target);
                }
                target
            }
        })
    }

    /// The element that an id or a reference such as `#2` names, if it is there.
    fn resolve(&self, id: &str) -> Result<Option<ElementRef>, Refusal> {
        let Some(earlier) = change_reference(id) else {
            return Ok(self.graph.reference_of(id.as_bytes()));
        };
        if earlier >= self.index {
            return Err(Refusal::Reference { change: self.index, reference: id.to_owned() });
        }
        let target = self.delta.targets[earlier];
        if target.is_some_and(|target| self.graph.stored(target).is_some()) {
            return Ok(target);
        }
        // The element was removed within this event; its id may stand for another one by now.
        Ok(self.graph.reference_of(self.name_of(earlier)?.as_bytes()))
    }

    /// The id that an earlier change made or touched, derived anew.
    fn name_of(&self, index: usize) -> Result<String, Refusal> {
        let change = self.event.changes().iter().nth(index).expect("an earlier change");
        Ok(match change {
            ChangeRef::Create { id: None, type_name, .. }
            | ChangeRef::Link { id: None, type_name, .. } => {
                element_id(type_name, &self.event.id(), index)
            }
            ChangeRef::EnsureLink { type_name, from, to, .. } => {
                ensured_edge_id(type_name, &self.full_name(from)?, &self.full_name(to)?)
            }
            ChangeRef::Create { id: Some(id), .. }
            | ChangeRef::Link { id: Some(id), .. }
            | ChangeRef::Ensure { id, .. }
            | ChangeRef::Write { id, .. }
            | ChangeRef::Unset { id, .. }
            | ChangeRef::Remove { id } => self.full_name(id)?,
        })
    }

    fn full_name(&self, id: &str) -> Result<String, Refusal> {
        match change_reference(id) {
            Some(earlier) => self.name_of(earlier),
            None => Ok(id.to_owned()),
        }
    }

    /// Both ends of an edge to be.
    fn ends(&self, type_name: &str, from: &str, to: &str) -> Result<(NodeRef, NodeRef), Refusal> {
        let end = |direction: &'static str, id: &str| {
            let (change, type_name) = (self.index, || type_name.to_owned());
            match self.resolve(id)? {
                Some(ElementRef::Node(node)) => Ok(node),
                Some(ElementRef::Edge(_)) => {
                    let (type_name, id) = (type_name(), id.to_owned());
                    Err(Refusal::EndIsEdge { change, type_name, direction, id })
                }
                None => {
                    let (type_name, id) = (type_name(), id.to_owned());
                    Err(Refusal::MissingEnd { change, type_name, direction, id })
                }
            }
        };
        Ok((end("from", from)?, end("to", to)?))
    }

    /// Makes an element with a chosen or a derived id, which must be free.
    fn create(&mut self, chosen: Option<&str>, new: New<'_>) -> Result<ElementRef, Refusal> {
        let bytes = &mut self.scratch.bytes;
        bytes.clear();
        match chosen {
            None => write_element_id(bytes, new.type_name, &self.event.id(), self.index),
            Some(id) if change_reference(id).is_some() => {
                return Err(Refusal::Reference { change: self.index, reference: id.to_owned() });
            }
            Some(id) => bytes.extend_from_slice(id.as_bytes()),
        }
        self.insert(new)
    }

    /// Makes an element whose id is in the scratch.
    fn insert(&mut self, new: New<'_>) -> Result<ElementRef, Refusal> {
        let (change, is_edge) = (self.index, new.ends.0 != NO_END);
        let bytes = &mut self.scratch.bytes;
        let Some(reference) = self.graph.next_reference(is_edge) else {
            let what = if is_edge { "edges" } else { "nodes" };
            return Err(Refusal::Full { change, what, limit: NUMBER_MAX });
        };
        let id_length = u32::try_from(bytes.len()).expect("an event is smaller");
        bytes.extend_from_slice(new.properties.as_bytes());
        let element = Element {
            data: Arc::from(bytes.as_slice()),
            id_length,
            type_id: self.graph.intern(new.type_name),
            version: 1,
            changed: self.offset,
            born_offset: self.offset,
            born_index: u32::try_from(change).expect("an event is smaller"),
            from: new.ends.0,
            to: new.ends.1,
            marked: 0,
        };
        if !self.graph.insert_element(reference, element) {
            let id = String::from_utf8_lossy(&bytes[..id_length as usize]).into_owned();
            let instead = if is_edge { "ensure_link" } else { "ensure" };
            return Err(Refusal::Exists { change, id, instead });
        }
        self.delta.touched.push((reference, None));
        Ok(reference)
    }

    fn ensure_link(
        &mut self,
        type_name: &str,
        from: &str,
        to: &str,
        properties: MapRef<'_>,
    ) -> Result<ElementRef, Refusal> {
        let ends = self.ends(type_name, from, to)?;
        let id_of =
            |node: NodeRef| self.graph.stored(node.into()).expect("the end was just found").id();
        let id = ensured_edge_id(type_name, id_of(ends.0), id_of(ends.1));
        match self.graph.reference_of(id.as_bytes()) {
            Some(there) => Ok(there),
            None => self.create(Some(&id), New { type_name, ends, properties }),
        }
    }

    fn write(
        &mut self,
        op: WriteOp,
        id: &str,
        properties: MapRef<'_>,
        if_version: Option<u64>,
    ) -> Result<ElementRef, Refusal> {
        let target = self.existing(op.name(), id)?;
        let element = self.graph.stored(target).expect("just resolved");
        if let Some(expected) = if_version.filter(|expected| *expected != element.version) {
            let (change, id, actual) = (self.index, element.id().to_owned(), element.version);
            return Err(Refusal::Version { change, id, expected, actual });
        }
        self.scratch.begin(element.id_bytes());
        let written = properties::write(element.properties(), op, properties, &mut self.scratch);
        written.map_err(|problem| problem.refusal(self.index, op, element.id()))?;
        self.replace(target);
        Ok(target)
    }

    fn unset(&mut self, id: &str, names: NamesRef<'_>) -> Result<ElementRef, Refusal> {
        let target = self.existing("unset properties of", id)?;
        let element = self.graph.stored(target).expect("just resolved");
        self.scratch.begin(element.id_bytes());
        properties::unset(element.properties(), names, &mut self.scratch);
        self.replace(target);
        Ok(target)
    }

    fn existing(&self, operation: &'static str, id: &str) -> Result<ElementRef, Refusal> {
        let (change, missing) = (self.index, id);
        self.resolve(id)?.ok_or_else(|| Refusal::Missing {
            change,
            operation,
            id: missing.to_owned(),
        })
    }

    /// Gives the target the id and properties in the scratch; equal ones leave everything alone.
    fn replace(&mut self, target: ElementRef) {
        let old = self.graph.stored(target).expect("just resolved");
        let bytes = self.scratch.bytes.as_slice();
        if *old.data == *bytes {
            return;
        }
        let new = Element {
            data: Arc::from(bytes),
            version: old.version + 1,
            changed: self.offset,
            ..*old
        };
        let old = self.graph.replace_element(target, new);
        if old.changed != self.offset {
            self.delta.touched.push((target, Some(old)));
        }
    }

    fn remove(&mut self, target: ElementRef) {
        if let ElementRef::Node(node) = target {
            let mut edges: Vec<u64> = self.graph.out_keys(node, None).collect();
            edges.extend(self.graph.in_keys(node, None));
            edges.sort_unstable();
            edges.dedup();
            for key in edges {
                self.remove_one(crate::graph::edge_of(key).into());
            }
        }
        self.remove_one(target);
    }

    fn remove_one(&mut self, target: ElementRef) {
        let old = self.graph.remove_element(target);
        self.delta.removals = true;
        // What this event changed before, or made, has its old state in the delta already.
        if old.changed != self.offset {
            self.delta.touched.push((target, Some(old)));
        }
    }
}
