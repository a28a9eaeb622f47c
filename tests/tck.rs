//! The openCypher TCK: its scenarios are run as they are, where its folder is at hand.
//!
//! The folder is named by `STARLING_TCK`, or is `shared/tck` beside the repository. Nothing of it
//! is copied. `tck.txt` lists each case that is left out or fails, under the reason: a case that is
//! not listed must pass, and one that is must not, so the list only shrinks. Without the folder
//! there are the cases of this file.

mod cases;
mod gherkin;
mod setup;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use projection::{Env, PatternError, Query, QueryError, QueryValue, Steps};
use serde_json::Value;

use cases::{Case, Expected};
use setup::Setup;

/// Folders of scenarios about what Starling does not have.
const LEFT_OUT: [&str; 3] = ["expressions/temporal", "expressions/quantifier", "clauses/union"];
/// How many cases there are outside of these folders.
const ALL: usize = 1945;
/// Words of clauses that write, or call what may.
const WRITING: [&str; 7] = ["CREATE", "MERGE", "SET", "DELETE", "REMOVE", "CALL", "FOREACH"];

/// The folder of the TCK, if it is there.
fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("STARLING_TCK").map(PathBuf::from);
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/tck");
    named.or(Some(beside)).filter(|path| path.join("features").is_dir())
}

/// Whether the query of a case writes.
fn writes(query: &str) -> bool {
    let outside: String = query.split('\'').step_by(2).collect();
    let words = outside.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.' && c != ':');
    words.into_iter().any(|word| WRITING.iter().any(|w| word.eq_ignore_ascii_case(w)))
}

/// Runs a case; the error says how it differs.
fn check(case: &Case) -> Result<(), String> {
    let mut world = Setup::default();
    for script in case.graph.iter().chain(&case.setup) {
        world.run(script)?;
    }
    let mut parameters: BTreeMap<String, Value> = BTreeMap::new();
    for (name, text) in &case.parameters {
        let query = Query::parse(&format!("RETURN {text}")).map_err(|error| error.to_string())?;
        let rows = query.rows(&world.graph, &Env::EMPTY, &Steps::up_to(1_000));
        let rows = rows.map_err(|error| error.to_string())?;
        parameters.insert(name.clone(), rows[0][0].to_json());
    }
    let env = Env { event: None, parameters: &parameters };
    let query = Query::parse(&case.query);
    match &case.expected {
        Expected::Error { class, phase, detail } => {
            let compiles = phase == "compile time" || phase == "any time";
            let (at, found) = match &query {
                Err(error) => ("compile time", named(error)),
                Ok(query) => match query.rows(&world.graph, &env, &Steps::up_to(1_000_000)) {
                    Ok(_) => return Err(format!("no {class}: {detail}")),
                    Err(QueryError::Fault(fault)) => {
                        ("runtime", (fault.class.to_string(), fault.problem.to_string()))
                    }
                    Err(other) => return Err(other.to_string()),
                },
            };
            let in_time = phase == "any time" || compiles == (at == "compile time");
            let right = in_time && found.0 == *class && (detail == "*" || found.1 == *detail);
            let (class_found, detail_found) = &found;
            let wanted = format!("{class} at {phase}: {detail}");
            right
                .then_some(())
                .ok_or(format!("{class_found} at {at}: {detail_found}, not {wanted}"))
        }
        Expected::Table { rows, ordered, lists_ordered } => {
            let query = query.map_err(|error| error.to_string())?;
            let found = query.rows(&world.graph, &env, &Steps::up_to(10_000_000));
            let found = found.map_err(|error| error.to_string())?;
            let columns: Vec<&str> = query.columns().iter().map(|name| name.as_str()).collect();
            same_table(rows, &columns, &found, *ordered, *lists_ordered)
        }
    }
}

fn named(error: &PatternError) -> (String, String) {
    (error.class.to_string(), error.problem.to_string())
}

fn same_table(
    expected: &[Vec<String>],
    columns: &[&str],
    found: &[Vec<QueryValue>],
    ordered: bool,
    lists_ordered: bool,
) -> Result<(), String> {
    let Some((head, rows)) = expected.split_first() else {
        let none = found.is_empty();
        return none.then_some(()).ok_or(format!("{} rows, not none", found.len()));
    };
    let mut places = Vec::new();
    for name in head {
        let place = columns.iter().position(|column| column == name);
        places.push(place.ok_or_else(|| format!("no column `{name}` among {columns:?}"))?);
    }
    if columns.len() != head.len() {
        return Err(format!("columns {columns:?}, not {head:?}"));
    }
    let spelled = |row: &Vec<QueryValue>| -> Vec<String> {
        places.iter().map(|place| values::spelled(&row[*place], lists_ordered)).collect()
    };
    let mut found: Vec<Vec<String>> = found.iter().map(spelled).collect();
    let read = |cell: &String| values::read(cell, lists_ordered);
    let mut wanted: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(read).collect()).collect();
    if !ordered {
        found.sort();
        wanted.sort();
    }
    if found == wanted { Ok(()) } else { Err(format!("found {found:?}, not {wanted:?}")) }
}

