//! `flock.toml`: how a flock runs. An unknown field is an error; what comes in a later version is
//! refused by name.
#![allow(missing_docs, reason = "the fields of errors are facts named by the message")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use behaviors::did_you_mean;
use log::{Change, Draft, EventId, NameError, Time};
use projection::Pattern;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Flock, Report, policy};
use crate::engine::Schedule;
use crate::kinds::{check_outside_change, check_outside_kind};

/// Why a flock cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlockError {
    #[error("{path} is not there; a flock is a folder with a flock.toml: `starling new flock NAME` makes \
             one", path = path.display())]
    NoFlock { path: PathBuf },
    #[error("{path} cannot be read: {source}", path = path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: {what}", path = path.display())]
    File { path: PathBuf, what: String },
    #[error("two behaviors are called `{name}`: {first} and {second}; rename one of them")]
    Twins { name: String, first: String, second: String },
    #[error(transparent)]
    Tool(#[from] effect::tools::ToolError),
    #[error("the tools of the flock cannot be confined: {0}")]
    Sandbox(Box<effect::EffectError>),
    #[error("--set {text}: {what}")]
    Set { text: String, what: String },
}

/// What the command line says instead of the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--seed N`
    pub seed: Option<i64>,
    /// `--set NAME=VALUE`, where a value that is no JSON is a text.
    pub settings: Vec<String>,
    /// `--until PATTERN`
    pub until: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlockFile {
    name: Option<String>,
    #[serde(default)]
    run: Run,
    #[serde(default)]
    settings: toml::Table,
    #[serde(default)]
    budget: Budget,
    #[serde(default)]
    report: Vec<ReportLine>,
    #[serde(default)]
    start: Vec<StartEvent>,
    grants: Option<policy::Grants>,
    #[serde(default)]
    guards: Vec<String>,
    workspace: Option<PathBuf>,
    #[serde(default, rename = "use")]
    uses: Vec<PathBuf>,
    #[serde(default)]
    lint: policy::Lint,
    #[serde(default)]
    retry: toml::Table,
    answers: Option<policy::Answers>,
    #[serde(default)]
    models: BTreeMap<String, toml::Table>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    schedule: Option<String>,
    seed: Option<i64>,
    start: Option<StartTime>,
    until: Option<String>,
}

