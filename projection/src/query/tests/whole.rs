//! What holds of all queries: the order of values, what is kept, where errors point.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::ControlFlow;

use log::{Change, Draft, Event, EventId, Offset};
use proptest::prelude::{Just, Strategy, any, prop};
use proptest::{prop_assert, prop_assert_eq, prop_oneof, proptest};

use serde_json::json;

use crate::graph::{EdgeRef, Graph, NodeRef};
use crate::pattern::{Env, Pattern, Steps, Val, equal};
use crate::query::order::order;
use crate::query::{Query, QueryError, QueryValue};

/// Any value that ORDER BY can meet.
fn value() -> impl Strategy<Value = Val<'static>> {
    let leaf = prop_oneof![
        Just(Val::Null),
        any::<bool>().prop_map(Val::Bool),
        (-3_i64..3).prop_map(Val::Int),
        prop_oneof![Just(i64::MAX as u64 + 1), Just(u64::MAX)].prop_map(Val::UInt),
        prop_oneof![Just(f64::NAN), Just(-0.0), Just(0.5), Just(1.0), Just(2f64.powi(63))]
            .prop_map(Val::Float),
        "[ab]{0,2}".prop_map(|text| Val::Text(Cow::Owned(text))),
        (0_u32..2).prop_map(|number| Val::Element(NodeRef(number).into())),
        (0_u32..2).prop_map(|number| Val::Element(EdgeRef(number).into())),
        (0_u32..2).prop_map(|number| Val::Path(vec![NodeRef(number).into()])),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        let map = prop::collection::btree_map("[ab]", inner.clone(), 0..3);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Val::List),
            map.prop_map(|map| Val::Map(
                map.into_iter().map(|(key, value)| (Cow::Owned(key), value)).collect()
            )),
        ]
    })
}

proptest! {
    /// Whatever is sorted, any two values have an order, and it does not contradict itself.
    #[test]
    fn all_values_have_one_order(a in value(), b in value(), c in value()) {
        prop_assert_eq!(order(&a, &a), Ordering::Equal);
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        if order(&a, &b).is_le() && order(&b, &c).is_le() {
            prop_assert!(order(&a, &c).is_le(), "{a:?} {b:?} {c:?}");
        }
        if equal(&a, &b) == Some(true) {
            prop_assert_eq!(order(&a, &b), Ordering::Equal, "{:?} {:?}", a, b);
        }
    }
}

fn rows(text: &str) -> Result<Vec<Vec<QueryValue>>, QueryError> {
    let query = Query::parse(text).unwrap_or_else(|error| panic!("{error}"));
    query.rows(&Graph::new(), &Env::EMPTY, &Steps::up_to(10_000))
}

