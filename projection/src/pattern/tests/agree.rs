//! The oracle test: on random worlds, patterns and events, what the product finds is what a naive
//! matcher finds, and what one event changes is the difference of two full evaluations.

use std::collections::BTreeMap;

use log::Bound;
use serde_json::{Value, json};

use super::naive::{Given, PlainGraph};
use super::random::{Random, event, first_event, pattern};
use crate::delta::Delta;
use crate::graph::{Born, ElementView, Graph};
use crate::pattern::{Aspect, Env, Fixed, Kind, Pattern, Row, Steps, Watch, parse};

type Plain = Vec<(Vec<Born>, Vec<Bound>)>;

fn plain(rows: &[Row]) -> Plain {
    rows.iter().map(|row| (row.order.clone(), row.bound.clone())).collect()
}

/// The rows of one side whose elements are no row of the other.
fn difference(here: &Plain, there: &Plain) -> Plain {
    let stands = |bound: &Vec<Bound>| there.iter().any(|(_, other)| other == bound);
    here.iter().filter(|(_, bound)| !stands(bound)).cloned().collect()
}

/// A world of some twenty elements.
fn world(random: &mut Random) -> Graph {
    let mut graph = Graph::new();
    let mut offset = 0;
    for _ in 0..18 {
        let event = first_event(random, offset);
        offset += u64::from(graph.apply(&event).is_ok());
    }
    graph
}

fn a_pattern(random: &mut Random) -> Pattern {
    loop {
        if let Ok(pattern) = Pattern::parse(&pattern(random)) {
            return pattern;
        }
    }
}

/// Whether an event does something of what a pattern watches.
fn watched(watches: &[Watch], graph: &Graph, delta: &Delta) -> bool {
    use crate::world::World;
    delta.touched().any(|element| {
        let (before, after) = (delta.before(graph, element), graph.at(element));
        let Some(view) = before.or(after) else { return false };
        let kind = if element.node().is_some() { Kind::Node } else { Kind::Edge };
        let differs = |name: &str| {
            let value = |view: Option<ElementView<'_>>| {
                view.and_then(|view| view.properties_json().remove(name))
            };
            value(before) != value(after)
        };
        watches.iter().any(|watch| {
            let typed = watch.type_name.as_ref().is_none_or(|name| name == view.type_name());
            let fixed = watch.fixed.as_ref().is_none_or(|(name, fixed)| {
                let has = |view: Option<ElementView<'_>>| {
                    view.and_then(|view| view.property(name)).and_then(Fixed::of)
                };
                has(before).as_ref() == Some(fixed) || has(after).as_ref() == Some(fixed)
            });
            watch.kind == kind
                && typed
                && fixed
                && match &watch.aspect {
                    Aspect::Existence => before.is_none() != after.is_none(),
                    Aspect::Property(name) => differs(name),
                    Aspect::AnyProperty => true,
                }
        })
    })
}

/// How often each kind of thing was met, so that the test cannot pass by meeting nothing.
#[derive(Default, Debug)]
struct Met {
    rows: usize,
    risen: usize,
    fallen: usize,
    cases: usize,
}

fn check_case(random: &mut Random, met: &mut Met) {
    let parameters: BTreeMap<String, Value> = [("m".to_owned(), json!(1))].into();
    let mut graph = world(random);
    let pattern = a_pattern(random);
    if random.chance(50) {
        let wanted = pattern.indexes_for_delta().into_iter();
        for (type_name, property) in wanted.chain(pattern.indexes_for_matches(&[])) {
            graph.declare_index(&type_name, &property);
        }
    }
    let body = parse::parse(pattern.text()).unwrap();
    let shown = pattern.to_string();
    for _ in 0..4 {
        let before = graph.clone();
        let event = event(random, graph.head().count(), 4);
        let Ok(delta) = graph.apply(&event) else { continue };
        met.cases += 1;
        let env = Env { event: Some(&event), parameters: &parameters };
        let payload = event.payload().to_json();
        let given =
            Given { parameters: &parameters, event: Some((event.kind().to_owned(), payload)) };
        let naive_before = PlainGraph::of(&before).rows(&body, &given);
        let naive_after = PlainGraph::of(&graph).rows(&body, &given);
        let steps = Steps::up_to(1_000_000);

        let full = pattern.matches(&graph, &[], &env, &steps).unwrap();
        assert_eq!(plain(&full), naive_after, "full matching of {shown}");
        let changed = pattern.delta(&graph, &delta, &env, &steps).unwrap();
        let context = || format!("{shown}\n{:?}", event.to_draft().changes);
        let risen = difference(&naive_after, &naive_before);
        assert_eq!(plain(&changed.risen), risen, "risen of {}", context());
        let fallen = difference(&naive_before, &naive_after);
        assert_eq!(plain(&changed.fallen), fallen, "fallen of {}", context());
        if !(risen.is_empty() && fallen.is_empty()) {
            assert!(watched(&pattern.interest(), &graph, &delta), "watches of {}", context());
        }
        check_rows(&pattern, &graph, &env, &naive_before, &naive_after);
        met.rows += full.len();
        met.risen += risen.len();
        met.fallen += fallen.len();
    }
}

/// Each row of before stands after, or not; and each is found from one of its elements.
fn check_rows(pattern: &Pattern, graph: &Graph, env: &Env<'_>, before: &Plain, after: &Plain) {
    let steps = Steps::up_to(10_000_000);
    for (_, bound) in before.iter().chain(after).take(6) {
        let stands = pattern.stands(graph, bound, env, &steps).unwrap();
        let expected = after.iter().find(|(_, other)| other == bound).map(|(order, _)| order);
        assert_eq!(stands.as_ref(), expected, "whether {bound:?} stands in {pattern}");
    }
    let variables = pattern.variables();
    let named = |place: &usize| variables[*place].name.is_some();
    let Some(place) = (0..variables.len()).rfind(named) else { return };
    let name = variables[place].name.as_deref().unwrap();
    let Some((_, bound)) = after.first() else { return };
    let Bound::Element(id) = &bound[place] else { return };
    let found = pattern.matches(graph, &[(name, id)], env, &steps).unwrap();
    let expected = after.iter().filter(|(_, bound)| bound[place] == Bound::Element(id.clone()));
    assert_eq!(plain(&found), expected.cloned().collect::<Plain>(), "{name} given in {pattern}");
}

#[test]
fn delta_is_the_difference_of_two_naive_evaluations() {
    let mut met = Met::default();
    for case in 0.. {
        check_case(&mut Random(case), &mut met);
        if met.cases >= 10_000 {
            break;
        }
    }
    assert!(met.rows > 10_000, "{met:?}");
    assert!(met.risen > 1_500 && met.fallen > 1_500, "{met:?}");
}
