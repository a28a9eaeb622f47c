//! A graph as JSON for people and other programs.

use serde_json::{Value, json};

use crate::graph::{ElementView, Graph};
use crate::world::World;

impl Graph {
    /// `{"nodes": [{id, type, properties, version, changed}…], "edges": [{id, …, from, to}…]}`,
    /// each in order of creation.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let view = |reference| self.view(reference).expect("what is listed is there");
        let nodes: Vec<Value> =
            self.all_nodes().map(|node| self.element_to_json(view(node.into()))).collect();
        let edges: Vec<Value> =
            self.all_edges().map(|edge| self.element_to_json(view(edge.into()))).collect();
        json!({ "nodes": nodes, "edges": edges })
    }

    /// One element as it stands in `to_json`.
    #[must_use]
    pub fn element_to_json(&self, view: ElementView<'_>) -> Value {
        let mut json = json!({
            "id": view.id(),
            "type": view.type_name(),
            "properties": view.properties_json(),
            "version": view.version(),
            "changed": view.changed().get(),
        });
        if let Some((from, to)) = view.ends() {
            let id = |node: crate::graph::NodeRef| {
                json!(self.at(node.into()).expect("an edge has its ends").id())
            };
            json["from"] = id(from);
            json["to"] = id(to);
        }
        json
    }
}
