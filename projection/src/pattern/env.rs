//! What a pattern may mention besides the graph.

use std::collections::BTreeMap;

use log::Event;
use serde_json::Value;

/// The event that `event.` reads, and the values of the parameters.
///
/// What is missing is null: `$name` without a value, and every field of an absent event.
#[derive(Clone, Copy, Debug)]
pub struct Env<'e> {
    /// The event being handled.
    pub event: Option<&'e Event>,
    /// The values of `$name`.
    pub parameters: &'e BTreeMap<String, Value>,
}

static NO_PARAMETERS: BTreeMap<String, Value> = BTreeMap::new();

impl Env<'static> {
    /// Neither event nor parameters.
    pub const EMPTY: Env<'static> = Env { event: None, parameters: &NO_PARAMETERS };
}
