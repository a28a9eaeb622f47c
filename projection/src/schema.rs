//! What the elements of a type must look like, declared by an event.

/// The kind of event that declares the schema of a type: `{type, schema}`, where schema is a JSON
/// Schema for the element's properties, or null to drop it.
pub const SCHEMA_DECLARED: &str = "schema.declared";
