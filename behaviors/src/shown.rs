//! A firing as JSON: what a program outside is told, and what a prompt is rendered from.

use serde_json::{Map, Value, json};

use crate::view::{Binding, ElementView, EventView, Firing, Read};

impl Firing<'_> {
    /// All that the reaction sees: `{"event", "match", "reads", "settings", "now", "random"}`. A
    /// read gives elements where one variable is free, else records.
    #[must_use]
    pub fn to_json(&self) -> Map<String, Value> {
        let bound = self.bound.iter();
        let bound = bound.map(|(name, binding)| ((*name).to_owned(), binding.to_json()));
        let reads = self.reads.iter().map(|read| (read.name.to_owned(), read.to_json()));
        let parts = [
            ("event", self.event.to_json()),
            ("match", Value::Object(bound.collect())),
            ("reads", Value::Object(reads.collect())),
            ("settings", Value::Object(self.settings.clone().into_owned())),
            ("now", json!(self.now.ms())),
            // Programs count in floats, so it is a number that a float holds exactly.
            ("random", json!(self.rand.below(1 << 53))),
        ];
        parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl EventView<'_> {
    /// The event as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id.hex().as_str(),
            "kind": self.kind,
            "actor": self.actor,
            "key": self.key,
            "time": self.time.ms(),
            "payload": self.payload.to_json(),
        })
    }
}

impl ElementView<'_> {
    /// The element as JSON; an edge has `from` and `to`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "id": self.id,
            "type": self.type_name,
            "version": self.version,
            "properties": self.properties.to_json(),
        });
        if let Some((from, to)) = self.ends {
            (json["from"], json["to"]) = (json!(from), json!(to));
        }
        json
    }
}

impl Binding<'_> {
    /// What is bound as JSON: null, an element, or the edges of a path.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Binding::Null => Value::Null,
            Binding::Element(element) => element.to_json(),
            Binding::Path(edges) => edges.iter().map(ElementView::to_json).collect(),
        }
    }
}

impl Read<'_> {
    /// The rows as JSON: elements where one variable is free, else records.
    #[must_use]
    pub fn to_json(&self) -> Value {
        if self.variables.len() == 1 {
            return self.bindings.iter().map(Binding::to_json).collect();
        }
        let record = |row: &[Binding<'_>]| -> Value {
            let pairs = self.variables.iter().zip(row);
            Value::Object(pairs.map(|(name, b)| ((*name).to_owned(), b.to_json())).collect())
        };
        self.rows().map(record).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Scene;

    #[test]
    fn a_firing_is_told_whole_and_no_more() {
        let trip = json!({"id": "t", "type": "Trip", "properties": {"n": 1, "f": 1.0}});
        let edge = json!({"id": "e", "type": "AT", "from": "t", "to": "s"});
        let scene = Scene::new(json!({
            "event": {"kind": "k", "payload": {"a": [1]}},
            "bound": {"trip": trip, "way": [edge], "gone": null},
            "reads": {"all": [trip], "pairs": [{"a": trip, "e": edge}]},
            "settings": {"margin": 2}, "now": 5,
        }));
        let firing = scene.firing("b");
        let mut told = firing.to_json();
        let random = told.remove("random").and_then(|n| n.as_u64()).expect("a whole number");
        assert_eq!(random, scene.firing("b").rand.below(1 << 53), "the same in every run");
        let trip =
            json!({"id": "t", "type": "Trip", "version": 1, "properties": {"n": 1, "f": 1.0}});
        let edge = json!({
            "id": "e", "type": "AT", "version": 1, "from": "t", "to": "s", "properties": {},
        });
        let event = json!({
            "id": "07".repeat(16), "kind": "k", "actor": "user:ann", "key": null, "time": 5,
            "payload": {"a": [1]},
        });
        let expected = json!({
            "event": event, "match": {"trip": trip, "way": [edge], "gone": null},
            "reads": {"all": [trip], "pairs": [{"a": trip, "e": edge}]},
            "settings": {"margin": 2}, "now": 5,
        });
        assert_eq!(serde_json::Value::Object(told), expected);
    }
}
