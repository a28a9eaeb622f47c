//! `behaviors`: who is loaded, what each did and what it cost; its source, and who triggers whom.

use std::collections::BTreeMap;
use std::sync::Arc;

use behaviors::{Condition, Metadata};
use log::{Address, Branch, EventId, Head, Log, Missing, Offset, Store};
use serde_json::{Value, json};

use super::failure::Failure;
use super::shell::Shell;
use crate::engine::EngineError;
use crate::engine::state::State;
use crate::engine::subscription::Subscription;
use crate::flock::{Form, Triggers};
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling behaviors                     who is loaded, what each did
  starling behaviors --at main@600       and who was, then
  starling behaviors cat greet_guest     its source, as the log keeps it
  starling behaviors graph               who can trigger whom
  starling behaviors graph --dot | dot -Tsvg > graph.svg";

/// Shows the behaviors of a branch: form, source, state, firings, failures, time, cost and trigger
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// When: BRANCH@OFFSET; now if it is left out
    #[arg(long, value_name = "ADDRESS", global = true)]
    at: Option<Address>,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// The source of a behavior, by its hash from the log
    Cat {
        /// The behavior
        name: String,
    },
    /// Who can trigger whom, as far as behaviors declare it
    Graph {
        /// As a graph for Graphviz
        #[arg(long)]
        dot: bool,
    },
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let address = shell.address(args.at);
    let (branch, cut) = shell.resolve(&*store, &address)?;
    let state = Snapshots::beside(store.path()).fold_branch(&*store, branch.id, cut);
    let state = state.map_err(EngineError::from)?;
    match args.what {
        None => list(&store, &branch, cut, &state, shell),
        Some(What::Cat { name }) => cat(&store, &state, &name, &address, shell),
        Some(What::Graph { dot }) => graph(&store, &branch, cut, &state, dot, shell),
    }
}

/// What a behavior did, as the log tells it.
#[derive(Clone, Copy, Debug, Default)]
struct Did {
    failed: u64,
    effects: u64,
    /// How long its effects were out.
    time_ms: i64,
    tokens: u64,
    cost: f64,
}

fn done(store: &Store, branch: &Branch, cut: Head) -> Result<BTreeMap<String, Did>, Failure> {
    let mut did: BTreeMap<String, Did> = BTreeMap::new();
    let mut asked: BTreeMap<EventId, (String, i64)> = BTreeMap::new();
    for event in log::read(store, branch.id, Offset::ZERO..cut.next())? {
        let event = event?;
        let author = event.author().unwrap_or_default();
        match event.kind() {
            "behavior.failed" => did.entry(author.to_owned()).or_default().failed += 1,
            "effect.requested" => {
                did.entry(author.to_owned()).or_default().effects += 1;
                asked.insert(event.id(), (author.to_owned(), event.time().ms()));
            }
            "effect.dispatched" | "attempt.ended" => {
                let payload = Value::Object(event.payload().to_json());
                let action = payload["action"].as_str().and_then(|id| id.parse().ok());
                let Some((name, since)) = action.and_then(|id: EventId| asked.get_mut(&id)) else {
                    continue;
                };
                if event.kind() == "effect.dispatched" {
                    *since = event.time().ms();
                    continue;
                }
                let did = did.entry(name.clone()).or_default();
                did.time_ms += event.time().ms() - *since;
                did.tokens += payload["usage"]["tokens"].as_u64().unwrap_or(0);
                did.cost += payload["usage"]["cost"].as_f64().unwrap_or(0.0);
            }
            _ => {}
        }
    }
    Ok(did)
}

fn list(
    store: &Store,
    branch: &Branch,
    cut: Head,
    state: &State,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let did = done(store, branch, cut)?;
    let mut rows = Vec::new();
    for loaded in known(state) {
        let count = state.counts.get(&loaded.name).copied().unwrap_or_default();
        let did = did.get(loaded.name.as_str()).copied().unwrap_or_default();
        let (form, path) = (form(loaded), loaded.path());
        if shell.json() {
            shell.line(json!({
                "name": loaded.name.as_str(), "form": form, "path": path,
                "hash": loaded.hash.as_str(), "trigger": trigger(&loaded.metadata),
                "guard": loaded.metadata.guard, "fired": count.firings, "events": count.events,
                "failed": did.failed, "effects": did.effects, "time_ms": did.time_ms,
                "tokens": did.tokens, "cost": did.cost,
                "state": standing(state, loaded),
            }))?;
            continue;
        }
        let cost = if did.cost > 0.0 { format!("{:.4}", did.cost) } else { "-".to_owned() };
        let time = if did.time_ms > 0 { format!("{} ms", did.time_ms) } else { "-".to_owned() };
        rows.push([
            loaded.name.to_string(),
            form,
            path,
            standing(state, loaded).to_owned(),
            count.firings.to_string(),
            did.failed.to_string(),
            time,
            cost,
            trigger(&loaded.metadata),
        ]);
    }
    if shell.json() {
        return Ok(());
    }
    table(&rows, shell)?;
    shell.say(format_args!("{} behaviors on {}@{cut}", rows.len(), branch.name));
    Ok(())
}

const HEADS: [&str; 9] =
    ["name", "form", "source", "state", "fired", "failed", "time", "cost", "trigger"];

