//! An effect on files of the workspace, done by this process on a thread that may wait.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Cancel;
use crate::answer::{Answer, Fingerprint, Seen};
use crate::beneath::Beneath;
use crate::call::Call;
use crate::class::Class;
use crate::error::{Blame, EffectError};
use crate::executor::{Executor, Limits, Pending};
use crate::schema::Schema;

/// What an effect gave, and what it changed.
pub(super) type Done = Result<(Value, Option<Fingerprint>), EffectError>;

/// One attempt, with the workspace open.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) action: String,
    pub(super) args: Value,
    pub(super) beneath: Beneath,
    pub(super) cancel: Cancel,
    pub(super) limits: Limits,
}

impl Job {
    /// An argument that is a text; the schema saw to it.
    pub(super) fn text(&self, name: &str) -> &str {
        self.args.get(name).and_then(Value::as_str).unwrap_or("")
    }

    /// An argument that is a number of things.
    pub(super) fn count(&self, name: &str) -> usize {
        let number = self.args.get(name).and_then(Value::as_u64).unwrap_or(0);
        usize::try_from(number).unwrap_or(usize::MAX)
    }

    /// An argument that is true or false.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.args.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// What an effect is made of.
pub(super) struct Parts {
    pub(super) name: &'static str,
    pub(super) class: Class,
    pub(super) schema: Value,
    /// Adds to arguments what follows from them alone.
    pub(super) complete: fn(Value) -> Result<Value, EffectError>,
    pub(super) act: fn(&Job) -> Done,
    pub(super) look: fn(&Job) -> Seen,
}

/// An effect on the workspace.
#[derive(Debug)]
pub(crate) struct Local {
    name: &'static str,
    class: Class,
    schema: Schema,
    complete: fn(Value) -> Result<Value, EffectError>,
    act: fn(&Job) -> Done,
    look: fn(&Job) -> Seen,
    flock: PathBuf,
}

impl Local {
    pub(super) fn new(flock: &Path, parts: Parts) -> Self {
        let Parts { name, class, schema, complete, act, look } = parts;
        let schema = Schema::new(schema).expect("a built-in schema is one");
        Local { name, class, schema, complete, act, look, flock: flock.to_owned() }
    }

    fn job(&self, call: &Call) -> Result<Job, EffectError> {
        let workspace = call.workspace.as_ref().ok_or_else(no_workspace)?;
        Ok(Job {
            action: call.action.clone(),
            args: call.args.clone(),
            beneath: Beneath::open(workspace, &self.flock)?,
            cancel: call.cancel.clone(),
            limits: self.limits(),
        })
    }
}

/// For effects that change nothing: a look finds nothing that took effect.
pub(super) fn nothing_to_look_for(_: &Job) -> Seen {
    Seen::Absent
}

pub(super) fn no_workspace() -> EffectError {
    EffectError::new(
        "workspace.none",
        Blame::Caller,
        "the flock declares no workspace",
        "write `workspace = \"FOLDER\"` in flock.toml",
    )
}

impl Executor for Local {
    fn class(&self) -> Class {
        self.class
    }

    fn limits(&self) -> Limits {
        Limits::default()
    }

    fn check(&self, args: &Value) -> Result<Value, EffectError> {
        (self.complete)(self.schema.arguments(self.name, args)?)
    }

    fn run<'a>(&'a self, call: &'a Call) -> Pending<'a, Answer> {
        Box::pin(async move {
            if call.cancel.is_cancelled() {
                return Answer::Cancelled;
            }
            let job = match self.job(call) {
                Ok(job) => job,
                Err(error) => return Answer::Failed(error),
            };
            let act = self.act;
            let cancel = job.cancel.clone();
            let thread = tokio::task::spawn_blocking(move || act(&job));
            let bound = tokio::time::timeout(call.timeout, thread);
            match bound.await {
                Ok(Ok(Ok((result, fingerprint)))) => Answer::Succeeded { result, fingerprint },
                Ok(Ok(Err(error))) if error.kind == CANCELLED => Answer::Cancelled,
                Ok(Ok(Err(error))) => Answer::Failed(error),
                Ok(Err(_)) => {
                    self.broken("it broke off inside", "report it as a fault of Starling")
                }
                Err(_) => {
                    cancel.cancel();
                    self.broken("the disk did not answer in time", "see the disk")
                }
            }
        })
    }

    fn look<'a>(&'a self, call: &'a Call, _intent: &'a Value) -> Pending<'a, Seen> {
        Box::pin(async move {
            let job = match self.job(call) {
                Ok(job) => job,
                Err(error) => return Seen::Unreachable(error),
            };
            let look = self.look;
            let seen = tokio::task::spawn_blocking(move || look(&job)).await;
            seen.unwrap_or_else(|error| {
                let what = format!("the look broke off: {error}");
                Seen::Unreachable(EffectError::new(
                    "look.broken",
                    Blame::Tool,
                    what,
                    "look by hand",
                ))
            })
        })
    }
}

/// The kind of an error that says that a cancellation was seen in time.
pub(super) const CANCELLED: &str = "cancelled";

/// Ends a job that goes on for long, at a place where it has changed nothing.
pub(super) fn stop_if_cancelled(job: &Job) -> Result<(), EffectError> {
    if job.cancel.is_cancelled() {
        return Err(EffectError::new(CANCELLED, Blame::Caller, "it was cancelled", "ask again"));
    }
    Ok(())
}

impl Local {
    fn broken(&self, what: &str, action: &str) -> Answer {
        let error = EffectError::new("local.broken", Blame::Machine, what, action);
        match self.class {
            Class::ReadOnly => Answer::Failed(error.retryable()),
            _ => Answer::Unknown(error),
        }
    }
}
