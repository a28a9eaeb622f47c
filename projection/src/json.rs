//! A graph as JSON for people and other programs.

use serde_json::Value;

use crate::graph::Graph;

impl Graph {
    /// `{"nodes": [{id, type, properties, version, changed}…], "edges": [{id, type, from, to, …}…]}`,
    /// in order of creation.
    #[must_use]
    pub fn to_json(&self) -> Value {
        todo!("skeleton")
    }
}
