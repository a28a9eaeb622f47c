//! Triggers with the expressions that queries brought: what an event changes is still exactly the
//! difference of two full evaluations, whatever an expression reads by way of lists and functions.

use log::{Change, Draft, Event, EventId, Offset};
use serde_json::{Value, json};

use crate::graph::Graph;
use crate::pattern::{Env, Pattern, Row, Steps};

/// Patterns whose conditions read elements otherwise than by name and property.
const PATTERNS: [&str; 12] = [
    "(a:A)-[r:T*1..2]->(b) WHERE all(e IN r WHERE e.w > 1)",
    "(a:A)-[r:T*1..3]->(b:A) WHERE single(e IN r WHERE e.w = 2) AND size(r) > 1",
    "(a:A)-[r:T]->(b) WHERE any(x IN [a, b] WHERE x.w = 1)",
    "(a:A) WHERE none(k IN keys(a) WHERE k = 'v')",
    "(a:A) WHERE properties(a).w = 2 OR 'v' IN keys(a)",
    "(a:A)-[r:T]->(b) WHERE CASE WHEN a.w > b.w THEN r.w ELSE b.v END = 1",
    "(a:A)-[r:T]->(b) WHERE coalesce(head([x IN [a, b, r] WHERE x.w > 1]).v, 0) = 0",
    "(a:A) WHERE NOT EXISTS { (a)-[r:T*1..2]->(b) WHERE any(e IN r WHERE e.w = 1) }",
    "(a:A)-[r:T]->(b) WHERE [a, b][1].w = 1 AND r <> a",
    "(a:A) WHERE a[toLower('W')] = 2",
    "(a:A)-[r:T]->(b) WHERE labels(b) = ['A'] AND last([r, a]).w IS NOT NULL",
    "(a:A)-[r:T*2]->(b) WHERE r[0].w = r[1].w OR size(r[0..1]) = 2",
];

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn change(&mut self) -> Value {
        let (node, other, edge) = (self.below(6), self.below(6), self.below(9));
        let id = if self.below(2) == 0 { format!("n{node}") } else { format!("e{edge}") };
        let name = if self.below(3) == 0 { "v" } else { "w" };
        match self.below(9) {
            0 => {
                let type_name = if node == 0 { "B" } else { "A" };
                json!({"create": format!("n{node}"), "type": type_name, "properties": {"w": self.below(4)}})
            }
            1 | 2 => json!({
                "link": "T", "id": format!("e{edge}"), "from": format!("n{node}"),
                "to": format!("n{other}"), "properties": {"w": self.below(3)},
            }),
            3 => json!({"remove": id}),
            4 => json!({"unset": id, "names": [name]}),
            _ => json!({"set": id, "properties": {name: self.below(4)}}),
        }
    }

    fn event(&mut self, offset: u64) -> Event {
        let mut draft = Draft::new(EventId::ZERO, "graph.changed", "user:ann");
        let changes = (0..=self.below(2)).map(|_| self.change());
        draft.changes = changes.map(|c| Change::from_json(&c, "a change").unwrap()).collect();
        Event::encode(&draft, Offset::new(offset)).unwrap().0
    }
}

/// The rows of one side that are none of the other.
fn difference(here: &[Row], there: &[Row]) -> Vec<Row> {
    here.iter().filter(|row| !there.contains(row)).cloned().collect()
}

#[test]
fn what_an_event_changes_is_exact_for_every_expression() {
    let mut random = Random(11);
    let steps = Steps::up_to(100_000_000);
    let (mut risen, mut fallen) = ([0; PATTERNS.len()], [0; PATTERNS.len()]);
    let patterns = PATTERNS.map(|text| Pattern::parse(text).unwrap());
    let mut graph = Graph::new();
    for _ in 0..3_000 {
        let before = graph.clone();
        let event = random.event(graph.head().count());
        let Ok(delta) = graph.apply(&event) else { continue };
        for (number, pattern) in patterns.iter().enumerate() {
            let rows = |graph| pattern.matches(graph, &[], &Env::EMPTY, &steps).unwrap();
            let (old, new) = (rows(&before), rows(&graph));
            let changed = pattern.delta(&graph, &delta, &Env::EMPTY, &steps).unwrap();
            let context = || format!("{pattern}\n{:?}", event.to_draft().changes);
            assert_eq!(changed.risen, difference(&new, &old), "{}", context());
            assert_eq!(changed.fallen, difference(&old, &new), "{}", context());
            risen[number] += changed.risen.len();
            fallen[number] += changed.fallen.len();
        }
    }
    for number in 0..PATTERNS.len() {
        let met = risen[number] > 20 && fallen[number] > 20;
        assert!(met, "{} rises and falls: {} {}", PATTERNS[number], risen[number], fallen[number]);
    }
}
