//! Makes the graph that a case begins with: what its set-up creates becomes changes of events.
//!
//! Reading clauses are left to queries; only `CREATE` and `DELETE` are understood here.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use log::{Change, Derivation, Draft, Event, Offset};
use projection::{Env, Graph, Query, QueryValue, Steps};
use serde_json::{Map, Value, json};

use super::values::NO_TYPE;

/// What a name stands for while a set-up runs.
#[derive(Clone, Debug)]
enum Named {
    Node(String),
    Edge(String),
    Value(Value),
}

type Row = BTreeMap<String, Named>;

/// A graph under construction.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) graph: Graph,
    events: u64,
    elements: u64,
}

/// The words that begin a clause.
const CLAUSES: [&str; 7] = ["CREATE", "DELETE", "MATCH", "UNWIND", "WITH", "SET", "MERGE"];

impl Setup {
    /// Runs one set-up statement; the error says what it needs that Starling has not.
    pub(crate) fn run(&mut self, text: &str) -> Result<(), String> {
        let text: Vec<&str> = text.lines().map(without_comment).collect();
        let mut rows = vec![Row::new()];
        let mut reading = String::new();
        for (word, clause) in clauses(text.join("\n").trim_end().trim_end_matches(';')) {
            if !matches!(word, "CREATE" | "DELETE") {
                assert!(matches!(word, "MATCH" | "UNWIND" | "WITH"), "{word} is not understood");
                reading = format!("{reading} {word} {clause}");
                continue;
            }
            if !reading.is_empty() {
                rows = self.read(&rows, &std::mem::take(&mut reading))?;
            }
            if word == "CREATE" {
                self.create(&mut rows, clause)?;
            } else {
                self.delete(&rows, clause)?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, changes: &[Value]) -> Result<(), String> {
        let id = Derivation::new().text("set-up").integer(self.events).finish();
        let mut draft = Draft::new(id, "graph.made", "user:ann");
        let change = |change: &Value| Change::from_json(change, "set-up");
        let changes: Result<Vec<Change>, _> = changes.iter().map(change).collect();
        draft.changes = changes.map_err(|error| error.to_string())?;
        let event = Event::encode(&draft, Offset::new(self.events));
        let (event, _) = event.map_err(|error| error.to_string())?;
        self.graph.apply(&event).map_err(|refusal| refusal.to_string())?;
        self.events += 1;
        Ok(())
    }

    /// Runs reading clauses for each row, and gives the rows that they make.
    fn read(&self, rows: &[Row], clauses: &str) -> Result<Vec<Row>, String> {
        let mut out = Vec::new();
        let (columns, found) = self.query(rows, &format!("{clauses} RETURN *"))?;
        for values in found {
            let named = columns.iter().zip(values).map(|(name, value)| {
                let named = match value {
                    QueryValue::Node(node) => Named::Node(node.id),
                    QueryValue::Edge(edge) => Named::Edge(edge.id),
                    other => Named::Value(other.to_json()),
                };
                (name.clone(), named)
            });
            out.push(named.collect());
        }
        Ok(out)
    }

    /// Runs clauses that see what the rows name.
    fn query(
        &self,
        rows: &[Row],
        clauses: &str,
    ) -> Result<(Vec<String>, Vec<Vec<QueryValue>>), String> {
        let names: Vec<&String> = rows.first().map(|row| row.keys().collect()).unwrap_or_default();
        let (mut bound, mut found, mut passed) = (Vec::new(), Vec::new(), Vec::new());
        for name in &names {
            match &rows[0][*name] {
                Named::Node(_) => bound.push(format!("({name})")),
                Named::Edge(_) => bound.push(format!("()-[{name}]->()")),
                Named::Value(_) => {
                    passed.push(format!("row_.{name} AS {name}"));
                    continue;
                }
            }
            found.push(format!("id({name}) = row_.{name}"));
            passed.push((*name).clone());
        }
        let mut text = String::new();
        if !names.is_empty() {
            text = "UNWIND $rows_ AS row_ ".to_owned();
            if !bound.is_empty() {
                text += &format!("MATCH {} WHERE {} ", bound.join(", "), found.join(" AND "));
            }
            text += &format!("WITH {} ", passed.join(", "));
        }
        let as_json = |row: &Row| {
            let fields: Map<String, Value> = row
                .iter()
                .map(|(name, named)| match named {
                    Named::Node(id) | Named::Edge(id) => (name.clone(), json!(id)),
                    Named::Value(value) => (name.clone(), value.clone()),
                })
                .collect();
            Value::Object(fields)
        };
        let rows: Value = rows.iter().map(as_json).collect();
        let parameters: BTreeMap<String, Value> = [("rows_".to_owned(), rows)].into();
        let query = Query::parse(&(text + clauses)).map_err(|error| error.to_string())?;
        let env = Env { event: None, parameters: &parameters };
        let mut out = Vec::new();
        let run = query.run(&self.graph, &env, &Steps::up_to(10_000_000), &mut |row| {
            out.push(row);
            ControlFlow::Continue(())
        });
        run.map_err(|error| error.to_string())?;
        Ok((query.columns().iter().map(ToString::to_string).collect(), out))
    }

    fn delete(&mut self, rows: &[Row], name: &str) -> Result<(), String> {
        let removed = rows.iter().filter_map(|row| match row.get(name.trim()) {
            Some(Named::Node(id) | Named::Edge(id)) => Some(json!({"remove": id})),
            _ => None,
        });
        self.apply(&removed.collect::<Vec<_>>())
    }

    /// Creates chain after chain for each row, since each may use what those before it made.
    fn create(&mut self, rows: &mut [Row], clause: &str) -> Result<(), String> {
        for parts in (Chains { rest: clause }).read()? {
            let maps: Vec<&str> = parts.iter().filter_map(Part::properties).collect();
            let values = if maps.is_empty() {
                vec![Vec::new(); rows.len()]
            } else {
                self.query(rows, &format!("RETURN {}", maps_with_names(&maps)))?.1
            };
            assert_eq!(values.len(), rows.len(), "properties are computed for each row");
            let mut changes = Vec::new();
            for (row, values) in rows.iter_mut().zip(values) {
                self.create_row(row, &parts, &mut values.into_iter(), &mut changes);
            }
            self.apply(&changes)?;
        }
        Ok(())
    }

    fn create_row(
        &mut self,
        row: &mut Row,
        parts: &[Part],
        values: &mut dyn Iterator<Item = QueryValue>,
        changes: &mut Vec<Value>,
    ) {
        let mut at: Option<String> = None;
        let mut edge: Option<(&Part, String, Value)> = None;
        for part in parts {
            let properties = part.properties().map(|_| values.next().expect("each was computed"));
            let properties = properties.map_or(json!({}), |value| without_nulls(&value));
            self.elements += 1;
            if part.is_edge {
                edge = Some((part, format!("e{}", self.elements), properties));
                continue;
            }
            let known = part.name.as_ref().and_then(|name| row.get(name));
            let id = match known {
                Some(Named::Node(id)) => id.clone(),
                _ => {
                    let id = format!("n{}", self.elements);
                    let type_name = part.label.as_deref().unwrap_or(NO_TYPE);
                    changes
                        .push(json!({"create": id, "type": type_name, "properties": properties}));
                    if let Some(name) = &part.name {
                        row.insert(name.clone(), Named::Node(id.clone()));
                    }
                    id
                }
            };
            if let Some((part, edge_id, properties)) = edge.take() {
                let left = at.take().expect("an edge stands between nodes");
                let (from, to) = if part.backward { (&id, &left) } else { (&left, &id) };
                let type_name = part.label.as_deref().expect("an edge has a type");
                changes.push(json!({
                    "link": type_name, "id": edge_id, "from": from, "to": to,
                    "properties": properties,
                }));
                if let Some(name) = &part.name {
                    row.insert(name.clone(), Named::Edge(edge_id));
                }
            }
            at = Some(id);
        }
    }
}

/// A line without what stands behind `//` outside of a text.
fn without_comment(line: &str) -> &str {
    let outside = |at: &usize| line[..*at].matches('\'').count().is_multiple_of(2);
    let comment = line.match_indices("//").map(|(at, _)| at).find(outside);
    &line[..comment.unwrap_or(line.len())]
}

fn maps_with_names(maps: &[&str]) -> String {
    let named = maps.iter().enumerate().map(|(place, map)| format!("{map} AS p{place}"));
    named.collect::<Vec<_>>().join(", ")
}

/// A property that is null is not there.
fn without_nulls(value: &QueryValue) -> Value {
    let Value::Object(mut fields) = value.to_json() else { panic!("properties are a map") };
    fields.retain(|_, value| !value.is_null());
    Value::Object(fields)
}

/// A node or an edge of a `CREATE`.
#[derive(Debug)]
struct Part {
    is_edge: bool,
    name: Option<String>,
    label: Option<String>,
    map: Option<String>,
    backward: bool,
}

impl Part {
    fn properties(&self) -> Option<&str> {
        self.map.as_deref()
    }
}

/// Splits a text at the words that begin clauses, outside of texts and brackets.
fn clauses(text: &str) -> Vec<(&'static str, &str)> {
    let mut starts: Vec<(usize, &'static str)> = Vec::new();
    let (mut quote, mut depth) = (None, 0);
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open && before != '\\' => quote = None,
            (None, '\'' | '"' | '`') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, _) if depth == 0 && !before.is_alphanumeric() => {
                let rest = &text[at..];
                let ends = |word: &&&str| {
                    rest.get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word))
                        && !rest[word.len()..].starts_with(|c: char| c.is_alphanumeric())
                };
                starts.extend(CLAUSES.iter().find(ends).map(|word| (at, *word)));
            }
            _ => {}
        }
        before = c;
    }
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([text.len()]);
    let whole = starts.iter().zip(ends);
    whole.map(|((at, word), end)| (*word, text[at + word.len()..end].trim())).collect()
}

