//! What a run tells at its end: why it ended, what it left, and what it could not do.

use log::{Branch, BranchName, Head};
use serde_json::{Value, json};

use super::effects::Effects;
use super::{End, OPEN_TOLD};
use crate::cli::answer::command_line;
use crate::cli::failure::Failure;
use crate::cli::shell::{Shell, counted};
use crate::clock::Stopwatch;
use crate::effect::OpenEffect;
use crate::engine::{Engine, Failed};
use crate::flock::{Flock, Report};

/// Says which effects are open, and with which commands people answer those that wait for them.
pub(super) fn tell_open(
    engine: &Engine,
    effects: &Effects<'_>,
    flock: &Flock,
    branch: &Branch,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let open = engine.open_effects();
    if open.is_empty() || shell.json() {
        return Ok(());
    }
    shell.line(format_args!("{} effects are open:", open.len()))?;
    for open in open.iter().take(OPEN_TOLD) {
        let why = effects.waits(&open.action).unwrap_or(open.waits_for.as_str());
        shell
            .line(format_args!("  {} asked by {} waits for: {why}", open.effect, open.behavior))?;
        for command in &open.commands {
            let line = command_line(command, Some(&flock.folder), &branch.name);
            shell.line(format_args!("    {line}"))?;
        }
    }
    if open.len() > OPEN_TOLD {
        let store = flock.folder.display();
        shell.say(format_args!("all of them: starling effects --store {store}"));
    }
    Ok(())
}

/// Says how much of what a fork's parent was told was told to the fork.
pub(super) fn tell_fed((fed, without): (usize, usize), branch: &Branch, shell: &mut Shell<'_>) {
    let name = &branch.name;
    if fed > 0 {
        shell.say(format_args!("{name} was told {fed} recorded events, each at its place"));
    }
    if without > 0 {
        shell.say(format_args!("{without} recorded events had no place on {name}"));
    }
}

pub(super) fn tell(
    engine: &Engine,
    flock: &Flock,
    branch: &Branch,
    end: &End,
    (before, began): ((Head, u64), bool),
    watch: Stopwatch,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let tables: Vec<(String, Vec<Vec<Value>>)> =
        flock.report.iter().map(|report| (report.title.clone(), rows(engine, report))).collect();
    let (events, firings) = (engine.head().count() - before.0.count(), engine.taken() - before.1);
    if shell.json() {
        let report: Vec<Value> =
            tables.iter().map(|(title, rows)| json!({"title": title, "rows": rows})).collect();
        return shell.line(json!({
            "flock": flock.name, "branch": branch.name.as_str(), "head": engine.head().count(),
            "link": branch.tip.link.to_string(), "events": events, "firings": firings,
            "nodes": engine.graph().node_count(), "edges": engine.graph().edge_count(),
            "ended": end_word(end), "waiting": engine.waiting(), "report": report,
            "open": open_json(engine), "troubles": troubles_json(engine),
        }));
    }
    let quiet = !began && events == 0 && firings == 0;
    shell.line(format!(
        "{}@{}: {} ({} and {} in {:.1} s; {}, {})",
        branch.name,
        engine.head(),
        end_sentence(end, quiet, engine.waiting()),
        counted(events, "event"),
        counted(firings, "firing"),
        watch.elapsed().as_secs_f64(),
        counted(engine.graph().node_count() as u64, "node"),
        counted(engine.graph().edge_count() as u64, "edge"),
    ))?;
    for ((title, rows), report) in tables.iter().zip(&flock.report) {
        shell.line(title)?;
        for row in rows {
            let columns = report.columns.iter().map(|(_, property)| property).zip(row);
            let cells: Vec<String> =
                columns.map(|(name, value)| format!("{name} {value}")).collect();
            shell.line(format_args!("  {}", cells.join("  ")))?;
        }
    }
    for trouble in troubles(engine, flock, branch, end) {
        shell.line(trouble)?;
    }
    tell_next(flock, &branch.name, quiet, shell);
    Ok(())
}

