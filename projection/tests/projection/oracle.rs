//! The oracle of matching: on random worlds, patterns and events, full matching finds what a naive
//! matcher finds, and what an event made true and false is the difference of two naive evaluations.
//!
//! A case that fails is made small and told as a story. `STARLING_LONG=1` runs all cases, a clone
//! runs a share of them.

mod make;
mod naive;
mod shape;
mod shrink;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use log::{Bound, Change};
use projection::{Aspect, Delta, ElementView, Env, Fixed, Graph, Kind, Pattern, Row, Steps, World};
use serde_json::{Map, Value, json};

use crate::event_of_kind;
use make::Random;
use naive::{PlainWorld, Rows, Said};
use shape::Shape;

/// A world, a pattern and an event.
#[derive(Clone, Debug)]
struct Case {
    /// The events that make the world; those that are refused are passed over.
    world: Vec<Vec<Change>>,
    shape: Shape,
    event: Vec<Change>,
    said: Said,
    /// Whether the indexes that the pattern can use are declared.
    indexed: bool,
}

/// What the cases were about, so that the test cannot pass by meeting nothing.
#[derive(Clone, Debug, Default)]
struct Met {
    cases: usize,
    rows: usize,
    risen: usize,
    fallen: usize,
    /// By feature: the cases in which a match of a pattern with it was made true or false.
    changed: BTreeMap<&'static str, usize>,
}

/// What the text of a pattern shows, and how it is called here.
const FEATURES: [(&str, &str); 9] = [
    ("]-(", "an edge of either way"),
    ("*", "a path"),
    ("*0", "a path that may be empty"),
    ("NOT EXISTS", "a negation"),
    ("EXISTS", "something that exists"),
    ("), (", "several chains"),
    (" {", "a property in braces"),
    (" OR ", "an alternative"),
    ("id(", "an id"),
];

impl Met {
    /// Adds a case that ran.
    fn add(&mut self, case: &Case, one: &One) {
        self.cases += 1;
        self.rows += one.rows;
        self.risen += one.risen;
        self.fallen += one.fallen;
        if one.risen + one.fallen == 0 {
            return;
        }
        let text = case.shape.to_string();
        let shown = FEATURES.iter().filter(|(sign, _)| text.contains(sign)).map(|(_, name)| *name);
        let removes = case.event.iter().any(|change| matches!(change, Change::Remove { .. }));
        let more = [(removes, "a removal"), (case.event.len() > 5, "many changes at once")];
        let more = more.into_iter().filter(|(met, _)| *met).map(|(_, name)| name);
        for name in shown.chain(more).chain(case.indexed.then_some("indexes")) {
            *self.changed.entry(name).or_default() += 1;
        }
    }

    fn check(&self) {
        assert!(self.rows > 2 * self.cases, "{self:?}");
        assert!(self.risen > self.cases / 14 && self.fallen > self.cases / 9, "{self:?}");
        assert_eq!(self.changed.len(), FEATURES.len() + 3, "{self:?}");
        assert!(self.changed.values().all(|count| *count > self.cases / 300), "{self:?}");
    }
}

/// What one case came to.
#[derive(Clone, Copy, Debug)]
struct One {
    rows: usize,
    risen: usize,
    fallen: usize,
}

fn rows_of(rows: &[Row]) -> Rows {
    rows.iter().map(|row| (row.order.clone(), row.bound.clone())).collect()
}

/// The rows of one side that are none of the other.
fn difference(here: &Rows, there: &Rows) -> Rows {
    let stands = |bound: &Vec<Bound>| there.iter().any(|(_, other)| other == bound);
    here.iter().filter(|(_, bound)| !stands(bound)).cloned().collect()
}

