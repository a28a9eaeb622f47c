//! The graph as naively as it can be told: a map that is copied for every event.

use std::collections::BTreeMap;

use log::{Change, EventId, WriteOp, change_reference, element_id, ensured_edge_id};
use serde_json::{Map, Value, json};

/// An element.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) type_name: String,
    pub(crate) properties: Map<String, Value>,
    pub(crate) ends: Option<(String, String)>,
    pub(crate) version: u64,
    pub(crate) changed: u64,
    pub(crate) born: (u64, usize),
}

/// All elements by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model(pub(crate) BTreeMap<String, Element>);

impl Model {
    /// The model after an event; `None` if it is refused.
    pub(crate) fn after(&self, id: EventId, offset: u64, changes: &[Change]) -> Option<Model> {
        let mut model = self.clone();
        let mut ids: Vec<String> = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            let id = model.change(&ids, id, offset, index, change)?;
            ids.push(id);
        }
        Some(model)
    }

    fn change(
        &mut self,
        ids: &[String],
        event: EventId,
        offset: u64,
        index: usize,
        change: &Change,
    ) -> Option<String> {
        let name = |id: &str| match change_reference(id) {
            Some(earlier) => ids.get(earlier).cloned(),
            None => Some(id.to_owned()),
        };
        let new = |type_name: &str, properties: &Map<String, Value>, ends| Element {
            type_name: type_name.to_owned(),
            properties: properties.clone(),
            ends,
            version: 1,
            changed: offset,
            born: (offset, index),
        };
        let made = |id: &Option<smol_str::SmolStr>, type_name: &str| {
            let derived = || element_id(type_name, &event, index);
            id.as_ref().map_or_else(derived, |id| id.to_string())
        };
        match change {
            Change::Create { id, type_name, properties } => {
                let id = made(id, type_name);
                let absent = !self.0.contains_key(&id) && change_reference(&id).is_none();
                absent.then(|| self.0.insert(id.clone(), new(type_name, properties, None)))?;
                Some(id)
            }
            Change::Ensure { id, type_name, properties } => {
                let known = name(id)?;
                if !self.0.contains_key(&known) {
                    change_reference(id).is_none().then_some(())?;
                    self.0.insert(known.clone(), new(type_name, properties, None));
                }
                Some(known)
            }
            Change::Link { id, type_name, from, to, properties } => {
                let ends = (self.node(name(from)?)?, self.node(name(to)?)?);
                let id = made(id, type_name);
                let absent = !self.0.contains_key(&id) && change_reference(&id).is_none();
                absent
                    .then(|| self.0.insert(id.clone(), new(type_name, properties, Some(ends))))?;
                Some(id)
            }
            Change::EnsureLink { type_name, from, to, properties } => {
                let (from, to) = (self.node(name(from)?)?, self.node(name(to)?)?);
                let id = ensured_edge_id(type_name, &from, &to);
                self.0.entry(id.clone()).or_insert(new(type_name, properties, Some((from, to))));
                Some(id)
            }
            Change::Write { op, id, properties, if_version } => {
                let element = self.0.get(&name(id)?)?;
                if_version.is_none_or(|version| version == element.version).then_some(())?;
                let mut written = element.properties.clone();
                for (key, value) in properties {
                    written.insert(key.clone(), joined(*op, written.get(key), value)?);
                }
                self.rewritten(name(id)?, written, offset)
            }
            Change::Unset { id, names } => {
                let mut written = self.0.get(&name(id)?)?.properties.clone();
                names.iter().for_each(|name| drop(written.remove(name.as_str())));
                self.rewritten(name(id)?, written, offset)
            }
            Change::Remove { id } => Some(self.removed(name(id)?)),
        }
    }

    fn rewritten(&mut self, id: String, to: Map<String, Value>, offset: u64) -> Option<String> {
        self.0.get_mut(&id)?.become_(to, offset);
        Some(id)
    }

    /// Removes an element and the edges at it.
    fn removed(&mut self, id: String) -> String {
        if self.0.remove(&id).is_some() {
            self.0.retain(|_, other| {
                other.ends.as_ref().is_none_or(|(from, to)| *from != id && *to != id)
            });
        }
        id
    }

    fn node(&self, id: String) -> Option<String> {
        let is_node = self.0.get(&id)?.ends.is_none();
        is_node.then_some(id)
    }

    /// The elements in order of creation.
    pub(crate) fn in_order(&self) -> Vec<(&String, &Element)> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(_, element)| element.born);
        all
    }

    /// As `Graph::to_json`.
    pub(crate) fn to_json(&self) -> Value {
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        for (id, element) in self.in_order() {
            let mut json = json!({
                "id": id,
                "type": element.type_name,
                "properties": element.properties,
                "version": element.version,
                "changed": element.changed,
            });
            if let Some((from, to)) = &element.ends {
                json["from"] = json!(from);
                json["to"] = json!(to);
                edges.push(json);
            } else {
                nodes.push(json);
            }
        }
        json!({"nodes": nodes, "edges": edges})
    }
}

impl Element {
    fn become_(&mut self, properties: Map<String, Value>, offset: u64) {
        if properties != self.properties {
            self.properties = properties;
            self.version += 1;
            self.changed = offset;
        }
    }
}

fn joined(op: WriteOp, old: Option<&Value>, value: &Value) -> Option<Value> {
    let old = old.filter(|old| !old.is_null());
    match op {
        WriteOp::Set => Some(value.clone()),
        WriteOp::Append => {
            let mut items = old.map_or(Some(Vec::new()), |old| old.as_array().cloned())?;
            items.push(value.clone());
            Some(Value::Array(items))
        }
        WriteOp::Add => {
            let old = old.cloned().unwrap_or(json!(0));
            if let (Some(left), Some(right)) = (old.as_i64(), value.as_i64()) {
                return left.checked_add(right).map(Value::from);
            }
            let sum = old.as_f64()? + value.as_f64()?;
            sum.is_finite().then(|| Value::from(sum))
        }
    }
}
