//! The Train Benchmark: a railway that breaks its rules here and there, six patterns that find
//! where, and the changes that repair a violation or make one.
//!
//! The tests run its small sizes; the bench `matching` runs the larger ones and takes the time.

#[path = "train/naive.rs"]
pub(crate) mod naive;
#[path = "train/railway.rs"]
pub(crate) mod railway;

use std::collections::BTreeSet;

use log::{Bound, Change, Draft, Event, EventId, Offset, WriteOp};
use projection::{Delta, Env, Graph, NodeRef, Pattern, Row, Steps, World};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use railway::Random;

/// What happens to the railway after it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// A share of the violations is repaired in each round.
    Repair,
    /// Ten elements are broken in each round.
    Inject,
}

/// The six patterns: each match is a violation.
pub(crate) const PATTERNS: [(&str, &str); 6] = [
    ("PosLength", "(s:Segment) WHERE s.length <= 0"),
    ("SwitchMonitored", "(w:Switch) WHERE NOT EXISTS { (w)-[:MONITORED_BY]->() }"),
    (
        "RouteSensor",
        "(r:Route)-[:FOLLOWS]->(p:SwitchPosition)-[:TARGET]->(w:Switch)-[:MONITORED_BY]->(x:Sensor) \
         WHERE NOT EXISTS { (r)-[:REQUIRES]->(x) }",
    ),
    (
        "SwitchSet",
        "(s:Semaphore {signal: 'GO'})<-[:ENTRY]-(r:Route {active: true})-[:FOLLOWS]->\
         (p:SwitchPosition)-[:TARGET]->(w:Switch) WHERE p.position <> w.currentPosition",
    ),
    (
        "ConnectedSegments",
        "(x:Sensor)<-[:MONITORED_BY]-(a:Segment)-[:CONNECTS_TO]->(b:Segment)-[:CONNECTS_TO]->\
         (c:Segment)-[:CONNECTS_TO]->(d:Segment)-[:CONNECTS_TO]->(e:Segment)-[:CONNECTS_TO]->\
         (f:Segment), (b)-[:MONITORED_BY]->(x), (c)-[:MONITORED_BY]->(x), \
         (d)-[:MONITORED_BY]->(x), (e)-[:MONITORED_BY]->(x), (f)-[:MONITORED_BY]->(x)",
    ),
    (
        "SemaphoreNeighbor",
        "(s:Semaphore)<-[:EXIT]-(a:Route)-[:REQUIRES]->(x:Sensor)<-[:MONITORED_BY]-\
         (t:Switch|Segment)-[:CONNECTS_TO]->(u:Switch|Segment)-[:MONITORED_BY]->(y:Sensor)\
         <-[:REQUIRES]-(b:Route) WHERE a <> b AND NOT EXISTS { (b)-[:ENTRY]->(s) }",
    ),
];

/// A railway under one of the patterns, and the violations found so far by deltas alone.
pub(crate) struct Train {
    pub(crate) graph: Graph,
    pub(crate) pattern: Pattern,
    number: usize,
    pub(crate) violations: BTreeSet<Row>,
    random: Random,
    /// How many elements were added after the railway was built.
    added: u64,
    pub(crate) steps: u64,
}

impl Train {
    /// The first validation of a railway, by full matching.
    pub(crate) fn new(graph: Graph, number: usize) -> Train {
        let pattern = Pattern::parse(PATTERNS[number].1);
        let pattern = pattern.unwrap_or_else(|error| panic!("{error}"));
        assert!(pattern.is_connected(), "{pattern}");
        let (random, added, steps) = (Random::new(7), 0, 0);
        let violations = BTreeSet::new();
        let mut train = Train { graph, pattern, number, violations, random, added, steps };
        train.violations = train.validate();
        train
    }

    /// All violations, by full matching.
    pub(crate) fn validate(&self) -> BTreeSet<Row> {
        let steps = Steps::up_to(u64::MAX);
        let rows = self.pattern.matches(&self.graph, &[], &Env::EMPTY, &steps);
        rows.expect("there is no bound").into_iter().collect()
    }

    /// Brings the violations up to date after an event.
    pub(crate) fn revalidate(&mut self, delta: &Delta) {
        let steps = Steps::up_to(1_000_000);
        let changed = self.pattern.delta(&self.graph, delta, &Env::EMPTY, &steps);
        let changed = changed.unwrap_or_else(|exhausted| panic!("{exhausted}"));
        self.steps += steps.taken();
        for row in &changed.fallen {
            assert!(self.violations.remove(row), "what falls stood: {row:?}");
        }
        for row in changed.risen {
            assert!(self.violations.insert(row), "what rises is new");
        }
    }

    /// The changes of one round, an event each: of a repair, for a share of the violations, in
    /// percent; of an injection, so many.
    pub(crate) fn round(&mut self, scenario: Scenario, amount: usize) -> Vec<Todo> {
        match scenario {
            Scenario::Repair => {
                let rows: Vec<Row> = self.violations.iter().cloned().collect();
                let count = (rows.len() * amount).div_ceil(100);
                let mut left = rows;
                let mut chosen = Vec::new();
                for _ in 0..count {
                    chosen.push(Todo::Repair(left.swap_remove(self.random.below(left.len()))));
                }
                chosen
            }
            Scenario::Inject => (0..amount).map(|_| Todo::Inject).collect(),
        }
    }

    /// The event that does one thing of a round; `None` if there is nothing left to do.
    pub(crate) fn event(&mut self, todo: &Todo) -> Option<Event> {
        let changes = match todo {
            Todo::Repair(row) if !self.violations.contains(row) => return None,
            Todo::Repair(row) => self.repair(row),
            Todo::Inject => self.inject()?,
        };
        Some(event(&self.graph, changes))
    }

