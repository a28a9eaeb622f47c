//! Changes as JSON, as people, scripts and exports write them. An unknown field is refused: a
//! change has an effect, so a part of it cannot be passed over.

use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use super::{Change, WriteOp};
use crate::error::EventError;

const OPERATIONS: &str = "create, ensure, link, ensure_link, set, add, append, unset or remove";

impl Change {
    /// Reads a change; `at` names the place in messages.
    ///
    /// # Errors
    /// No operation or two of them, an unknown or missing field, or a field of the wrong type.
    pub fn from_json(value: &Value, at: &str) -> Result<Change, EventError> {
        let shape = |what: String| EventError::Shape { at: at.to_owned(), what };
        let Value::Object(map) = value else {
            return Err(shape(format!("a change is an object, found {value}")));
        };
        let mut fields = Fields { map, at, used: Vec::new() };
        let names =
            ["create", "ensure", "link", "ensure_link", "set", "add", "append", "unset", "remove"];
        let mut operations = names.into_iter().filter(|name| map.contains_key(*name));
        let Some(operation) = operations.next() else {
            return Err(shape(format!("names no operation; it has one of {OPERATIONS}")));
        };
        if let Some(other) = operations.next() {
            return Err(shape(format!(
                "has both `{operation}` and `{other}`; make them two changes"
            )));
        }
        let change = fields.change(operation)?;
        fields.nothing_left(operation)?;
        Ok(change)
    }

    /// The change as JSON; `from_json` reads it back.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Change::Create { id, type_name, properties } => {
                json!({"create": id.as_deref(), "type": type_name.as_str(), "properties": properties})
            }
            Change::Ensure { id, type_name, properties } => {
                json!({"ensure": id.as_str(), "type": type_name.as_str(), "properties": properties})
            }
            Change::Link { id, type_name, from, to, properties } => {
                let mut json = edge("link", type_name, from, to, properties);
                if let Some(id) = id {
                    json["id"] = json!(id.as_str());
                }
                json
            }
            Change::EnsureLink { type_name, from, to, properties } => {
                edge("ensure_link", type_name, from, to, properties)
            }
            Change::Write { op, id, properties, if_version } => {
                let mut map = Map::new();
                map.insert(op.name().to_owned(), json!(id.as_str()));
                map.insert("properties".to_owned(), Value::Object(properties.clone()));
                if let Some(version) = if_version {
                    map.insert("if_version".to_owned(), json!(version));
                }
                Value::Object(map)
            }
            Change::Unset { id, names } => {
                let names: Vec<&str> = names.iter().map(SmolStr::as_str).collect();
                json!({"unset": id.as_str(), "names": names})
            }
            Change::Remove { id } => json!({"remove": id.as_str()}),
        }
    }
}

fn edge(op: &str, type_name: &str, from: &str, to: &str, properties: &Map<String, Value>) -> Value {
    let mut json = json!({op: type_name, "from": from, "to": to});
    if !properties.is_empty() {
        json["properties"] = Value::Object(properties.clone());
    }
    json
}

impl WriteOp {
    /// The word for it in JSON and scripts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            WriteOp::Set => "set",
            WriteOp::Add => "add",
            WriteOp::Append => "append",
        }
    }
}

/// The fields of one change, and which of them were read.
struct Fields<'a> {
    map: &'a Map<String, Value>,
    at: &'a str,
    used: Vec<&'static str>,
}

impl Fields<'_> {
    fn change(&mut self, operation: &'static str) -> Result<Change, EventError> {
        Ok(match operation {
            "create" => Change::Create {
                id: self.optional_text("create")?,
                type_name: self.text("type")?,
                properties: self.properties()?,
            },
            "ensure" => Change::Ensure {
                id: self.text("ensure")?,
                type_name: self.text("type")?,
                properties: self.properties()?,
            },
            "link" => Change::Link {
                type_name: self.text("link")?,
                from: self.text("from")?,
                to: self.text("to")?,
                id: self.optional_text("id")?,
                properties: self.properties()?,
            },
            "ensure_link" => Change::EnsureLink {
                type_name: self.text("ensure_link")?,
                from: self.text("from")?,
                to: self.text("to")?,
                properties: self.properties()?,
            },
            "unset" => Change::Unset { id: self.text("unset")?, names: self.names()? },
            "remove" => Change::Remove { id: self.text("remove")? },
            write => Change::Write {
                op: match write {
                    "set" => WriteOp::Set,
                    "add" => WriteOp::Add,
                    _ => WriteOp::Append,
                },
                id: self.text(operation)?,
                properties: self.properties()?,
                if_version: self.version()?,
            },
        })
    }

    fn wrong(&self, field: &str, expected: &str) -> EventError {
        let found = self.map.get(field).map_or("nothing".to_owned(), Value::to_string);
        let found: String = found.chars().take(60).collect();
        EventError::Shape {
            at: format!("{}.{field}", self.at),
            what: format!("expected {expected}, found {found}"),
        }
    }

    fn optional_text(&mut self, field: &'static str) -> Result<Option<SmolStr>, EventError> {
        self.used.push(field);
        match self.map.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.as_str().into())),
            Some(_) => Err(self.wrong(field, "a text that is not empty")),
        }
    }

    fn text(&mut self, field: &'static str) -> Result<SmolStr, EventError> {
        self.optional_text(field)?.ok_or_else(|| self.wrong(field, "a text that is not empty"))
    }

    fn properties(&mut self) -> Result<Map<String, Value>, EventError> {
        self.used.push("properties");
        match self.map.get("properties") {
            None => Ok(Map::new()),
            Some(Value::Object(map)) => Ok(map.clone()),
            Some(_) => Err(self.wrong("properties", "an object")),
        }
    }

    fn names(&mut self) -> Result<Vec<SmolStr>, EventError> {
        self.used.push("names");
        let wrong = || self.wrong("names", "a list of property names");
        let list = self.map.get("names").and_then(Value::as_array).ok_or_else(wrong)?;
        list.iter().map(|name| name.as_str().map(SmolStr::from).ok_or_else(wrong)).collect()
    }

    fn version(&mut self) -> Result<Option<u64>, EventError> {
        self.used.push("if_version");
        match self.map.get("if_version") {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                value.as_u64().map(Some).ok_or_else(|| self.wrong("if_version", "a version number"))
            }
        }
    }

    fn nothing_left(&self, operation: &str) -> Result<(), EventError> {
        match self.map.keys().find(|key| !self.used.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(EventError::Shape {
                at: format!("{}.{key}", self.at),
                what: format!("`{operation}` has no such field; it has {}", self.used.join(", ")),
            }),
        }
    }
}