fn told(rows: &Rows) -> String {
    let rows = rows.iter().map(|(_, row)| {
        let bound = row.iter().map(|bound| match bound {
            Bound::Element(id) => id.to_string(),
            Bound::Path(ids) => format!("{ids:?}"),
        });
        bound.collect::<Vec<_>>().join(" ")
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() { "nothing".to_owned() } else { rows.join("; ") }
}

fn same(what: &str, found: &Rows, naive: &Rows) -> Result<(), String> {
    if found == naive {
        return Ok(());
    }
    Err(format!("{what}: found {}; it is {}", told(found), told(naive)))
}

/// Whether an event does something that the pattern watches: so the engine decides whom to ask.
fn is_concerned(pattern: &Pattern, graph: &Graph, delta: &Delta) -> bool {
    let watches = pattern.interest();
    delta.touched().any(|element| {
        let (before, after) = (delta.before(graph, element), graph.at(element));
        let any = before.or(after).unwrap();
        let kind = if any.ends().is_none() { Kind::Node } else { Kind::Edge };
        let value = |view: Option<ElementView<'_>>, name: &str| {
            view.and_then(|view| view.property(name)).map(log::ValueRef::to_json)
        };
        watches.iter().any(|watch| {
            let changes = match &watch.aspect {
                Aspect::Existence => before.is_none() != after.is_none(),
                Aspect::Property(name) => value(before, name) != value(after, name),
                Aspect::AnyProperty => true,
            };
            let fixed = watch.fixed.as_ref().is_none_or(|(name, fixed)| {
                [before, after]
                    .into_iter()
                    .flatten()
                    .any(|view| view.property(name).and_then(Fixed::of).as_ref() == Some(fixed))
            });
            let typed = watch.type_name.as_ref().is_none_or(|name| name == any.type_name());
            watch.kind == kind && typed && fixed && changes
        })
    })
}

/// The world that some events make.
fn graph_of(world: &[Vec<Change>]) -> Graph {
    let mut graph = Graph::new();
    for changes in world {
        let made =
            event_of_kind("world.made", Map::new(), 1, graph.head().count(), changes.clone());
        drop(graph.apply(&made));
    }
    graph
}

/// Runs a case; `None` if the event is refused, or the pattern, as one made smaller may be.
fn check(case: &Case) -> Result<Option<One>, String> {
    let Ok(pattern) = Pattern::parse(&case.shape.to_string()) else { return Ok(None) };
    let mut graph = graph_of(&case.world);
    if case.indexed {
        let wanted = pattern.indexes_for_delta().into_iter();
        for (type_name, property) in wanted.chain(pattern.indexes_for_matches(&[])) {
            graph.declare_index(&type_name, &property);
        }
    }
    let plain_before = PlainWorld::of(&graph);
    let payload = case.said.payload.clone();
    let changes = case.event.clone();
    let event = event_of_kind("thing.happened", payload, 1, graph.head().count(), changes);
    let Ok(delta) = graph.apply(&event) else { return Ok(None) };
    let parameters = BTreeMap::from([("m".to_owned(), case.said.parameter.clone())]);
    let env = Env { event: Some(&event), parameters: &parameters };
    let before = plain_before.rows(&case.shape, &case.said);
    let after = PlainWorld::of(&graph).rows(&case.shape, &case.said);

    let steps = Steps::up_to(1_000_000);
    let full = pattern.matches(&graph, &[], &env, &steps).map_err(|error| error.to_string())?;
    same("full matching", &rows_of(&full), &after)?;
    let changed = pattern.delta(&graph, &delta, &env, &steps).map_err(|error| error.to_string())?;
    let (risen, fallen) = (difference(&after, &before), difference(&before, &after));
    same("made true", &rows_of(&changed.risen), &risen)?;
    same("made false", &rows_of(&changed.fallen), &fallen)?;
    if !(risen.is_empty() && fallen.is_empty()) && !is_concerned(&pattern, &graph, &delta) {
        return Err("the event did nothing that the pattern watches".to_owned());
    }
    for (_, bound) in before.iter().chain(&after).take(6) {
        let stands = pattern.stands(&graph, bound, &env, &steps).map_err(|e| e.to_string())?;
        let is = after.iter().find(|(_, other)| other == bound).map(|(born, _)| born);
        if stands.as_ref() != is {
            return Err(format!("whether {bound:?} stands: {stands:?}; it is {is:?}"));
        }
    }
    let (risen, fallen) = (risen.len(), fallen.len());
    Ok(Some(One { rows: after.len(), risen, fallen }))
}

/// The same, a panic being a failure like any other.
fn run(case: &Case) -> Result<Option<One>, String> {
    let caught = catch_unwind(AssertUnwindSafe(|| check(case)));
    caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("it panicked: {}", text.unwrap_or("without a word")))
    })
}

/// A case as a story.
fn story(case: &Case, what: &str) -> String {
    let line = |changes: &Vec<Change>| {
        let json: Vec<String> = changes.iter().map(|c| c.to_json().to_string()).collect();
        format!("  {}", json.join("\n  "))
    };
    let world: Vec<String> = case.world.iter().map(line).collect();
    let indexed = if case.indexed { ", with indexes" } else { "" };
    format!(
        "In the world{indexed}\n{}\nthe event, with $m = {} and the payload {},\n{}\n\
         is matched by\n  {}\n{what}",
        world.join("\n"),
        case.said.parameter,
        Value::Object(case.said.payload.clone()),
        line(&case.event),
        case.shape
    )
}

/// Runs the cases of one seed: a world, two patterns that often share a part, some events.
fn check_seed(seed: u64, met: &mut Met) {
    let mut random = Random::new(seed);
    let world = make::world(&mut random);
    let graph = graph_of(&world);
    for shape in make::shapes(&mut random) {
        let read = Pattern::parse(&shape.to_string());
        assert!(read.is_ok(), "seed {seed}: {}", read.unwrap_err());
        for _ in 0..2 {
            let payload = json!({"id": random.pick(&["n0", "n1", "n2"]), "x": random.below(3)});
            let payload = payload.as_object().cloned().unwrap_or_default();
            let said = Said { parameter: json!(1), payload };
            let event = make::event(&mut random, |changes| {
                let next = graph.head().count();
                let event = event_of_kind("tried", Map::new(), 1, next, changes.to_vec());
                graph.validate(&event).is_ok()
            });
            let indexed = random.chance(50);
            let (world, shape) = (world.clone(), shape.clone());
            let case = Case { world, shape, event, said, indexed };
            match run(&case) {
                Ok(None) => {}
                Ok(Some(one)) => met.add(&case, &one),
                Err(_) => {
                    let small = shrink::smallest(case, |case| run(case).is_err());
                    let what = run(&small).expect_err("it still fails");
                    panic!("seed {seed}\n{}", story(&small, &what));
                }
            }
        }
    }
}

#[test]
fn what_an_event_changes_is_the_difference_of_two_naive_evaluations() {
    let long = std::env::var_os("STARLING_LONG").is_some();
    let wanted = if long { 100_000 } else { 10_000 };
    let mut met = Met::default();
    let mut seed = 0;
    while met.cases < wanted {
        check_seed(seed, &mut met);
        seed += 1;
    }
    met.check();
}