/// RFC 3339, as a string or as TOML's own date.
#[derive(Deserialize)]
#[serde(untagged)]
enum StartTime {
    Text(String),
    Date(toml::value::Datetime),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    events: Option<u64>,
    firings: Option<u64>,
    depth: Option<u64>,
    effects: Option<u64>,
    tokens: Option<u64>,
    cost: Option<f64>,
    wall: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportLine {
    title: String,
    #[serde(rename = "match")]
    pattern: String,
    show: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartEvent {
    kind: String,
    actor: Option<String>,
    key: Option<String>,
    #[serde(default)]
    payload: toml::Table,
    #[serde(default)]
    changes: Vec<toml::Table>,
}

const TABLES: [&str; 14] = [
    "name",
    "run",
    "settings",
    "budget",
    "report",
    "start",
    "grants",
    "guards",
    "workspace",
    "use",
    "lint",
    "retry",
    "answers",
    "models",
];
const LATER: [&str; 1] = ["mcp"];

/// Reads `flock.toml`; the behavior files are left out.
pub(super) fn read(folder: &Path, overrides: &Overrides) -> Result<Flock, FlockError> {
    let path = folder.join("flock.toml");
    if !path.is_file() {
        return Err(FlockError::NoFlock { path });
    }
    let text = fs::read_to_string(&path);
    let text = text.map_err(|source| FlockError::Read { path: path.clone(), source })?;
    let bad = |what: String| FlockError::File { path: path.clone(), what };
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| bad(error.to_string()))?;
    refuse_unknown(&table).map_err(bad)?;
    let file: FlockFile = toml::from_str(&text).map_err(|error| bad(error.to_string()))?;
    let flock = build(folder, file, overrides);
    flock.map_err(|problem| match problem {
        Problem::File(what) => bad(what),
        Problem::Whole(error) => error,
    })
}

/// Either something in the file, or an error that names its own place.
enum Problem {
    File(String),
    Whole(FlockError),
}

impl From<String> for Problem {
    fn from(what: String) -> Self {
        Problem::File(what)
    }
}

fn refuse_unknown(table: &toml::Table) -> Result<(), String> {
    for name in table.keys().map(String::as_str) {
        if LATER.contains(&name) {
            return Err(format!("[{name}] comes in a later version; leave it out"));
        }
        if !TABLES.contains(&name) {
            let hint = did_you_mean(name, TABLES);
            return Err(format!("there is no [{name}]{hint}; there are {}", TABLES.join(", ")));
        }
    }
    Ok(())
}

fn build(folder: &Path, file: FlockFile, overrides: &Overrides) -> Result<Flock, Problem> {
    let folder_name = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let folder_name = folder_name.file_name().map(|name| name.to_string_lossy().into_owned());
    let schedule = file.run.schedule.as_deref().unwrap_or("fifo");
    let named = Schedule::from_name(schedule).ok_or_else(|| {
        let hint = did_you_mean(schedule, ["fifo", "rounds", "random"]);
        format!("run.schedule: `{schedule}` is none of fifo, rounds, random{hint}")
    })?;
    let mut settings = json_table(&file.settings, "settings")?;
    let mut said = Map::new();
    for text in &overrides.settings {
        let (name, value) = read_set(&settings, text).map_err(Problem::Whole)?;
        said.insert(name, value);
    }
    settings.extend(said.clone());
    let until = overrides.until.clone().or(file.run.until);
    if let Some(pattern) = &until {
        Pattern::parse(pattern).map_err(|error| format!("run.until: {error}"))?;
    }
    let answers = file.answers.as_ref().map(|answers| answers.read(folder)).transpose()?;
    let workspace = file.workspace.as_ref().map(|workspace| folder.join(workspace));
    let policy = policy::Said {
        grants: file.grants,
        guards: file.guards,
        workspace: file.workspace,
        retry: file.retry,
        lint: file.lint,
        models: file.models,
    };
    let models = policy::models(&policy.models, folder)?;
    let policy = policy.payload()?;
    let events = file.start.iter().enumerate().map(|(n, event)| start_event(n, event));
    Ok(Flock {
        folder: folder.to_path_buf(),
        name: file.name.or(folder_name).unwrap_or_else(|| "flock".to_owned()),
        schedule: named,
        seed: overrides.seed.or(file.run.seed).unwrap_or(0),
        start: start_time(file.run.start)?,
        until,
        settings,
        set: said,
        unset: Vec::new(),
        uses: file.uses,
        wall_seconds: file.budget.wall.as_deref().map(seconds).transpose()?,
        budget: budget(&file.budget)?,
        policy,
        workspace,
        answers,
        models,
        events: events.collect::<Result<_, String>>()?,
        report: file.report.into_iter().map(report).collect::<Result<_, String>>()?,
        sources: Vec::new(),
        acts: true,
        sandbox: effect::Sandbox::Required,
    })
}

/// The flock of a branch whose folder is gone.
pub(super) fn recorded(folder: &Path, started: &Map<String, Value>) -> Flock {
    let text = |field: &str| started.get(field).and_then(Value::as_str).unwrap_or_default();
    let map = |field: &str| started.get(field).and_then(Value::as_object).cloned();
    Flock {
        folder: folder.to_path_buf(),
        name: text("name").to_owned(),
        schedule: Schedule::from_name(text("schedule")).unwrap_or_default(),
        seed: started.get("seed").and_then(Value::as_i64).unwrap_or(0),
        start: Time::EPOCH,
        until: None,
        settings: map("settings").unwrap_or_default(),
        set: Map::new(),
        unset: Vec::new(),
        uses: Vec::new(),
        wall_seconds: None,
        budget: map("budget").unwrap_or_default(),
        policy: Map::new(),
        workspace: None,
        answers: None,
        models: BTreeMap::new(),
        events: Vec::new(),
        report: Vec::new(),
        sources: Vec::new(),
        acts: false,
        sandbox: effect::Sandbox::Required,
    }
}

fn report(line: ReportLine) -> Result<Report, String> {
    let ReportLine { title, pattern, show } = line;
    let parsed = Pattern::parse(&pattern).map_err(|error| format!("report `{title}`: {error}"))?;
    let mut columns = Vec::new();
    for column in show {
        let parts = column.split_once('.');
        let known = |variable: &str| {
            parsed.variables().iter().any(|known| known.name.as_deref() == Some(variable))
        };
        let Some((variable, property)) = parts.filter(|(variable, _)| known(variable)) else {
            return Err(format!(
                "report `{title}`: `{column}` is no VARIABLE.PROPERTY of the match"
            ));
        };
        columns.push((variable.to_owned(), property.to_owned()));
    }
    Ok(Report { title, pattern: parsed, columns })
}

/// Reads one `--set NAME=VALUE`.
pub(crate) fn read_set(
    settings: &Map<String, Value>,
    text: &str,
) -> Result<(String, Value), FlockError> {
    let bad = |what: String| FlockError::Set { text: text.to_owned(), what };
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| bad("write NAME=VALUE, such as --set margin=0.2".to_owned()))?;
    if !settings.contains_key(name) {
        let hint = did_you_mean(name, settings.keys().map(String::as_str));
        return Err(bad(format!("the flock has no setting `{name}`{hint}")));
    }
    let wrapped = log::parse_object(&format!("{{\"v\":{value}}}"));
    let parsed = wrapped.ok().and_then(|mut map| map.remove("v"));
    Ok((name.to_owned(), parsed.unwrap_or_else(|| json!(value))))
}

