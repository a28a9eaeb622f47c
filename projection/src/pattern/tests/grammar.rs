//! `PATTERNS.md` is true: each of its examples has the matches listed with it.

use std::collections::BTreeMap;

use log::{Bound, Change, Draft, Event, EventId, Offset};
use serde_json::{Value, json};

use crate::graph::Graph;
use crate::pattern::{Env, Pattern, Row, Steps};
use crate::query::Query;

const PAGE: &str = include_str!("../../../PATTERNS.md");

/// The insides of the code blocks of a kind.
fn blocks(kind: &str) -> Vec<&'static str> {
    let fence = format!("```{kind}\n");
    let parts = PAGE.split(fence.as_str()).skip(1);
    parts.map(|part| part.split("```").next().unwrap()).collect()
}

/// The world at the top of the page, and the event being handled.
fn world() -> (Graph, Event) {
    let changes: Vec<Value> = serde_json::from_str(blocks("json")[0]).unwrap();
    let mut draft = Draft::new(EventId::ZERO, "task.checked", "user:ann");
    draft.payload = json!({"task": "t1", "limits": {"cost": 2}}).as_object().cloned().unwrap();
    draft.changes = changes.iter().map(|c| Change::from_json(c, "the page").unwrap()).collect();
    let event = Event::encode(&draft, Offset::ZERO).unwrap().0;
    let mut graph = Graph::new();
    graph.apply(&event).unwrap();
    (graph, event)
}

fn shown(rows: &[Row]) -> String {
    let one = |bound: &Bound| match bound {
        Bound::Element(id) => id.to_string(),
        Bound::Path(ids) => format!("[{}]", ids.join(" ")),
    };
    let rows = rows.iter().map(|row| row.bound.iter().map(one).collect::<Vec<_>>().join(" "));
    rows.collect::<Vec<_>>().join("; ")
}

#[test]
fn every_example_of_the_page_has_its_matches() {
    let (graph, event) = world();
    let parameters: BTreeMap<String, Value> = [("name".to_owned(), json!("Bot 7"))].into();
    let env = Env { event: Some(&event), parameters: &parameters };
    let mut examples = 0;
    for block in blocks("pattern") {
        let lines: Vec<&str> = block.lines().collect();
        for pair in lines.chunks(2) {
            let [text, expected] = pair else { panic!("each example has its matches: {pair:?}") };
            let pattern = Pattern::parse(text).unwrap_or_else(|error| panic!("{error}"));
            let rows = pattern.matches(&graph, &[], &env, &Steps::up_to(10_000)).unwrap();
            assert_eq!(shown(&rows), expected.trim_start_matches('=').trim(), "{text}");
            let again = Pattern::parse(pattern.canonical()).unwrap();
            let same = again.matches(&graph, &[], &env, &Steps::up_to(10_000)).unwrap();
            assert_eq!(rows, same, "{text} means what its canonical form means");
            examples += 1;
        }
    }
    assert!(examples > 35, "the page has its examples: {examples}");
}

/// The lines of a table, or what the query is refused with.
fn answered(text: &str, graph: &Graph, env: &Env<'_>) -> Vec<String> {
    let query = match Query::parse(text) {
        Ok(query) => query,
        Err(error) => return vec![format!("! {}", error.message)],
    };
    let rows = match query.rows(graph, env, &Steps::up_to(10_000)) {
        Ok(rows) => rows,
        Err(error) => return vec![format!("! {error}")],
    };
    let line = |cells: Vec<String>| format!("= {}", cells.join(" | "));
    let head = line(query.columns().iter().map(ToString::to_string).collect());
    let rows = rows.iter().map(|row| line(row.iter().map(ToString::to_string).collect()));
    [head].into_iter().chain(rows).collect()
}

#[test]
fn every_query_of_the_page_has_its_table() {
    let (graph, _) = world();
    let mut examples = 0;
    for block in blocks("query") {
        let mut lines = block.lines().peekable();
        while let Some(text) = lines.next() {
            let mut expected = Vec::new();
            while let Some(line) = lines.next_if(|line| line.starts_with(['=', '!'])) {
                expected.push(line.to_owned());
            }
            assert_eq!(answered(text, &graph, &Env::EMPTY), expected, "{text}");
            examples += 1;
        }
    }
    assert!(examples > 20, "the page has its examples: {examples}");
}