/// The cases of `tck.txt`, each with its reason. A reason is a line that begins with `#`.
fn listed() -> BTreeMap<String, String> {
    let mut reason = String::new();
    let mut listed = BTreeMap::new();
    for line in include_str!("tck.txt").lines().filter(|line| !line.is_empty()) {
        if let Some(text) = line.strip_prefix("# ") {
            reason = text.to_owned();
        } else {
            let twice = listed.insert(line.to_owned(), reason.clone());
            assert!(twice.is_none(), "{line} is listed twice");
        }
    }
    listed
}

/// How many cases are of which kind.
#[derive(Default)]
struct Count {
    all: usize,
    writing: usize,
    beyond: usize,
    failing: usize,
    passed: usize,
}

#[test]
fn tck_cases_pass_but_those_listed() {
    let Some(folder) = folder() else {
        println!("the TCK is not at hand: name its folder by STARLING_TCK; only our own cases ran");
        return;
    };
    let mut listed = listed();
    let mut count = Count::default();
    let (mut wrong, mut names) = (Vec::new(), BTreeSet::new());
    for case in cases::read(&folder) {
        assert!(names.insert(case.name.clone()), "two cases are called {}", case.name);
        if LEFT_OUT.iter().any(|folder| case.name.starts_with(folder)) {
            continue;
        }
        count.all += 1;
        if writes(&case.query) {
            count.writing += 1;
            continue;
        }
        let outcome = check(&case);
        match (outcome, listed.remove(&case.name)) {
            (Ok(()), None) => count.passed += 1,
            (Ok(()), Some(_)) => wrong.push(format!("passes now, so unlist it: {}", case.name)),
            (Err(how), None) => wrong.push(format!("{}\n    {how}", case.name)),
            (Err(_), Some(reason)) if reason.starts_with("not in the language") => {
                count.beyond += 1;
            }
            (Err(_), Some(_)) => count.failing += 1,
        }
    }
    wrong.extend(listed.keys().map(|name| format!("is listed, but there is no such case: {name}")));
    let Count { all, writing, beyond, failing, passed } = count;
    let run = all - writing - beyond;
    println!("TCK: {all} cases, {writing} write, {beyond} need what is not in the language");
    println!("TCK: {run} run, {passed} passed, {failing} listed as failing");
    let share = |of: usize| 100.0 * passed as f64 / of as f64;
    println!("TCK: {:.1} % of those run, {:.1} % of all {all}", share(run), share(all));
    assert!(wrong.is_empty(), "{} differ from tck.txt:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(all, ALL, "the folder has all cases");
}

/// The harness can tell a right answer from a wrong one, also where the TCK is not at hand.
#[test]
fn tck_harness_tells_right_from_wrong() {
    let case = |query: &str, rows: &[&[&str]]| {
        let row = |row: &&[&str]| row.iter().map(ToString::to_string).collect();
        let rows = rows.iter().map(row).collect();
        check(&Case {
            name: "own".into(),
            graph: None,
            setup: vec![
                "CREATE (a:A {n: 1, t: 'x'})-[:T {w: 0.5}]->(b:B), (b)<-[:U]-(:C)".into(),
                "UNWIND range(1, 2) AS i CREATE ({i: i})".into(),
                "MATCH (a:A) CREATE (a)-[:T]->(a)".into(),
            ],
            parameters: vec![("p".into(), "[1, {a: 2.0}]".into())],
            query: query.into(),
            expected: Expected::Table { rows, ordered: false, lists_ordered: true },
        })
    };
    let path = "<(:A {n: 1, t: 'x'})-[:T {w: 0.5}]->(:B)>";
    assert_eq!(case("MATCH p = (:A)-->(:B) RETURN p", &[&["p"], &[path]]), Ok(()));
    assert_eq!(case("MATCH (n:`_`) RETURN n.i", &[&["n.i"], &["2"], &["1"]]), Ok(()));
    assert_eq!(case("RETURN $p[1].a AS x", &[&["x"], &["2.0"]]), Ok(()));
    assert_eq!(case("MATCH (a)-[:T]->(a) RETURN labels(a)", &[&["labels(a)"], &["['A']"]]), Ok(()));
    assert!(case("RETURN $p[1].a AS x", &[&["x"], &["2"]]).is_err());
    assert!(case("RETURN 1 AS x", &[&["y"], &["1"]]).is_err());
    assert!(case("MATCH (a:A) RETURN 1 AS x", &[&["x"], &["1"], &["1"]]).is_err());
    let error = |query: &str, detail: &str| {
        check(&Case {
            name: "own".into(),
            graph: None,
            setup: Vec::new(),
            parameters: Vec::new(),
            query: query.into(),
            expected: Expected::Error {
                class: "SyntaxError".into(),
                phase: "compile time".into(),
                detail: detail.into(),
            },
        })
    };
    assert_eq!(error("RETURN foo", "UndefinedVariable"), Ok(()));
    assert!(error("RETURN foo", "UnexpectedSyntax").is_err());
    assert!(error("RETURN 1", "UndefinedVariable").is_err());
}