/// What stands in the way of behaviors, a line each.
fn troubles(engine: &Engine, flock: &Flock, branch: &Branch, end: &End) -> Vec<String> {
    let mut lines = Vec::new();
    let (folder, branch) = (flock.folder.display(), &branch.name);
    let show = |at: u64| format!("starling show {branch}@{at} --store {folder}");
    for failed in engine.failures() {
        let Failed { behavior, times, last, error } = failed;
        let often = if times == 1 { String::new() } else { format!(" {times} times, at last") };
        let first = error.lines().next().unwrap_or_default();
        lines.push(format!("! {behavior} failed{often} at @{last}: {first}"));
        lines.push(format!("    {}", show(last.get())));
    }
    for (name, at, pattern) in engine.suspended() {
        lines.push(format!(
            "! {name} is suspended since @{at}: its pattern `{pattern}` cost too much; \
             {} and starling explain tell more",
            show(at)
        ));
    }
    for (budget, limit) in engine.standing_bounds() {
        if !matches!(end, End::Bound(reached) if reached.budget == budget) {
            lines
                .push(format!("! the budget {budget} = {limit} is used up; what it stopped waits"));
        }
    }
    for (path, error) in engine.rejected_files() {
        let first = error.lines().next().unwrap_or_default();
        lines.push(format!("! {path} is broken: {first}"));
    }
    for (name, next, last) in engine.catching_up() {
        lines.push(format!("  {name} is still catching up: at @{next} of @{last}"));
    }
    for undeclared in engine.undeclared() {
        lines.push(format!("  {undeclared}"));
    }
    lines
}

fn troubles_json(engine: &Engine) -> Value {
    let suspended = engine.suspended().into_iter();
    let suspended = suspended.map(
        |(name, at, pattern)| json!({"behavior": name.as_str(), "at": at, "pattern": pattern}),
    );
    let bounds = engine.standing_bounds().into_iter();
    let bounds = bounds.map(|(budget, limit)| json!({"budget": budget.as_str(), "limit": limit}));
    let rejected = engine.rejected_files().into_iter();
    let rejected = rejected.map(|(path, error)| json!({"path": path.as_str(), "error": error}));
    let catching = engine.catching_up().into_iter();
    let catching = catching
        .map(|(name, next, last)| json!({"behavior": name.as_str(), "next": next, "last": last}));
    let failed = engine.failures().into_iter().map(|failed| failed.to_json());
    let undeclared = engine.undeclared().into_iter().map(|undeclared| undeclared.to_json());
    json!({
        "failed": failed.collect::<Vec<_>>(), "suspended": suspended.collect::<Vec<_>>(), "bounds": bounds.collect::<Vec<_>>(),
        "rejected": rejected.collect::<Vec<_>>(), "catching_up": catching.collect::<Vec<_>>(),
        "undeclared": undeclared.collect::<Vec<_>>(),
    })
}

fn open_json(engine: &Engine) -> Vec<Value> {
    engine.open_effects().iter().map(OpenEffect::to_json).collect()
}

fn rows(engine: &Engine, report: &Report) -> Vec<Vec<Value>> {
    let variables = report.pattern.variables();
    let place = |name: &str| variables.iter().position(|v| v.name.as_deref() == Some(name));
    let value = |row: &projection::Row, (variable, property): &(String, String)| {
        let log::Bound::Element(id) = row.bound.get(place(variable)?)? else { return None };
        Some(engine.graph().element(id)?.property(property)?.to_json())
    };
    let all = engine.rows(&report.pattern).into_iter();
    let columns =
        |row| report.columns.iter().map(|c| value(&row, c).unwrap_or(Value::Null)).collect();
    all.map(columns).collect()
}

fn end_word(end: &End) -> &'static str {
    match end {
        End::Rest => "rest",
        End::Until => "until",
        End::Bound(_) => "bound",
        End::Wall(_) => "wall",
        End::Interrupted => "interrupted",
    }
}

fn end_sentence(end: &End, quiet: bool, waiting: usize) -> String {
    match end {
        End::Rest if quiet => "was at rest already, nothing is due".to_owned(),
        End::Rest if waiting > 0 => format!("at rest; {waiting} wait for later events"),
        End::Rest => "at rest, nothing is due".to_owned(),
        End::Until if quiet => "had come to its end already".to_owned(),
        End::Until => "came to its end".to_owned(),
        End::Bound(reached) => format!("stopped: {reached}"),
        End::Wall(seconds) => {
            format!("stopped: budget.wall = {seconds} s is over; run again to go on")
        }
        End::Interrupted => "interrupted; run again to go on".to_owned(),
    }
}

fn tell_next(flock: &Flock, branch: &BranchName, quiet: bool, shell: &mut Shell<'_>) {
    let folder = flock.folder.display();
    let store = shell.named_store().unwrap_or_else(|| flock.folder.clone());
    if quiet && *branch == BranchName::main() {
        shell.say(format_args!(
            "it can go on with: an event (starling append KIND --store {folder}), a new behavior file \
             in {folder}/behaviors, or from the start again (starling run {folder} --fresh)"
        ));
        return;
    }
    shell.say("next:");
    for (command, what) in [
        ("log -n 8", "what happened last"),
        ("graph", "the world it left"),
        ("replay --refire", "every firing again, byte for byte"),
    ] {
        let line = command_line(command, Some(&store), branch);
        shell.say(format_args!("  {line:<48} {what}"));
    }
}
