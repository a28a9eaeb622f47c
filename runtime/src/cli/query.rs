//! `query`: a question about the world at an address, answered row by row.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use log::{Address, Missing};
use projection::{Env, Query, QueryValue, Steps};
use serde_json::{Map, Value};

use super::failure::Failure;
use super::shell::Shell;
use super::world;
use crate::clock::Stopwatch;

const EXAMPLES: &str = "\
Examples:
  starling query 'MATCH (t:Task) WHERE t.status = \"open\" RETURN t.title, t.cost ORDER BY t.cost'
  starling query 'MATCH (p:Person)-[:OWNS]->(t) RETURN p.name, count(*) AS tasks' --at main@600
  starling query '(a:Ant)-[:AT]->(p:Place)'          a pattern alone shows all that it names
  starling query 'MATCH (t:Task) WHERE t.cost > $least RETURN t' --param least=3 --json
  starling query 'MATCH (n) RETURN n.name, n.age' --csv > names.csv
The language is a subset of openCypher: projection/PATTERNS.md has it by examples.";

/// Asks the world: patterns of the graph, and what to show of their matches
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The query, such as 'MATCH (a:Task) RETURN a'
    query: String,
    /// When: BRANCH@OFFSET; now if it is left out
    #[arg(long, value_name = "ADDRESS")]
    at: Option<Address>,
    /// The value of `$NAME`: as JSON, else as a text
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    params: Vec<(String, Value)>,
    /// Write comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Say how long it took, how many rows it gave and how many elements it looked at
    #[arg(long)]
    profile: bool,
    /// Stop after looking at so many elements
    #[arg(long, value_name = "COUNT", default_value_t = 100_000_000)]
    steps: u64,
}

fn parameter(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, such as least=3")?;
    let as_text = || Value::String(value.to_owned());
    Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| as_text())))
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let query = Query::parse(&args.query).map_err(|error| Failure::Usage(error.to_string()))?;
    let parameters: BTreeMap<String, Value> = args.params.into_iter().collect();
    if let Some(name) =
        query.parameters().iter().find(|name| !parameters.contains_key(name.as_str()))
    {
        let how = format!("give it a value: --param {name}=…");
        return Err(Failure::Usage(format!("the query mentions ${name}; {how}")));
    }
    let store = shell.open(Missing::Refuse)?;
    let address = shell.address(args.at);
    let opening = Stopwatch::start();
    let (graph, _, _) = world::at(&store, &address, shell)?;
    let opened_ms = opening.elapsed().as_secs_f64() * 1e3;
    let form = match (shell.json(), args.csv) {
        (true, _) => Form::Lines,
        (_, true) => Form::Csv,
        _ => Form::Table,
    };
    let columns: Vec<String> = query.columns().iter().map(ToString::to_string).collect();
    let mut table = Writer { form, columns, waiting: Vec::new(), widths: None, rows: 0 };
    let env = Env { event: None, parameters: &parameters };
    let steps = Steps::up_to(args.steps);
    let asking = Stopwatch::start();
    let mut written = Ok(());
    let asked = query.run(&graph, &env, &steps, &mut |row| {
        written = table.row(&row, shell);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let asked_ms = asking.elapsed().as_secs_f64() * 1e3;
    written?;
    let rows = table.rows;
    // Of an answer that failed, what was found before is shown, but no empty head.
    if asked.is_ok() || rows > 0 {
        table.end(shell)?;
    }
    asked.map_err(|error| Failure::Failed(error.to_string()))?;
    if args.profile {
        let elements = graph.node_count() + graph.edge_count();
        shell.say(format_args!(
            "{rows} rows, {} steps, {asked_ms:.2} ms; the world at {address} has {elements} elements \
             and was read in {opened_ms:.2} ms",
            steps.taken()
        ));
    } else if form == Form::Table {
        shell.say(format_args!("{rows} rows at {address}"));
    }
    Ok(())
}

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// In columns, for people.
    Table,
    /// An object a line.
    Lines,
    Csv,
}

/// How many rows of a table decide how wide its columns are.
const MEASURED_MAX: usize = 1000;
/// The widest column of a table, except the last.
const WIDTH_MAX: usize = 60;

/// Writes rows as they come; of a table the first ones wait until the columns are measured.
struct Writer {
    form: Form,
    columns: Vec<String>,
    waiting: Vec<Vec<String>>,
    widths: Option<Vec<usize>>,
    rows: u64,
}

impl Writer {
    /// The first line of comma-separated values names the columns.
    fn head(&mut self, shell: &mut Shell<'_>) -> Result<(), Failure> {
        match self.form {
            Form::Csv => shell.line(csv_line(self.columns.iter().map(String::as_str))),
            Form::Table | Form::Lines => Ok(()),
        }
    }

    fn row(&mut self, row: &[QueryValue], shell: &mut Shell<'_>) -> Result<(), Failure> {
        if self.rows == 0 {
            self.head(shell)?;
        }
        self.rows += 1;
        match self.form {
            Form::Lines => {
                let fields = self.columns.iter().cloned().zip(row.iter().map(QueryValue::to_json));
                shell.line(Value::Object(fields.collect::<Map<_, _>>()))
            }
            Form::Csv => {
                let cells: Vec<String> = row.iter().map(csv_cell).collect();
                shell.line(csv_line(cells.iter().map(String::as_str)))
            }
            Form::Table => {
                let cells: Vec<String> = row.iter().map(table_cell).collect();
                if let Some(widths) = &self.widths {
                    return shell.line(table_line(&cells, widths));
                }
                self.waiting.push(cells);
                if self.waiting.len() == MEASURED_MAX { self.measured(shell) } else { Ok(()) }
            }
        }
    }

    /// Fixes the widths of the columns and writes what waited for them.
    fn measured(&mut self, shell: &mut Shell<'_>) -> Result<(), Failure> {
        let width = |place: usize| {
            let cells = self.waiting.iter().map(|row| row[place].chars().count());
            cells.chain([self.columns[place].chars().count()]).max().unwrap_or(0).min(WIDTH_MAX)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        shell.line(table_line(&self.columns, &widths))?;
        shell.line(table_line(&rule, &widths))?;
        for cells in std::mem::take(&mut self.waiting) {
            shell.line(table_line(&cells, &widths))?;
        }
        self.widths = Some(widths);
        Ok(())
    }

    fn end(&mut self, shell: &mut Shell<'_>) -> Result<(), Failure> {
        if self.rows == 0 {
            self.head(shell)?;
        }
        if self.form == Form::Table && self.widths.is_none() {
            self.measured(shell)
        } else {
            Ok(())
        }
    }
}

/// The cells of a row, each as wide as its column.
fn table_line(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// A value for people: a text as it is, on one line.
fn table_cell(value: &QueryValue) -> String {
    match value {
        QueryValue::Text(text) if !text.contains(char::is_control) => text.clone(),
        other => other.to_string(),
    }
}

/// A value for a spreadsheet: null is empty, what has parts is JSON.
fn csv_cell(value: &QueryValue) -> String {
    match value.to_json() {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// A line of comma-separated values, as RFC 4180 has it.
fn csv_line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let quoted = cells.map(|cell| {
        if cell.contains(['"', ',', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.to_owned()
        }
    });
    quoted.collect::<Vec<_>>().join(",")
}