/// Reads the chains of a `CREATE`: nodes and edges in the order in which they are written.
struct Chains<'t> {
    rest: &'t str,
}

impl<'t> Chains<'t> {
    fn eat(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        let found = rest.strip_prefix(token);
        self.rest = found.unwrap_or(rest);
        found.is_some()
    }

    fn word(&mut self) -> Option<String> {
        let rest = self.rest.trim_start();
        if let Some(quoted) = rest.strip_prefix('`') {
            let (word, after) = quoted.split_once('`').expect("a quoted name ends");
            self.rest = after;
            return Some(word.to_owned());
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        self.rest = after;
        (!word.is_empty()).then(|| word.to_owned())
    }

    fn read(mut self) -> Result<Vec<Vec<Part>>, String> {
        let (mut chains, mut parts) = (Vec::new(), Vec::new());
        loop {
            assert!(self.eat("("), "a node is expected at `{}`", self.rest);
            parts.push(self.inside(")", false)?);
            let backward = self.eat("<-");
            if backward || self.eat("-") {
                assert!(self.eat("["), "an edge is expected at `{}`", self.rest);
                parts.push(self.inside("]", backward)?);
                let last = parts.last_mut().expect("it was pushed");
                last.is_edge = true;
                assert!(self.eat(if backward { "-" } else { "->" }), "at `{}`", self.rest);
                continue;
            }
            chains.push(std::mem::take(&mut parts));
            if !self.eat(",") {
                assert!(self.rest.trim().is_empty(), "`{}` is left", self.rest);
                return Ok(chains);
            }
        }
    }

    fn inside(&mut self, close: &str, backward: bool) -> Result<Part, String> {
        let name = self.word();
        let label = if self.eat(":") { self.word() } else { None };
        if self.eat(":") {
            return Err("a node of the set-up has several labels".to_owned());
        }
        let map = self.map();
        assert!(self.eat(close), "`{close}` is expected at `{}`", self.rest);
        Ok(Part { is_edge: false, name, label, map, backward })
    }

    /// What stands in braces, with them.
    fn map(&mut self) -> Option<String> {
        let rest = self.rest.trim_start();
        let (mut depth, mut quote, mut before) = (0, None, ' ');
        for (at, c) in rest.char_indices() {
            match (quote, c) {
                (Some(open), c) if c == open && before != '\\' => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(c),
                (None, '{') => depth += 1,
                (None, '}') => depth -= 1,
                _ => {}
            }
            before = c;
            if depth == 0 {
                let end = if at == 0 { return None } else { at + 1 };
                let (map, after) = rest.split_at(end);
                self.rest = after;
                return Some(map.to_owned());
            }
        }
        None
    }
}