/// Every behavior of the branch, by name: those in place, and those that a person switched off.
fn known(state: &State) -> Vec<&Subscription> {
    let off = state.disabled.values().flatten();
    let mut all: Vec<_> = state.subscriptions.iter().chain(off).map(Arc::as_ref).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// What a behavior may do now, in a word.
fn standing(state: &State, loaded: &Subscription) -> &'static str {
    if state.disabled.contains_key(&loaded.name) {
        "disabled"
    } else if state.suspended.contains_key(&loaded.name) {
        "suspended"
    } else {
        "live"
    }
}

fn table(rows: &[[String; 9]], shell: &mut Shell<'_>) -> Result<(), Failure> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([HEADS[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let heads = HEADS.map(str::to_owned);
    for row in std::iter::once(&heads).chain(rows) {
        let cells = row.iter().zip(&widths).enumerate().map(|(nth, (cell, width))| match nth {
            4..=7 => format!("{cell:>width$}"),
            8 => cell.clone(),
            _ => format!("{cell:<width$}"),
        });
        shell.line(cells.collect::<Vec<_>>().join("  "))?;
    }
    Ok(())
}

/// How a behavior is written, as far as the log tells it.
fn form(loaded: &Subscription) -> String {
    match loaded.path() {
        path if path.is_empty() => "rust".to_owned(),
        path => Form::of_path(&path).to_string(),
    }
}

/// When a behavior fires, in a line.
fn trigger(metadata: &Metadata) -> String {
    let trigger = &metadata.trigger;
    let mut parts = Vec::new();
    if let Some(on) = &trigger.on {
        parts.push(format!("on {on}"));
    }
    if !trigger.filter.is_empty() {
        parts.push(format!("where {}", metadata.to_json()["where"]));
    }
    match &trigger.condition {
        Some(Condition::Matches(pattern)) => parts.push(format!("match {pattern}")),
        Some(Condition::Vanishes(pattern)) => parts.push(format!("vanishes {pattern}")),
        None => {}
    }
    if trigger.after > 0 {
        parts.push(format!("after {} events", trigger.after));
    }
    parts.extend(trigger.after_ms.map(|ms| format!("after {ms} ms")));
    if metadata.guard {
        parts.push("(guard)".to_owned());
    }
    parts.join(" ")
}

fn cat(
    store: &Arc<Store>,
    state: &State,
    name: &str,
    address: &Address,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let all = known(state);
    let Some(loaded) = all.iter().find(|loaded| loaded.name == name) else {
        let names = all.iter().map(|loaded| loaded.name.as_str());
        let hint = behaviors::did_you_mean(name, names);
        let what = format!("no behavior `{name}` is loaded at {address}{hint}");
        return Err(Failure::NotFound(what));
    };
    let hash = loaded.hash.parse().ok();
    let text = hash.map(|hash| store.blob(&hash)).transpose()?.flatten();
    let text = text.ok_or_else(|| {
        Failure::NotFound(format!(
            "the source of {name} is not in the log: it is part of a program"
        ))
    })?;
    let text = String::from_utf8_lossy(&text).into_owned();
    if shell.json() {
        return shell.line(json!({
            "name": name, "path": loaded.path(), "hash": loaded.hash.as_str(), "source": text,
        }));
    }
    shell.line(text.trim_end_matches('\n'))
}

fn graph(
    store: &Store,
    branch: &Branch,
    cut: Head,
    state: &State,
    dot: bool,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let mut kinds: Vec<String> = Vec::new();
    for event in log::read(store, branch.id, Offset::ZERO..cut.next())? {
        let event = event?;
        if event.author().is_none() && !kinds.iter().any(|kind| kind == event.kind()) {
            kinds.push(event.kind().to_owned());
        }
    }
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).filter(|kind| told(kind)).collect();
    let triggers = Triggers::of(state.subscriptions.iter().map(|s| &s.metadata), &kinds);
    if dot {
        return tell_dot(&triggers, shell);
    }
    let edges: Vec<Value> = triggers
        .edges
        .iter()
        .map(|edge| json!({"from": edge.from, "to": edge.to, "by": edge.by}))
        .collect();
    if shell.json() {
        return shell.line(json!({
            "behaviors": triggers.names, "edges": edges, "loops": triggers.loops(),
            "undeclared": triggers.undeclared,
        }));
    }
    for edge in &triggers.edges {
        shell.line(format_args!("{} -> {}  by {}", edge.from, edge.to, edge.by))?;
    }
    if triggers.edges.is_empty() {
        shell.say("by what they declare, nobody here triggers anybody");
    }
    for names in triggers.loops() {
        let way: Vec<&str> = names.iter().chain(names.first()).map(String::as_str).collect();
        shell.line(format_args!("loop: {}", way.join(" -> ")))?;
    }
    if !triggers.undeclared.is_empty() {
        shell.line(format_args!(
            "these declare no emits or no writes, so they may trigger more: {}",
            triggers.undeclared.join(", ")
        ))?;
    }
    Ok(())
}

/// Answers of the world come after what asked for them, which is shown.
fn told(kind: &str) -> bool {
    !behaviors::is_runtime_kind(kind)
}

fn tell_dot(triggers: &Triggers, shell: &mut Shell<'_>) -> Result<(), Failure> {
    shell.line("digraph flock {")?;
    shell.line("  rankdir = LR; node [shape = box, fontname = monospace];")?;
    for name in &triggers.names {
        shell.line(format_args!("  {name:?};"))?;
    }
    for edge in &triggers.edges {
        shell.line(format_args!("  {:?} -> {:?} [label = {:?}];", edge.from, edge.to, edge.by))?;
    }
    shell.line("}")
}
