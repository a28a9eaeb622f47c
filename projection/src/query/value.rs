//! The values of a result, whole and owned.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::graph::{ElementRef, ElementView, Graph};
use crate::pattern::{Val, WrittenName, write_text};
use crate::world::World;

/// A value of a result. `Display` writes it as a query would.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryValue {
    /// Nothing.
    Null,
    /// A truth.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number above `i64::MAX`.
    UInt(u64),
    /// A number with a fraction; it may be infinite or not a number.
    Float(f64),
    /// A text.
    Text(String),
    /// A long text that is stored apart: its reference as JSON, as events show it.
    Blob(Value),
    /// A list.
    List(Vec<QueryValue>),
    /// A map, sorted by key.
    Map(Vec<(String, QueryValue)>),
    /// A node.
    Node(QueryNode),
    /// An edge.
    Edge(QueryEdge),
    /// A path: its nodes and the edges between them, in order.
    Path {
        /// One more than edges.
        nodes: Vec<QueryNode>,
        /// Each between the node of its place and the next.
        edges: Vec<QueryEdge>,
    },
}

/// A node of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryNode {
    /// Its id.
    pub id: String,
    /// Its type.
    pub type_name: String,
    /// Its properties.
    pub properties: Vec<(String, QueryValue)>,
}

/// An edge of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryEdge {
    /// Its id.
    pub id: String,
    /// Its type.
    pub type_name: String,
    /// The id of the node it comes from.
    pub from: String,
    /// The id of the node it goes to.
    pub to: String,
    /// Its properties.
    pub properties: Vec<(String, QueryValue)>,
}

impl QueryValue {
    pub(crate) fn of(value: &Val<'_>, graph: &Graph) -> QueryValue {
        match value {
            Val::Null => QueryValue::Null,
            Val::Bool(truth) => QueryValue::Bool(*truth),
            Val::Int(number) => QueryValue::Int(*number),
            Val::UInt(number) => QueryValue::UInt(*number),
            Val::Float(number) => QueryValue::Float(*number),
            Val::Text(text) => QueryValue::Text(text.to_string()),
            Val::Blob(blob) => QueryValue::Blob(log::ValueRef::Blob(*blob).to_json()),
            Val::List(items) => {
                QueryValue::List(items.iter().map(|item| QueryValue::of(item, graph)).collect())
            }
            Val::Map(entries) => QueryValue::Map(fields(entries, graph)),
            Val::Element(element @ ElementRef::Node(_)) => QueryValue::Node(node(*element, graph)),
            Val::Element(element) => QueryValue::Edge(edge(*element, graph)),
            Val::Path(path) => QueryValue::Path {
                nodes: path.iter().step_by(2).map(|part| node(*part, graph)).collect(),
                edges: path.iter().skip(1).step_by(2).map(|part| edge(*part, graph)).collect(),
            },
        }
    }

    /// The value as JSON. What JSON has no number for is a text: `"NaN"`, `"Infinity"`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            QueryValue::Null => Value::Null,
            QueryValue::Bool(truth) => json!(truth),
            QueryValue::Int(number) => json!(number),
            QueryValue::UInt(number) => json!(number),
            QueryValue::Float(number) if number.is_finite() => json!(number),
            QueryValue::Float(number) => json!(float_text(*number)),
            QueryValue::Text(text) => json!(text),
            QueryValue::Blob(reference) => reference.clone(),
            QueryValue::List(items) => items.iter().map(QueryValue::to_json).collect(),
            QueryValue::Map(entries) => object(entries),
            QueryValue::Node(node) => node.to_json(),
            QueryValue::Edge(edge) => edge.to_json(),
            QueryValue::Path { nodes, edges } => json!({
                "nodes": nodes.iter().map(QueryNode::to_json).collect::<Vec<_>>(),
                "edges": edges.iter().map(QueryEdge::to_json).collect::<Vec<_>>(),
            }),
        }
    }
}

impl QueryNode {
    /// `{"id", "type", "properties"}`
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({"id": self.id, "type": self.type_name, "properties": object(&self.properties)})
    }
}

impl QueryEdge {
    /// `{"id", "type", "from", "to", "properties"}`
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id, "type": self.type_name, "from": self.from, "to": self.to,
            "properties": object(&self.properties),
        })
    }
}