#[test]
fn the_plan_names_where_each_search_starts() {
    let (graph, _) = world();
    let text = "(p:Person)-[:OWNS]->(t:Task) WHERE NOT EXISTS { (t)-[n:NEEDS]->(u:Task) }";
    let pattern = Pattern::parse(text).unwrap();
    let expected = "\
(p:Person)-[:OWNS]->(t:Task) WHERE NOT EXISTS { (t)-[n:NEEDS]->(u:Task) }
from nothing: about 6.0 steps
  `p`: every node :Person, about 2.0 each
  the edge :OWNS, `t`: edges out :OWNS of `p`, about 1.0 each
    `n`, `u`: edges out :NEEDS of `t`, about 1.0 each
from a change of `p`: about 3.0 steps
  the edge :OWNS, `t`: edges out :OWNS of `p`, about 1.0 each
    `n`, `u`: edges out :NEEDS of `t`, about 1.0 each
from a change of the edge :OWNS: about 3.0 steps
  `p`, `t`: the ends of the edge, about 1.0 each
    `n`, `u`: edges out :NEEDS of `t`, about 1.0 each
from a change of `t`: about 2.7 steps
  `p`, the edge :OWNS: edges in :OWNS of `t`, about 0.7 each
    `n`, `u`: edges out :NEEDS of `t`, about 1.0 each
from a change of `n`: about 3.7 steps
  `t`, `u`: the ends of the edge, about 1.0 each
  `p`, the edge :OWNS: edges in :OWNS of `t`, about 0.7 each
    `n`, `u`: edges out :NEEDS of `t`, about 1.0 each
from a change of `u`: about 3.7 steps
  `t`, `n`: edges in :NEEDS of `u`, about 1.0 each
  `p`, the edge :OWNS: edges in :OWNS of `t`, about 0.7 each
    `n`, `u`: edges out :NEEDS of `t`, about 1.0 each
";
    let plan = pattern.explain(&graph);
    assert_eq!(plan.to_string(), expected, "\n{plan}");
}

/// Which patterns can be triggers, which start from something bound, and what needs an index.
#[test]
fn connection_and_anchors_are_told() {
    let parse = |text| Pattern::parse(text).unwrap();
    for connected in [
        "(a)-->(b)-->(c)",
        "(a:A), (b:B) WHERE a.k = b.k",
        "(a), (b) WHERE id(a) = b.x AND id(b) = a.x",
        "(a:A) WHERE NOT EXISTS { (b:B) WHERE b.k = a.k }",
        "(a:A {k: 1}), (b:B {k: 2})",
        "(a)-[*1..3]->(b)",
        "(t:Task {x: 1})",
    ] {
        assert_eq!(parse(connected).disconnected(), None, "{connected}");
    }
    for loose in [
        "(a), (b)",
        "(a), (b) WHERE a.k = b.k",
        "(a:A), (b:B) WHERE a.k < b.k",
        "(a:A), (b:B) WHERE a.k = b.k + 1",
        "(a:A) WHERE NOT EXISTS { (b:B) }",
    ] {
        assert!(!parse(loose).is_connected(), "{loose}");
    }
    assert!(!parse("(a:A)-->(b)").is_anchored(&[]));
    assert!(parse("(a:A)-->(b)").is_anchored(&["b"]));
    assert!(parse("(a)-->(b) WHERE id(b) = event.payload.x").is_anchored(&[]));
    assert!(parse("(a:A {k: $k})-->(b)").is_anchored(&[]));
    let pair = |a: &str, b: &str| (a.into(), b.into());
    let joined = parse("(a:A), (b:B) WHERE a.k = b.l");
    assert_eq!(joined.indexes_for_delta(), [pair("A", "k"), pair("B", "l")]);
    let chain = parse("(a:A {k: 1})-->(b)");
    assert_eq!(chain.indexes_for_delta(), []);
    assert_eq!(chain.indexes_for_matches(&[]), [pair("A", "k")]);
    assert_eq!(chain.indexes_for_matches(&["b"]), []);
}

/// A hub or a clique ends with an error, not with a stall.
#[test]
fn work_is_bounded_by_steps() {
    let (graph, _) = world();
    let pattern = Pattern::parse("(a)-[*]-(b), (c), (d)").unwrap();
    let error = pattern.matches(&graph, &[], &Env::EMPTY, &Steps::up_to(500)).unwrap_err();
    assert_eq!(error.steps, 500);
    assert!(error.to_string().contains("more than 500 elements"));
}
