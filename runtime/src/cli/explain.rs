//! `explain`: how a pattern is searched for, and how many elements that looks at.

use log::{Address, Missing};
use projection::{Explanation, Pattern};
use serde_json::{Value, json};

use super::failure::Failure;
use super::shell::Shell;
use super::world;

const EXAMPLES: &str = "\
Examples:
  starling explain '(t:Task)-[:NEEDS]->(u:Task {status: \"open\"})'
  starling explain '(a:Ant)-[:AT]->(n:Node)' --at main@600 --json

What follows an event starts at the element that it changed: one search is told for each part of
the pattern that can change. A step is one element looked at. One event may cost a pattern a
million steps; past that its behavior is suspended.";

/// Tells how a pattern is searched for in a graph, and what an event costs it
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The pattern, as in `match`
    #[arg(value_name = "PATTERN")]
    pattern: String,
    /// When: BRANCH@OFFSET; now if it is left out
    #[arg(long, value_name = "ADDRESS")]
    at: Option<Address>,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let pattern = Pattern::parse(&args.pattern).map_err(|e| Failure::Usage(e.to_string()))?;
    let store = shell.open(Missing::Refuse)?;
    let address = shell.address(args.at);
    let (mut graph, ..) = world::at(&store, &address, shell)?;
    // As if a behavior with this pattern were loaded.
    let indexes = pattern.indexes_for_delta();
    for (type_name, property) in &indexes {
        graph.declare_index(type_name, property);
    }
    let plan = pattern.explain(&graph);
    if shell.json() {
        return shell.line(as_json(&pattern, &plan, &indexes));
    }
    shell.line(plan.to_string().trim_end())?;
    for (type_name, property) in &indexes {
        shell.line(format_args!("it needs an index of {type_name}.{property}"))?;
    }
    match pattern.disconnected() {
        Some(why) => shell.line(format_args!("it cannot be a trigger: {why}")),
        None => Ok(()),
    }
}

fn as_json<T: AsRef<str>>(pattern: &Pattern, plan: &Explanation, indexes: &[(T, T)]) -> Value {
    let searches = plan.searches.iter().map(|search| {
        let stages = search.stages.iter().map(|stage| {
            json!({
                "binds": stage.binds, "by": stage.by, "each": stage.each, "depth": stage.depth,
            })
        });
        let stages: Vec<Value> = stages.collect();
        json!({"from": search.from, "steps": search.steps, "stages": stages})
    });
    let searches: Vec<Value> = searches.collect();
    let indexes: Vec<Value> =
        indexes.iter().map(|(of, property)| json!([of.as_ref(), property.as_ref()])).collect();
    json!({
        "pattern": plan.pattern, "searches": searches, "indexes": indexes,
        "disconnected": pattern.disconnected(),
    })
}
