//! The scenarios as cases: outlines expanded, steps understood.

use std::path::{Path, PathBuf};

use super::gherkin::{Scenario, Step, scenarios};

/// One case.
#[derive(Debug)]
pub(crate) struct Case {
    /// `clauses/match/Match1 [3] what it says`, with `#2` behind it for the second example.
    pub(crate) name: String,
    /// The script of a graph to begin with.
    pub(crate) graph: Option<String>,
    /// What is created before.
    pub(crate) setup: Vec<String>,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) query: String,
    pub(crate) expected: Expected,
}

/// What a case expects.
#[derive(Debug)]
pub(crate) enum Expected {
    Table { rows: Vec<Vec<String>>, ordered: bool, lists_ordered: bool },
    Error { class: String, phase: String, detail: String },
}

/// Every case below a folder, by name.
pub(crate) fn read(root: &Path) -> Vec<Case> {
    let mut files = Vec::new();
    list(&root.join("features"), &mut files);
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let below = file.strip_prefix(root.join("features")).expect("it was listed there");
        let name = below.with_extension("").to_string_lossy().replace('\\', "/");
        let text = std::fs::read_to_string(&file).expect("a listed file can be read");
        for scenario in scenarios(&text) {
            if scenario.examples.is_empty() {
                cases.push(case(&name, &scenario, &[], "", root));
            }
            let all = scenario.examples.iter().flat_map(|table| bindings(table));
            for (number, binding) in all.enumerate() {
                let which = format!(" #{}", number + 1);
                cases.push(case(&name, &scenario, &binding, &which, root));
            }
        }
    }
    cases
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries {
        let path = entry.expect("a folder can be listed").path();
        if path.is_dir() {
            list(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "feature") {
            files.push(path);
        }
    }
}

/// What stands for each name of an outline, once for each example.
fn bindings(table: &[Vec<String>]) -> Vec<Vec<(String, String)>> {
    let (head, rows) = table.split_first().expect("a table has a head");
    let names = head.iter().map(|name| format!("<{name}>"));
    rows.iter().map(|row| names.clone().zip(row.iter().cloned()).collect()).collect()
}

fn case(
    file: &str,
    scenario: &Scenario,
    binding: &[(String, String)],
    which: &str,
    root: &Path,
) -> Case {
    let fill = |text: &str| {
        binding.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    };
    let mut case = Case {
        name: format!("{file} {}{which}", scenario.name),
        graph: None,
        setup: Vec::new(),
        parameters: Vec::new(),
        query: String::new(),
        expected: Expected::Table { rows: Vec::new(), ordered: false, lists_ordered: true },
    };
    let mut asked = false;
    for step in &scenario.steps {
        let (what, text) = (fill(&step.what), fill(&step.text));
        if let Some(graph) = what.strip_suffix(" graph").and_then(|w| w.strip_prefix("the ")) {
            let script = root.join(format!("graphs/{graph}/{graph}.cypher"));
            case.graph = Some(std::fs::read_to_string(&script).expect("the graph has a script"));
        } else if what == "having executed:" {
            case.setup.push(text);
        } else if what == "parameters are:" {
            case.parameters = table(step, &fill).into_iter().map(pair).collect();
        } else if what == "executing query:" {
            case.query = text;
            asked = true;
        } else if asked
            && (what.starts_with("the result should be") || what.contains("Error should"))
        {
            case.expected = expected(&what, table(step, &fill));
            // What follows asks for side effects, or another query; the cases with either write.
            break;
        }
    }
    case
}

fn pair(row: Vec<String>) -> (String, String) {
    let mut cells = row.into_iter();
    let name = cells.next().expect("a parameter has a name");
    (name, cells.next().expect("a parameter has a value"))
}

fn table(step: &Step, fill: &impl Fn(&str) -> String) -> Vec<Vec<String>> {
    step.table.iter().map(|row| row.iter().map(|cell| fill(cell)).collect()).collect()
}

fn expected(what: &str, rows: Vec<Vec<String>>) -> Expected {
    if let Some((class, rest)) = what.split_once(" should be raised at ") {
        let class = class.rsplit(' ').next().expect("it has a last word").to_owned();
        let (phase, detail) = rest.split_once(": ").expect("an error has a detail");
        return Expected::Error { class, phase: phase.to_owned(), detail: detail.to_owned() };
    }
    let ordered = what.contains(", in order");
    let lists_ordered = !what.contains("ignoring element order");
    Expected::Table { rows, ordered, lists_ordered }
}
