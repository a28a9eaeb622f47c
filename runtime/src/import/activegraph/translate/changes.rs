//! What its projection does with an event, as changes of ours.
//!
//! Its relations may end at objects that are not there; our edges cannot. Such a relation waits,
//! and becomes an edge with the event that makes the missing object.

use std::collections::BTreeMap;

use log::Change;
use projection::Graph;
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::super::Row;

/// Relations that wait for an end, by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Relations {
    waiting: BTreeMap<String, Relation>,
}

impl Relations {
    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// A relation as it is created.
#[derive(Clone, Debug)]
struct Relation {
    id: String,
    type_name: String,
    from: String,
    to: String,
    data: Map<String, Value>,
}

/// An id as it is. `#3` alone would name a change of the same event.
fn id_of(value: &Value) -> Result<SmolStr, String> {
    match value.as_str() {
        Some(id) if !id.is_empty() && !id.starts_with('#') => Ok(id.into()),
        _ => Err(format!("{value} is no id")),
    }
}

fn text(value: &Value, what: &str) -> Result<String, String> {
    let text = value.as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| format!("its {what} is {value}, not a text"))
}

fn data(value: &Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(data) => Ok(data.clone()),
        Value::Null => Ok(Map::new()),
        other => Err(format!("its data is {other}, not an object")),
    }
}

/// The changes of one row.
pub(super) fn of_row(
    row: &Row,
    graph: &Graph,
    relations: &mut Relations,
) -> Result<Vec<Change>, String> {
    let payload = Value::Object(row.payload.clone());
    match row.kind.as_str() {
        "object.created" => object_created(&payload["object"], graph, relations),
        "object.removed" => {
            let id = id_of(&payload["id"])?;
            relations.waiting.retain(|_, relation| relation.from != id && relation.to != id);
            Ok(removed(id, graph))
        }
        "relation.created" => {
            let relation = relation(&payload["relation"])?;
            // It may have waited for an end; what is made now is another in its place.
            relations.waiting.remove(&relation.id);
            let mut changes = removed(relation.id.as_str().into(), graph);
            let is_there = |id: &str| graph.node(id).is_some();
            changes.extend(link(relation, &is_there, relations));
            Ok(changes)
        }
        "relation.removed" => {
            let id = id_of(&payload["id"])?;
            relations.waiting.remove(id.as_str());
            Ok(removed(id, graph))
        }
        "patch.applied" => patch(&payload["patch"], graph),
        _ => Ok(Vec::new()),
    }
}

/// The changes that make a graph that stands for all that was before.
pub(super) fn of_base(base: &Value, relations: &mut Relations) -> Result<Vec<Change>, String> {
    let list = |name: &str| base[name].as_array().into_iter().flatten();
    let mut changes = Vec::new();
    let mut known = std::collections::BTreeSet::new();
    for object in list("objects") {
        let id = id_of(&object["id"])?;
        known.insert(id.clone());
        changes.push(create(id, object)?);
    }
    for made in list("relations") {
        let is_there = |id: &str| known.contains(id);
        changes.extend(link(relation(made)?, &is_there, relations));
    }
    Ok(changes)
}

fn create(id: SmolStr, object: &Value) -> Result<Change, String> {
    let type_name = text(&object["type"], "type")?.into();
    Ok(Change::Create { id: Some(id), type_name, properties: data(&object["data"])? })
}

fn object_created(
    object: &Value,
    graph: &Graph,
    relations: &mut Relations,
) -> Result<Vec<Change>, String> {
    let id = id_of(&object["id"])?;
    if let Some(there) = graph.element(&id) {
        // It replaces what is there; relations stay.
        if there.type_name() != object["type"].as_str().unwrap_or_default() {
            return Err(format!("`{id}` is there already, with the type {}", there.type_name()));
        }
        return Ok(replaced(id, &data(&object["data"])?, graph));
    }
    let mut changes = vec![create(id.clone(), object)?];
    let concerned = |relation: &&Relation| relation.from == id || relation.to == id;
    let waiting: Vec<Relation> = relations.waiting.values().filter(concerned).cloned().collect();
    for relation in waiting {
        relations.waiting.remove(&relation.id);
        let is_there = |end: &str| end == id || graph.node(end).is_some();
        changes.extend(link(relation, &is_there, relations));
    }
    Ok(changes)
}

fn relation(made: &Value) -> Result<Relation, String> {
    Ok(Relation {
        id: id_of(&made["id"])?.to_string(),
        type_name: text(&made["type"], "type")?,
        from: id_of(&made["source"])?.to_string(),
        to: id_of(&made["target"])?.to_string(),
        data: data(&made["data"])?,
    })
}

/// The edge of a relation, or nothing: then it waits.
fn link(
    relation: Relation,
    is_there: &dyn Fn(&str) -> bool,
    relations: &mut Relations,
) -> Option<Change> {
    if !is_there(&relation.from) || !is_there(&relation.to) {
        relations.waiting.insert(relation.id.clone(), relation);
        return None;
    }
    Some(Change::Link {
        id: Some(relation.id.into()),
        type_name: relation.type_name.into(),
        from: relation.from.into(),
        to: relation.to.into(),
        properties: relation.data,
    })
}

fn removed(id: SmolStr, graph: &Graph) -> Vec<Change> {
    if graph.element(&id).is_some() { vec![Change::Remove { id }] } else { Vec::new() }
}

/// What an applied patch does: merge or replace, of an object that is there; of anything else,
/// nothing.
fn patch(patch: &Value, graph: &Graph) -> Result<Vec<Change>, String> {
    let id = id_of(&patch["target"])?;
    if graph.node(&id).is_none() {
        return Ok(Vec::new());
    }
    let value = data(&patch["value"])?;
    match patch["op"].as_str() {
        Some("replace") => Ok(replaced(id, &value, graph)),
        Some("update") => Ok(set(id, value)),
        _ => Err(format!("a patch with the operation {}", patch["op"])),
    }
}

fn set(id: SmolStr, properties: Map<String, Value>) -> Vec<Change> {
    if properties.is_empty() {
        return Vec::new();
    }
    vec![Change::Write { op: log::WriteOp::Set, id, properties, if_version: None }]
}

fn replaced(id: SmolStr, properties: &Map<String, Value>, graph: &Graph) -> Vec<Change> {
    let there = graph.element(&id).map(|element| element.properties_json()).unwrap_or_default();
    let gone = there.keys().filter(|name| !properties.contains_key(*name));
    let names: Vec<SmolStr> = gone.map(|name| name.as_str().into()).collect();
    let mut changes = Vec::new();
    if !names.is_empty() {
        changes.push(Change::Unset { id: id.clone(), names });
    }
    changes.extend(set(id, properties.clone()));
    changes
}
