//! A fold stopped at an offset: the graph as bytes.
//!
//! Version, head, types, nodes, edges, schemas, and a hash of it all. Elements stand in order of
//! creation and edges name their ends by place, so the bytes depend on the fold alone: a graph that
//! went through a snapshot and on has the same bytes as one that did not. Indexes and the hash tree
//! are not part of it. A snapshot is a cache; who loses one folds from an earlier one, or from the
//! beginning.

use std::sync::Arc;

use log::{Head, Offset};

use crate::graph::{EdgeRef, Element, Graph, NO_END, NUMBER_MAX, NodeRef};
use crate::graph::{TypeId, Types};
use crate::varint::{read_section, read_varint, write_section, write_varint};

/// The first byte of every snapshot.
pub const SNAPSHOT_VERSION: u8 = 2;

/// The hash at the end.
const SEAL: usize = 32;

/// Why bytes are not a snapshot. Fold the log from its beginning instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are facts named by the message that shows them")]
pub enum SnapshotError {
    #[error(
        "the snapshot has format {found}, this version reads {known}; fold the log without it and \
         it is written anew"
    )]
    Version { found: u8, known: u8 },
    #[error("the snapshot is damaged: {what}; fold the log without it and it is written anew")]
    Damaged { what: &'static str },
}

impl Graph {
    /// The graph as bytes: the same fold gives the same bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + 96 * (self.node_count() + self.edge_count()));
        bytes.push(SNAPSHOT_VERSION);
        write_varint(&mut bytes, self.head().count());
        write_varint(&mut bytes, self.types().len() as u64);
        self.types().names().for_each(|name| write_section(&mut bytes, name.as_bytes()));
        write_varint(&mut bytes, self.node_count() as u64);
        let mut places = vec![0u32; self.counters().next_node as usize];
        for (place, (node, element)) in self.stored_nodes().enumerate() {
            places[node.0 as usize] = place as u32;
            write_element(&mut bytes, element);
        }
        write_varint(&mut bytes, self.edge_count() as u64);
        for (_, element) in self.stored_edges() {
            write_element(&mut bytes, element);
            write_varint(&mut bytes, u64::from(places[element.from.0 as usize]));
            write_varint(&mut bytes, u64::from(places[element.to.0 as usize]));
        }
        write_varint(&mut bytes, self.schemas.iter().count() as u64);
        for (type_name, source) in self.schemas.iter() {
            write_section(&mut bytes, type_name.as_bytes());
            write_section(&mut bytes, source.to_string().as_bytes());
        }
        let seal = blake3::hash(&bytes);
        bytes.extend_from_slice(seal.as_bytes());
        bytes
    }

    /// Reads what `encode` wrote. Indexes must be declared again.
    ///
    /// # Errors
    /// Another format, or damaged bytes.
    pub fn decode(bytes: &[u8]) -> Result<Graph, SnapshotError> {
        let damaged = |what| SnapshotError::Damaged { what };
        let found = *bytes.first().ok_or(damaged("it is empty"))?;
        if found != SNAPSHOT_VERSION {
            return Err(SnapshotError::Version { found, known: SNAPSHOT_VERSION });
        }
        let body = bytes.len().checked_sub(SEAL).ok_or(damaged("it is cut short"))?;
        let (body, seal) = bytes.split_at(body);
        if blake3::hash(body).as_bytes() != seal {
            return Err(damaged("it does not have the hash that it was stored with"));
        }
        let mut reader = Reader { rest: &body[1..], graph: Graph::new() };
        reader.all().map_err(damaged)?;
        Ok(reader.graph)
    }
}

fn write_element(bytes: &mut Vec<u8>, element: &Element) {
    write_varint(bytes, u64::from(element.id_length));
    write_section(bytes, &element.data);
    write_varint(bytes, u64::from(element.type_id.0));
    write_varint(bytes, element.version);
    write_varint(bytes, element.born_offset.get());
    write_varint(bytes, element.born_offset.distance_to(element.changed));
    write_varint(bytes, u64::from(element.born_index));
}

/// A graph that is being read.
struct Reader<'b> {
    rest: &'b [u8],
    graph: Graph,
}

impl<'b> Reader<'b> {
    fn all(&mut self) -> Result<(), &'static str> {
        self.graph.head = Head::of_count(self.number()?);
        let mut types = Types::default();
        for _ in 0..self.number()? {
            let name = self.text()?;
            if types.find(name).is_some() {
                return Err("a type stands twice");
            }
            types.add(name);
        }
        self.graph.set_types(types);
        for place in 0..self.count()? {
            let element = self.element()?;
            self.graph.place_element(NodeRef(place).into(), element);
        }
        let nodes = self.graph.node_count() as u64;
        for place in 0..self.count()? {
            let mut element = self.element()?;
            for end in [&mut element.from, &mut element.to] {
                let place = self.number()?;
                if place >= nodes {
                    return Err("an edge without its end");
                }
                *end = NodeRef(place as u32);
            }
            self.graph.place_element(EdgeRef(place).into(), element);
        }
        if !self.graph.index_ids() {
            return Err("an id stands twice");
        }
        for _ in 0..self.number()? {
            let type_name = self.text()?;
            let source = serde_json::from_str(self.text()?).map_err(|_| "a schema not in JSON")?;
            let declared = self.graph.schemas.declare(type_name, source);
            declared.map_err(|_| "a schema that cannot be used")?;
        }
        if self.rest.is_empty() { Ok(()) } else { Err("bytes after the end") }
    }

    fn element(&mut self) -> Result<Element, &'static str> {
        let id_length = self.small_number()?;
        let data = read_section(&mut self.rest).ok_or("an element cut short")?;
        let id = data.get(..id_length as usize).ok_or("an id over the end")?;
        std::str::from_utf8(id).map_err(|_| "a text that is not UTF-8")?;
        let type_id = self.small_number()?;
        if type_id as usize >= self.graph.types().len() {
            return Err("an element without its type");
        }
        let version = self.number()?;
        let born_offset = Offset::new(self.number()?);
        let since = self.number()?;
        let changed = born_offset.get().checked_add(since).ok_or("an offset over the end")?;
        Ok(Element {
            data: Arc::from(data),
            id_length,
            type_id: TypeId(type_id),
            version,
            changed: Offset::new(changed),
            born_offset,
            born_index: self.small_number()?,
            from: NO_END,
            to: NO_END,
            marked: 0,
        })
    }

    fn number(&mut self) -> Result<u64, &'static str> {
        read_varint(&mut self.rest).ok_or("a number without an end")
    }

    fn small_number(&mut self) -> Result<u32, &'static str> {
        u32::try_from(self.number()?).map_err(|_| "a number out of range")
    }

    /// How many elements follow.
    fn count(&mut self) -> Result<u32, &'static str> {
        let count = self.small_number()?;
        if count < NUMBER_MAX { Ok(count) } else { Err("a number out of range") }
    }

    fn text(&mut self) -> Result<&'b str, &'static str> {
        let text = read_section(&mut self.rest).ok_or("a text cut short")?;
        std::str::from_utf8(text).map_err(|_| "a text that is not UTF-8")
    }
}