fn start_time(time: Option<StartTime>) -> Result<Time, String> {
    let text = match time {
        None => return Ok(Time::EPOCH),
        Some(StartTime::Text(text)) => text,
        Some(StartTime::Date(date)) => date.to_string(),
    };
    text.parse().map_err(|error: NameError| format!("run.start: {error}"))
}

fn budget(budget: &Budget) -> Result<Map<String, Value>, String> {
    let bounds = [
        ("events", budget.events),
        ("firings", budget.firings),
        ("depth", budget.depth),
        ("effects", budget.effects),
        ("tokens", budget.tokens),
    ];
    let said =
        bounds.into_iter().filter_map(|(name, bound)| Some((name.to_owned(), json!(bound?))));
    let mut said: Map<String, Value> = said.collect();
    if let Some(cost) = budget.cost {
        if !(cost.is_finite() && cost >= 0.0) {
            return Err(format!("budget.cost: {cost} is no amount from 0"));
        }
        said.insert("cost".to_owned(), json!(cost));
    }
    Ok(said)
}

/// Reads a duration such as `90s`, `30m` or `2h`.
fn seconds(text: &str) -> Result<u64, String> {
    let bad = || format!("budget.wall: `{text}` is no duration; write 90s, 30m or 2h");
    let number = text.trim_end_matches(['s', 'm', 'h']);
    let unit = match &text[number.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    number.checked_mul(unit).ok_or_else(bad)
}

fn start_event(number: usize, event: &StartEvent) -> Result<Draft, String> {
    let at = format!("start[{number}]");
    let kind = check_outside_kind(&event.kind).map_err(|e| format!("{at}.kind: {e}"))?;
    let actor = event.actor.as_deref().unwrap_or("user:flock");
    let mut draft = Draft::new(EventId::ZERO, kind, actor);
    draft.key = event.key.as_deref().map(Into::into);
    draft.payload = json_table(&event.payload, &format!("{at}.payload"))?;
    for (n, change) in event.changes.iter().enumerate() {
        let place = format!("{at}.changes[{n}]");
        let json = Value::Object(json_table(change, &place)?);
        let change = Change::from_json(&json, &place).map_err(|error| error.to_string())?;
        check_outside_change(&change).map_err(|what| format!("{place}: {what}"))?;
        draft.changes.push(change);
    }
    Ok(draft)
}

fn json_table(table: &toml::Table, at: &str) -> Result<Map<String, Value>, String> {
    let entry = |(name, value): (&String, &toml::Value)| {
        Ok((name.clone(), json_value(value, &format!("{at}.{name}"))?))
    };
    table.iter().map(entry).collect()
}

fn json_value(value: &toml::Value, at: &str) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => json!(text),
        toml::Value::Integer(number) => json!(number),
        toml::Value::Float(number) if number.is_finite() => json!(number),
        toml::Value::Float(number) => {
            return Err(format!("{at}: {number} cannot be stored; only finite numbers can"));
        }
        toml::Value::Boolean(truth) => json!(truth),
        toml::Value::Datetime(date) => json!(date.to_string()),
        toml::Value::Array(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(n, item)| json_value(item, &format!("{at}[{n}]")));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        toml::Value::Table(table) => Value::Object(json_table(table, at)?),
    })
}
