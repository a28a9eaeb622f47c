//! All that a reaction may see: event, match, declared reads, settings, chance and time.
//!
//! It borrows from wherever the data is, the graph or a message of another process, and nothing in
//! it calls back. A reaction does not see the event's offset: that shifts with what others do.

use std::borrow::Cow;

use log::{Event, EventId, MapRef, Time, ValueRef};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::ReactError;
use crate::message::stored_map;
use crate::stream::Stream;
use crate::suggest::did_you_mean;
use crate::texts::Texts;

/// All that a reaction may see.
#[derive(Clone, Debug)]
pub struct Firing<'a> {
    /// The event that woke the behavior.
    pub event: EventView<'a>,
    /// The variables of the match, in pattern order.
    pub bound: Vec<(&'a str, Binding<'a>)>,
    /// The declared reads, by name.
    pub reads: Vec<Read<'a>>,
    /// The settings of the flock.
    pub settings: Cow<'a, Map<String, Value>>,
    /// Its random numbers.
    pub rand: Stream<'a>,
    /// The recorded time of the event.
    pub now: Time,
    /// What the effect answered that it asked: the payload of the event that ended it.
    pub answer: Option<MapRef<'a>>,
    /// Finds the long texts that stand outside of what is seen.
    pub texts: Texts<'a>,
}

/// An event as a reaction sees it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventView<'a> {
    /// Its derivation.
    pub id: EventId,
    /// What happened.
    pub kind: &'a str,
    /// Who did it.
    pub actor: &'a str,
    /// Its durable key.
    #[serde(borrow)]
    pub key: Option<&'a str>,
    /// When it is said to have happened.
    pub time: Time,
    /// The domain's words.
    #[serde(borrow, with = "stored_map")]
    pub payload: MapRef<'a>,
}

impl<'a> From<&'a Event> for EventView<'a> {
    fn from(event: &'a Event) -> Self {
        EventView {
            id: event.id(),
            kind: event.kind(),
            actor: event.actor(),
            key: event.key(),
            time: event.time(),
            payload: event.payload(),
        }
    }
}

/// A node or an edge as a reaction sees it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ElementView<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its type.
    pub type_name: &'a str,
    /// How often it was written.
    pub version: u64,
    /// From where to where, if it is an edge.
    #[serde(borrow)]
    pub ends: Option<(&'a str, &'a str)>,
    /// Its properties.
    #[serde(borrow, with = "stored_map")]
    pub properties: MapRef<'a>,
}

/// What a variable of a pattern is bound to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Binding<'a> {
    /// Nothing.
    Null,
    /// A node or an edge.
    #[serde(borrow)]
    Element(ElementView<'a>),
    /// The edges of a variable-length part.
    Path(Vec<ElementView<'a>>),
}

/// The rows of one declared read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Read<'a> {
    /// The name it was declared under.
    pub name: &'a str,
    /// The variables that the match does not bind, in pattern order.
    #[serde(borrow)]
    pub variables: Vec<&'a str>,
    /// Row after row, one binding for each variable.
    pub bindings: Vec<Binding<'a>>,
}

impl<'a> Firing<'a> {
    /// The element that a variable of the match is bound to.
    ///
    /// # Errors
    /// There is no such variable, or it is bound to a path or to nothing.
    pub fn element(&self, name: &str) -> Result<ElementView<'a>, ReactError> {
        let known = self.bound.iter().map(|(name, _)| *name);
        match self.bound.iter().find(|(variable, _)| *variable == name) {
            Some((_, Binding::Element(element))) => Ok(*element),
            Some(_) => Err(ReactError::new(format!("`{name}` is not bound to one element"))),
            None => {
                let hint = did_you_mean(name, known);
                Err(ReactError::new(format!("the match binds no `{name}`{hint}")))
            }
        }
    }

    /// A declared read.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn read(&self, name: &str) -> Result<&Read<'a>, ReactError> {
        self.reads.iter().find(|read| read.name == name).ok_or_else(|| {
            let hint = did_you_mean(name, self.reads.iter().map(|read| read.name));
            ReactError::new(format!("no read is declared as `{name}`{hint}"))
        })
    }

    /// The type of the element with this id, if the firing binds it.
    #[must_use]
    pub fn type_of(&self, id: &str) -> Option<&'a str> {
        let bound = self.bound.iter().map(|(_, binding)| binding);
        let read = self.reads.iter().flat_map(|read| &read.bindings);
        bound.chain(read).find_map(|binding| match binding {
            Binding::Null => None,
            Binding::Element(element) => (element.id == id).then_some(element.type_name),
            Binding::Path(edges) => edges.iter().find(|e| e.id == id).map(|e| e.type_name),
        })
    }
}

impl<'a> Read<'a> {
    /// The rows, each with one binding for each variable.
    pub fn rows(&self) -> impl Iterator<Item = &[Binding<'a>]> {
        let width = self.variables.len().max(1);
        assert!(self.bindings.len().is_multiple_of(width), "the rows of a read are whole");
        self.bindings.chunks(width)
    }

    /// The elements, where each row is one.
    pub fn elements(&self) -> impl Iterator<Item = ElementView<'a>> {
        self.bindings.iter().filter_map(|binding| match binding {
            Binding::Element(element) => Some(*element),
            _ => None,
        })
    }
}

impl<'a> ElementView<'a> {
    /// A property; `None` when it is missing.
    #[must_use]
    pub fn get(&self, property: &str) -> Option<ValueRef<'a>> {
        self.properties.get(property)
    }

    /// A text property; `None` when it is missing or no text.
    #[must_use]
    pub fn text(&self, property: &str) -> Option<&'a str> {
        self.get(property)?.as_str()
    }

    /// A number; `None` when it is missing or no number.
    #[must_use]
    pub fn number(&self, property: &str) -> Option<f64> {
        self.get(property)?.as_f64()
    }

    /// A whole number; `None` when it is missing or none that fits.
    #[must_use]
    pub fn integer(&self, property: &str) -> Option<i64> {
        self.get(property)?.as_i64()
    }
}