    /// The id of what a variable of the pattern is bound to.
    fn bound<'r>(&self, row: &'r Row, name: &str) -> &'r SmolStr {
        let variables = self.pattern.variables();
        let named = |variable: &projection::Variable| variable.name.as_deref() == Some(name);
        let place = variables.iter().position(named).expect("a variable of the pattern");
        let Bound::Element(id) = &row.bound[place] else { panic!("{name} is a node") };
        id
    }

    fn repair(&mut self, row: &Row) -> Vec<Change> {
        let id = |name: &str| self.bound(row, name).as_str();
        let property = |id: &str, name: &str| -> Value {
            let view = self.graph.node(id).expect("what is bound is there");
            view.property(name).map_or(Value::Null, log::ValueRef::to_json)
        };
        match self.number {
            0 => {
                let length = property(id("s"), "length").as_i64().expect("a length");
                vec![set(id("s"), json!({"length": 1 - length}))]
            }
            1 => {
                let switch = id("w").to_owned();
                self.added += 1;
                let sensor = format!("sensor+{}", self.added);
                vec![
                    railway::node(&sensor, "Sensor", json!({})),
                    railway::link("MONITORED_BY", &switch, &sensor),
                ]
            }
            2 => vec![railway::link("REQUIRES", id("r"), id("x"))],
            3 => vec![set(id("w"), json!({"currentPosition": property(id("p"), "position")}))],
            4 => vec![Change::Remove { id: id("b").into() }],
            _ => vec![railway::link("ENTRY", id("b"), id("s"))],
        }
    }

    /// Breaks a random element.
    fn inject(&mut self) -> Option<Vec<Change>> {
        match self.number {
            0 => Some(vec![set(&self.any("Segment")?, json!({"length": 0}))]),
            1 => {
                let switch = self.any("Switch")?;
                let edges = self.out(&switch, "MONITORED_BY").into_iter();
                Some(edges.map(|(edge, _)| Change::Remove { id: edge.into() }).collect())
            }
            2 => self.drop_one("REQUIRES"),
            3 => {
                let switch = self.any("Switch")?;
                let view = self.graph.node(&switch)?;
                let now = view.property("currentPosition").map(log::ValueRef::to_json);
                let place = railway::POSITIONS.iter().position(|name| now == Some(json!(name)));
                let next = railway::POSITIONS[(place.unwrap_or(0) + 1) % railway::POSITIONS.len()];
                Some(vec![set(&switch, json!({"currentPosition": next}))])
            }
            4 => {
                let segment = self.any("Segment")?;
                let (edge, next) = self.out(&segment, "CONNECTS_TO").pop()?;
                let (_, sensor) = self.out(&segment, "MONITORED_BY").pop()?;
                self.added += 1;
                let new = format!("segment+{}", self.added);
                Some(vec![
                    Change::Remove { id: edge.into() },
                    railway::node(&new, "Segment", json!({"length": 10})),
                    railway::link("MONITORED_BY", &new, &sensor),
                    railway::link("CONNECTS_TO", &segment, &new),
                    railway::link("CONNECTS_TO", &new, &next),
                ])
            }
            _ => self.drop_one("ENTRY"),
        }
    }

    /// A random node of a type.
    fn any(&mut self, type_name: &str) -> Option<String> {
        let type_id = self.graph.type_id(type_name)?;
        let place = self.random.below(self.graph.node_count_of_type(type_id));
        let node: NodeRef = self.graph.nodes_of_type(type_id).nth(place)?;
        Some(self.graph.at(node.into())?.id().to_owned())
    }

    /// Removes a random edge of a type.
    fn drop_one(&mut self, type_name: &str) -> Option<Vec<Change>> {
        let type_id = self.graph.type_id(type_name)?;
        let place = self.random.below(self.graph.edge_count_of_type(type_id).max(1));
        let edge = self.graph.edges_of_type(type_id).nth(place)?;
        let id = self.graph.at(edge.into())?.id().to_owned();
        Some(vec![Change::Remove { id: id.into() }])
    }

    /// The edges of a type that leave a node, each with the node it leads to.
    fn out(&self, id: &str, type_name: &str) -> Vec<(String, String)> {
        let node = self.graph.node(id).expect("it is there").reference().node();
        let type_id = self.graph.type_id(type_name);
        let edges = self.graph.out_edges(node.expect("a node"), type_id);
        edges
            .map(|edge| {
                let view = self.graph.at(edge.into()).expect("it is listed");
                let (_, to) = view.ends().expect("an edge has ends");
                let to = self.graph.at(to.into()).expect("an edge ends at nodes");
                (view.id().to_owned(), to.id().to_owned())
            })
            .collect()
    }
}

/// One thing to do in a round.
#[derive(Clone, Debug)]
pub(crate) enum Todo {
    Repair(Row),
    Inject,
}

fn set(id: &str, properties: Value) -> Change {
    let properties = object(properties);
    Change::Write { op: WriteOp::Set, id: id.into(), properties, if_version: None }
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

/// The next event of a graph.
pub(crate) fn event(graph: &Graph, changes: Vec<Change>) -> Event {
    let offset = graph.head().next().get();
    let mut id = [3u8; 16];
    id[..8].copy_from_slice(&offset.to_le_bytes());
    let mut draft = Draft::new(EventId::from_bytes(id), "railway.changed", "user:bench");
    draft.changes = changes;
    Event::encode(&draft, Offset::new(offset)).expect("a small event").0
}