fn shown(text: &str) -> String {
    let rows = rows(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let row =
        |row: &Vec<QueryValue>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    rows.iter().map(row).collect::<Vec<_>>().join("; ")
}

/// A few letters can ask for a long list; it is stopped like any other search.
#[test]
fn work_without_a_graph_is_bounded_too() {
    for text in [
        "UNWIND range(1, 1000000000000) AS x RETURN count(x)",
        "UNWIND range(1, 2000) AS x UNWIND range(1, 2000) AS y RETURN count(*)",
        "RETURN size([x IN range(1, 9000) WHERE any(y IN range(1, 9000) WHERE y > x)])",
    ] {
        assert!(matches!(rows(text), Err(QueryError::Exhausted(_))), "{text}");
    }
}

/// LIMIT ends the search; a sort with a LIMIT keeps the right rows, however many come.
#[test]
fn a_limit_takes_the_first_rows_and_stops() {
    let mut given = 0;
    let query = Query::parse("UNWIND range(1, 9000) AS x RETURN x").unwrap();
    let steps = Steps::up_to(10_000);
    let run = query.run(&Graph::new(), &Env::EMPTY, &steps, &mut |_| {
        given += 1;
        if given == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((run, given), (Ok(()), 3));
    assert_eq!(
        shown("UNWIND range(1, 4000) AS x RETURN x ORDER BY x % 7, x DESC SKIP 1 LIMIT 2"),
        "3990; 3983"
    );
    assert_eq!(shown("UNWIND [3, 1, 2] AS x WITH x LIMIT 2 RETURN count(x), max(x)"), "2 3");
    assert_eq!(shown("UNWIND [3, 1, 2] AS x RETURN x LIMIT 0"), "");
    assert_eq!(shown("UNWIND [1, 2] AS x WITH x LIMIT 0 RETURN count(x)"), "0");
    // What comes after a LIMIT that was reached is still finished.
    assert_eq!(shown("UNWIND [2, 1, 3] AS x WITH x LIMIT 2 RETURN x ORDER BY x"), "1; 2");
}

#[test]
fn errors_point_at_the_token_and_say_what_to_write() {
    let error = Query::parse("MATCH (a:Task)\nRETURN a.name, cout(*)").unwrap_err();
    let expected = "query, line 2, column 16: there is no function `cout`\n  RETURN a.name, cout(*)\n  \
                    \u{20}              ^^^^\n  did you mean `count`?";
    assert_eq!(error.to_string(), expected);
    for (text, fix) in [
        ("MATCH (a) RETURN b", "it binds a"),
        ("MATCH (a) CREATE (b)", "starling append"),
        ("MATCH (a) RETURN rand()", "no chance"),
        ("MATCH (a)", ""),
        ("UNWIND [1] AS x", "RETURN a, b.name, count(*)"),
        ("MATCH (a) WHERE count(a) > 1 RETURN a", "count first"),
        ("MATCH (a) RETURN a UNION MATCH (b) RETURN b", "ask two queries"),
        ("MATCH (a) RETURN a WHERE a.x", "WITH … WHERE"),
        ("MATCH (a) RETURN (a)-->()", "EXISTS"),
        ("MATCH (a) WHERE a.x = event.kind RETURN a", "as a parameter"),
    ] {
        match Query::parse(text) {
            Ok(_) => assert_eq!(fix, "", "{text}"),
            Err(error) => assert!(error.to_string().contains(fix) && !fix.is_empty(), "{error}"),
        }
    }
}

/// With an index a join costs what it finds; without, what it might.
#[test]
fn a_join_by_a_property_is_found_through_an_index() {
    let mut draft = Draft::new(EventId::ZERO, "graph.made", "user:ann");
    for number in 0..300 {
        for type_name in ["A", "B"] {
            let (id, key) = (format!("{type_name}{number}"), json!({"k": number}));
            let change = json!({"create": id, "type": type_name, "properties": key});
            draft.changes.push(Change::from_json(&change, "a change").unwrap());
        }
    }
    let mut graph = Graph::new();
    graph.apply(&Event::encode(&draft, Offset::ZERO).unwrap().0).unwrap();
    for text in [
        "MATCH (a:A), (b:B) WHERE a.k = b.k RETURN count(*)",
        "MATCH (a:A) WITH a.k AS k MATCH (b:B {k: k}) RETURN count(*)",
        "UNWIND range(0, 299) AS x MATCH (b:B) WHERE b.k = x RETURN count(*)",
        "MATCH (a:A) WHERE EXISTS { (b:B) WHERE b.k = a.k } RETURN count(*)",
    ] {
        let query = Query::parse(text).unwrap();
        let mut indexed = graph.clone();
        for (type_name, property) in query.indexes() {
            indexed.declare_index(&type_name, &property);
        }
        let [few, many] = [&indexed, &graph].map(|graph| {
            let steps = Steps::up_to(1_000_000);
            let rows = query.rows(graph, &Env::EMPTY, &steps).unwrap();
            assert_eq!(rows, [[QueryValue::Int(300)]], "{text}");
            steps.taken()
        });
        assert!(few <= 1_000 && many > 40_000, "{text}: {few} and {many} steps");
    }
    let lonely = Query::parse("MATCH (a:A {k: 1}) WHERE a.k = $k RETURN a").unwrap();
    assert!(lonely.indexes().is_empty(), "looking once is no more work than indexing");
}

/// What must be read twice to be understood is not read for ever when it is nested.
#[test]
fn no_nesting_takes_long_to_read() {
    for (open, close) in [("[x IN ", ", 1]"), ("case - ", ""), ("case[", "]"), ("({a: ", "})")] {
        for depth in [20, 60, 120, 1_000] {
            let text = format!("RETURN {}1{} AS x", open.repeat(depth), close.repeat(depth));
            // Read or refused, but soon.
            drop(Query::parse(&text));
            drop(Pattern::parse(&format!(
                "(n) WHERE {}1{}",
                open.repeat(depth),
                close.repeat(depth)
            )));
        }
    }
}

/// The words of queries are no reserved names: a pattern may use them all.
#[test]
fn words_of_queries_remain_names() {
    for text in [
        "(case:Case) WHERE case.open AND case.end = case.limit",
        "(return)-[with:ORDER]->(order) WHERE return.skip < order.limit",
        "(n) WHERE n.count = 1 AND n.when = n.then",
        "(case) WHERE case - 1 = 2 OR case[0] = 1",
        "(n) WHERE CASE n.a WHEN 1 THEN TRUE ELSE n.b END",
        "(n) WHERE size([x IN [n] WHERE x:A | x:B|C]) = 1 AND any(x IN [n] WHERE (x:A|B) AND TRUE)",
        "(n)-[r*1..3]->() WHERE all(x IN r WHERE x.w > 1) AND r[0..1] = [x IN r WHERE x.w | x]",
    ] {
        let pattern = Pattern::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let again = Pattern::parse(pattern.canonical()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(pattern.canonical(), again.canonical(), "{text}");
    }
    let bars = Pattern::parse("(n) WHERE [x IN [n] WHERE x:A | x:B|C] = []").unwrap();
    assert_eq!(bars.canonical(), "(n) WHERE [x IN [n] WHERE x:A | x:B|C] = []");
    assert_eq!(shown("UNWIND [1] AS limit WITH limit AS order RETURN order AS skip"), "1");
}