fn object(entries: &[(String, QueryValue)]) -> Value {
    let fields: Map<String, Value> =
        entries.iter().map(|(key, value)| (key.clone(), value.to_json())).collect();
    Value::Object(fields)
}

fn fields<K: AsRef<str>>(entries: &[(K, Val<'_>)], graph: &Graph) -> Vec<(String, QueryValue)> {
    let field =
        |(key, value): &(K, Val<'_>)| (key.as_ref().to_owned(), QueryValue::of(value, graph));
    entries.iter().map(field).collect()
}

fn view(element: ElementRef, graph: &Graph) -> ElementView<'_> {
    graph.at(element).expect("what a query gives is in its graph")
}

fn properties(view: ElementView<'_>, graph: &Graph) -> Vec<(String, QueryValue)> {
    let property = |(name, value): (&str, log::ValueRef<'_>)| {
        (name.to_owned(), QueryValue::of(&Val::from(value), graph))
    };
    view.properties().iter().map(property).collect()
}

fn node(element: ElementRef, graph: &Graph) -> QueryNode {
    let view = view(element, graph);
    let (id, type_name) = (view.id().to_owned(), view.type_name().to_owned());
    QueryNode { id, type_name, properties: properties(view, graph) }
}

fn edge(element: ElementRef, graph: &Graph) -> QueryEdge {
    let found = view(element, graph);
    let (from, to) = found.ends().expect("an edge has ends");
    let id_of = |node: crate::graph::NodeRef| view(node.into(), graph).id().to_owned();
    QueryEdge {
        id: found.id().to_owned(),
        type_name: found.type_name().to_owned(),
        from: id_of(from),
        to: id_of(to),
        properties: properties(found, graph),
    }
}

fn float_text(number: f64) -> String {
    match (number.is_nan(), number.is_infinite(), number > 0.0) {
        (true, ..) => "NaN".to_owned(),
        (_, true, true) => "Infinity".to_owned(),
        (_, true, false) => "-Infinity".to_owned(),
        // The debug form always shows that it is not a whole number.
        _ => format!("{number:?}"),
    }
}

impl fmt::Display for QueryValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryValue::Null => f.write_str("null"),
            QueryValue::Bool(truth) => truth.fmt(f),
            QueryValue::Int(number) => number.fmt(f),
            QueryValue::UInt(number) => number.fmt(f),
            QueryValue::Float(number) => f.write_str(&float_text(*number)),
            QueryValue::Text(text) => write_text(f, text),
            QueryValue::Blob(reference) => reference.fmt(f),
            QueryValue::List(items) => {
                f.write_str("[")?;
                for (place, item) in items.iter().enumerate() {
                    f.write_str(if place == 0 { "" } else { ", " })?;
                    item.fmt(f)?;
                }
                f.write_str("]")
            }
            QueryValue::Map(entries) => write_map(f, entries),
            QueryValue::Node(node) => node.fmt(f),
            QueryValue::Edge(edge) => edge.fmt(f),
            QueryValue::Path { nodes, edges } => {
                for (place, node) in nodes.iter().enumerate() {
                    if let Some(edge) = place.checked_sub(1).and_then(|before| edges.get(before)) {
                        let forward = edge.to == node.id;
                        f.write_str(if forward { "-" } else { "<-" })?;
                        edge.fmt(f)?;
                        f.write_str(if forward { "->" } else { "-" })?;
                    }
                    node.fmt(f)?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for QueryNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}:{}", WrittenName(&self.id), WrittenName(&self.type_name))?;
        write_properties(f, &self.properties)?;
        f.write_str(")")
    }
}

impl fmt::Display for QueryEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[:{}", WrittenName(&self.type_name))?;
        write_properties(f, &self.properties)?;
        f.write_str("]")
    }
}

fn write_properties(
    f: &mut fmt::Formatter<'_>,
    properties: &[(String, QueryValue)],
) -> fmt::Result {
    if properties.is_empty() {
        return Ok(());
    }
    f.write_str(" ")?;
    write_map(f, properties)
}

fn write_map(f: &mut fmt::Formatter<'_>, entries: &[(String, QueryValue)]) -> fmt::Result {
    f.write_str("{")?;
    for (place, (key, value)) in entries.iter().enumerate() {
        f.write_str(if place == 0 { "" } else { ", " })?;
        write!(f, "{}: {value}", WrittenName(key))?;
    }
    f.write_str("}")
}
