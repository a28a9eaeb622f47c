//! What the elements of a type must look like: a JSON Schema for their properties, declared by an
//! event and from then on checked for every change alike.
//!
//! Schemas are part of the fold. A schema is declared only when every element of the type fits it,
//! so at any offset every element fits the schema of its type. What counts is how an element is
//! after the whole event. A text over 4 KiB is known to the graph by its first 256 bytes, and is
//! checked by those. Schemas never load others from elsewhere, and their patterns match in linear
//! time.

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use log::{Event, MapRef, ValueRef};
use serde_json::{Map, Value};
use smol_str::SmolStr;

use crate::delta::Delta;
use crate::graph::{ElementRef, ElementView, Graph};
use crate::refusal::Refusal;

/// The kind of event that declares the schema of a type: its payload is `{type, schema}`, where
/// `schema` is a JSON Schema for an element's properties, or null to drop the one in force.
pub const SCHEMA_DECLARED: &str = "schema.declared";

/// The longest message of a failed check, in characters.
const MESSAGE_MAX: usize = 200;

/// The schemas in force, by type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schemas(Arc<BTreeMap<SmolStr, Schema>>);

#[derive(Clone, Debug)]
struct Schema {
    /// As it was declared.
    source: Value,
    validator: Arc<Validator>,
}

impl Schemas {
    /// The schemas by type.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, schema)| (name.as_str(), &schema.source))
    }

    /// Puts a schema in force, or drops the one of this type.
    pub(crate) fn declare(&mut self, type_name: &str, source: Value) -> Result<(), Refusal> {
        if source.is_null() {
            Arc::make_mut(&mut self.0).remove(type_name);
            return Ok(());
        }
        let mut options =
            jsonschema::options().offline().with_pattern_options(PatternOptions::regex());
        if source.get("$schema").is_none() {
            options = options.with_draft(jsonschema::Draft::Draft202012);
        }
        let validator = options.build(&source).map_err(|error| Refusal::BadSchema {
            type_name: type_name.to_owned(),
            what: shortened(&error.to_string()),
        })?;
        let schema = Schema { source, validator: Arc::new(validator) };
        Arc::make_mut(&mut self.0).insert(type_name.into(), schema);
        Ok(())
    }

    /// Whether an element fits the schema of its type. `change` is the change that touched it.
    fn check(&self, view: ElementView<'_>, change: Option<usize>) -> Result<(), Refusal> {
        let Some(schema) = self.0.get(view.type_name()) else { return Ok(()) };
        let properties = Value::Object(in_sight(view.properties()));
        schema.validator.validate(&properties).map_err(|error| Refusal::Schema {
            change,
            id: view.id().to_owned(),
            type_name: view.type_name().to_owned(),
            at: error.instance_path().to_string(),
            what: shortened(&error.to_string()),
        })
    }
}

impl Graph {
    /// Declares the schema that the event carries, if it does, and checks what the event touched.
    pub(crate) fn apply_schemas(
        &mut self,
        event: &Event,
        delta: &mut Delta,
    ) -> Result<(), Refusal> {
        if event.is_kind(SCHEMA_DECLARED) {
            let (type_name, source) = declaration(event.payload())?;
            let before = self.schemas.clone();
            self.schemas.declare(type_name, source)?;
            delta.schemas = Some(before);
            let Some(type_id) = self.types().find(type_name) else { return Ok(()) };
            let nodes = self.nodes_in(type_id).map(ElementRef::Node);
            for element in nodes.chain(self.edges_in(type_id).map(ElementRef::Edge)) {
                self.schemas.check(self.view(element).expect("a member is there"), None)?;
            }
        }
        if self.schemas.0.is_empty() {
            return Ok(());
        }
        for element in delta.touched() {
            let Some(view) = self.view(element) else { continue };
            let change = delta.targets.iter().rposition(|target| *target == Some(element));
            self.schemas.check(view, change)?;
        }
        Ok(())
    }

    /// The schema in force for a type.
    #[must_use]
    pub fn schema(&self, type_name: &str) -> Option<&Value> {
        self.schemas.0.get(type_name).map(|schema| &schema.source)
    }
}

fn declaration(payload: MapRef<'_>) -> Result<(&str, Value), Refusal> {
    let type_name = payload.get("type").and_then(ValueRef::as_str).unwrap_or_default();
    let bad = |what: &str| {
        Err(Refusal::BadSchema { type_name: type_name.to_owned(), what: what.to_owned() })
    };
    if type_name.is_empty() {
        return bad("the payload names no type; write {\"type\": NAME, \"schema\": {…}}");
    }
    match payload.get("schema") {
        Some(ValueRef::Null) => Ok((type_name, Value::Null)),
        Some(schema @ (ValueRef::Map(_) | ValueRef::Bool(_))) => Ok((type_name, schema.to_json())),
        _ => bad("`schema` is a JSON Schema, which is an object, or null to drop the one in force"),
    }
}

/// Properties as the graph sees them: of a long text, its first bytes.
fn in_sight(properties: MapRef<'_>) -> Map<String, Value> {
    properties.iter().map(|(key, value)| (key.to_owned(), value_in_sight(value))).collect()
}

fn value_in_sight(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Blob(blob) => Value::String(blob.head.to_owned()),
        ValueRef::List(items) => Value::Array(items.iter().map(value_in_sight).collect()),
        ValueRef::Map(entries) => Value::Object(in_sight(entries)),
        other => other.to_json(),
    }
}

fn shortened(message: &str) -> String {
    if message.chars().count() <= MESSAGE_MAX {
        return message.to_owned();
    }
    let begin: String = message.chars().take(MESSAGE_MAX).collect();
    format!("{begin}…")
}
