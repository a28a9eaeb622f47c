//! The file that an author works on: its flock, what it declares, and what came of trying it.

use std::path::{Path, PathBuf};

use behaviors::Loaded;
use effect::{Answer, Call, Cancel};
use log::Event;
use serde_json::{Map, Value, json};

use super::failure::Failure;
use crate::effect::{Ending, cancelled};
use crate::engine::trial::Asked;
use crate::flock::{Flock, Overrides, Source};

/// A behavior file and the flock that it belongs to.
pub(super) struct Subject {
    pub(super) flock: Flock,
    pub(super) declared: Vec<Loaded>,
}

/// The folder of the flock that holds a path.
pub(super) fn flock_of(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let found = path.ancestors().find(|folder| folder.join("flock.toml").is_file());
    found.map(Path::to_owned)
}

impl Subject {
    /// Reads a behavior file of a flock.
    pub(super) fn read(file: &Path) -> Result<Subject, Failure> {
        let missing = || Failure::NotFound(format!("there is no file {}", file.display()));
        let whole = file.canonicalize().map_err(|_| missing())?;
        let folder = flock_of(file).ok_or_else(|| {
            Failure::Usage(format!(
                "{} belongs to no flock: no folder above it has a flock.toml; `starling new flock NAME` \
                 makes one",
                file.display()
            ))
        })?;
        let path = whole.strip_prefix(&folder).unwrap_or(&whole).display().to_string();
        let flock = Flock::read(&folder, &Overrides::default())?;
        let source = flock.sources.iter().find(|source| source.path == path).ok_or_else(|| {
            Failure::Usage(format!(
                "{path} is no behavior file: those stand in `behaviors` and end in .star or .md, or can \
                 be run"
            ))
        })?;
        let declared = declared(source)?;
        Ok(Subject { flock, declared })
    }

    /// Runs the executable of this file, as a run would; its author asked for that.
    pub(super) fn run_program(&self, asked: &Asked) -> Result<Ending, Failure> {
        let executors = self.flock.executors()?;
        let Some(executor) = executors.get(&asked.effect) else {
            let what = format!("nothing here does {}", asked.effect);
            return Err(Failure::Failed(what));
        };
        let call = Call {
            action: asked.id.to_string(),
            attempt: 1,
            effect: asked.effect.clone(),
            args: asked.args.clone(),
            idempotency_key: String::new(),
            timeout: executor.limits().timeout,
            workspace: None,
            cancel: Cancel::new(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let answer = runtime?.block_on(executor.run(&call));
        Ok(match answer {
            Answer::Succeeded { result, .. } => Ending::succeeded(result),
            Answer::Failed(error) | Answer::Unknown(error) => Ending::with("failed", error),
            Answer::Cancelled => cancelled("it was ended"),
        })
    }
}

/// What a file declares, or why it cannot be used.
pub(super) fn declared(source: &Source) -> Result<Vec<Loaded>, Failure> {
    match &source.declared {
        Ok(declared) if declared.is_empty() => {
            Err(Failure::Failed(format!("{}: all of it is switched off", source.path)))
        }
        Ok(declared) => Ok(declared.clone()),
        Err(error) => Err(Failure::Failed(error.clone())),
    }
}

/// An event of a trial as authors write proposals: `{"emit" | "request", "payload", "changes"}`;
/// none for what is no proposal.
pub(super) fn proposal(event: &Event) -> Option<Value> {
    let payload = event.payload().to_json();
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
    event.author()?;
    match event.kind() {
        "behavior.failed" | "behavior.conflicted" => return None,
        "effect.requested" => {
            put("request", payload.get("effect").cloned().unwrap_or_default());
            put("args", payload.get("args").cloned().unwrap_or_default());
        }
        "effect.judged" => {
            let allows = payload.get("verdict") == Some(&json!("allow"));
            let reason = payload.get("reason").cloned().unwrap_or_default();
            drop(if allows { put("allow", json!(true)) } else { put("deny", reason) });
        }
        "effect.rewritten" => {
            put("rewrite", payload.get("args").cloned().unwrap_or_default());
        }
        kind => {
            put("emit", json!(kind));
            put("payload", Value::Object(payload));
            let changes = event.changes().iter().map(|change| change.to_change().to_json());
            let changes: Vec<Value> = changes.collect();
            if !changes.is_empty() {
                put("changes", Value::Array(changes));
            }
        }
    }
    if let Some(key) = event.key() {
        put("key", json!(key));
    }
    Some(Value::Object(map))
}

/// What a failed firing says, if the event is one.
pub(super) fn failure(event: &Event) -> Option<String> {
    if event.kind() != "behavior.failed" {
        return None;
    }
    let payload = Value::Object(event.payload().to_json());
    let text = |name: &str| payload[name].as_str().unwrap_or_default().to_owned();
    let line = payload["line"].as_u64().map_or(String::new(), |line| format!(":{line}"));
    let file = text("file");
    let place = if file.is_empty() { String::new() } else { format!("{file}{line}: ") };
    let source = text("source");
    let source = if source.is_empty() { String::new() } else { format!("\n    | {source}") };
    Some(format!("{place}{}{source}", text("error")))
}

/// A proposal in lines: what it is, and below it each change.
pub(super) fn lines(proposal: &Value) -> Vec<String> {
    let text = |name: &str| proposal[name].as_str().unwrap_or_default().to_owned();
    let key = proposal.get("key").map_or(String::new(), |key| format!(" key {key}"));
    let first = match proposal.as_object().and_then(|map| map.keys().find(|k| *k == "emit")) {
        Some(_) => format!("emit {} {}{key}", text("emit"), proposal["payload"]),
        None if proposal.get("request").is_some() => {
            let args: String = proposal["args"].to_string().chars().take(300).collect();
            format!("request {} {args}{key}", text("request"))
        }
        None => proposal.to_string(),
    };
    let changes = proposal["changes"].as_array().into_iter().flatten();
    std::iter::once(first).chain(changes.map(|change| format!("  {change}"))).collect()
}
