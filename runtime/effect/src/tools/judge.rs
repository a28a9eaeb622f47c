//! What an end of a command means for the attempt: done, settled as not done, or not known.
//!
//! Exit code 0 is "done" with JSON on the standard output. 75 is "it may have been done". Any other
//! code is "settled: it failed", with `{"error": {…}}` on the standard output if the tool can say
//! more. Whatever else happens to a command that may change something leaves it unknown.

use serde::Deserialize;
use serde_json::Value;

use super::file::ToolFile;
use crate::answer::{Answer, RESULT_DEPTH_MAX, Seen, storable};
use crate::class::Class;
use crate::error::{Blame, EffectError};
use crate::process::{Capture, Done, How};

/// The exit code by which a tool says that it does not know either.
const CANNOT_TELL: i32 = 75;

/// How much of its standard error goes into the message of an error.
const SAID_CHARS_MAX: usize = 2000;

/// The answer to an attempt whose command has ended.
pub(super) fn answer(file: &ToolFile, done: &Done) -> Answer {
    match &done.how {
        How::Exit(0) => match result(file, &done.out) {
            Ok(result) => Answer::Succeeded { result, fingerprint: None },
            Err(error) => doubtful(file.class, error),
        },
        How::Exit(CANNOT_TELL) => doubtful(file.class, told(done, CANNOT_TELL)),
        How::Exit(1) if sandbox_refused(done) => Answer::Failed(not_started(&done.err.text())),
        How::Exit(code) => Answer::Failed(told(done, *code)),
        how => cut_short(file.class, how, &done.err),
    }
}

/// The answer to an attempt that did not end by itself.
pub(crate) fn cut_short(class: Class, how: &How, err: &Capture) -> Answer {
    let error = |kind: &str, what: String, action: &str| {
        EffectError::new(kind, Blame::Tool, with_said(what, err), action)
    };
    match how {
        How::NotStarted(why) => Answer::Failed(not_started(why)),
        How::Cancelled if class == Class::ReadOnly => Answer::Cancelled,
        How::Cancelled => {
            let what = "it was ended by a cancellation after it had begun".to_owned();
            Answer::Unknown(error("process.cancelled", what, "look what it has done"))
        }
        How::TimedOut => {
            let what = "its time was over, and it was ended".to_owned();
            let error = error("process.timeout", what, "give it more time, or less to do");
            doubtful(class, error.retryable())
        }
        How::Signal(signal) => {
            let what = format!("it was ended by signal {signal}");
            doubtful(class, error("process.signal", what, "see what ended it").retryable())
        }
        How::Lost | How::Exit(_) => {
            let what = "it did not end in its time, and may still be running".to_owned();
            Answer::Unknown(error("process.lost", what, "look for the process and end it"))
        }
    }
}

/// An error of a command that may have done its work before it went wrong.
fn doubtful(class: Class, error: EffectError) -> Answer {
    if class == Class::ReadOnly { Answer::Failed(error) } else { Answer::Unknown(error) }
}

pub(crate) fn not_started(why: &str) -> EffectError {
    EffectError::new(
        "process.start",
        Blame::Machine,
        why.trim().to_owned(),
        "install the program, or correct `command` in the tool's file",
    )
}

/// The sandbox says so itself when the program inside cannot be started.
fn sandbox_refused(done: &Done) -> bool {
    done.out.text().is_empty() && done.err.text().starts_with("bwrap: ")
}

/// Its standard output as the JSON that the file promises.
fn result(file: &ToolFile, out: &Capture) -> Result<Value, EffectError> {
    let wrong =
        |kind: &str, what: String, action: &str| EffectError::new(kind, Blame::Tool, what, action);
    let fits = out.total() <= file.limits.output_bytes as u64;
    let Some(bytes) = out.whole().filter(|_| fits) else {
        let what = format!(
            "its output has {} bytes, and may have {}",
            out.total(),
            file.limits.output_bytes
        );
        let error = wrong("output.too_large", what, "raise output_bytes in the tool's file");
        return Err(error.with_output(out.text()));
    };
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        let text = out.text();
        let shown: String = text.chars().take(SAID_CHARS_MAX).collect();
        let what = format!("its output is no JSON: {error}\n{shown}");
        let error = wrong("output.json", what, "let it print one JSON value and nothing else");
        if shown.len() < text.len() { error.with_output(text) } else { error }
    })?;
    storable(&value, RESULT_DEPTH_MAX).map_err(|what| {
        let action = "let it print what can be kept: 64-bit numbers, floats, flatter values";
        wrong("output.json", format!("its output {what}"), action).with_output(out.text())
    })?;
    if let Some(schema) = &file.result {
        schema.check(&value).map_err(|what| {
            let action = "mend the tool, or `result` in its file";
            wrong("result.schema", format!("its result does not fit: {what}"), action)
                .with_output(out.text())
        })?;
    }
    Ok(value)
}

/// What a tool may say about its own failure.
#[derive(Deserialize)]
struct Told {
    error: ToldError,
}

#[derive(Deserialize)]
struct ToldError {
    kind: Option<String>,
    message: String,
    #[serde(default)]
    retryable: bool,
    blame: Option<Blame>,
    suggested_action: Option<String>,
}

/// The failure as the tool tells it, or as its exit code and its standard error do.
fn told(done: &Done, code: i32) -> EffectError {
    let said: Option<Told> = done.out.whole().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(Told { error }) = said else {
        let first = done.err.text().lines().next().unwrap_or("it says nothing").to_owned();
        let what = with_said(format!("exit code {code}: {first}"), &done.err);
        let error = EffectError::new("process.exit", Blame::Tool, what, "see what it said");
        let both = [done.err.text(), done.out.text()].concat();
        return if both.len() > SAID_CHARS_MAX { error.with_output(both) } else { error };
    };
    let kind = error.kind.unwrap_or_else(|| "tool.failed".to_owned());
    let action = error.suggested_action.as_deref().unwrap_or("see what the tool says");
    let made = EffectError::new(&kind, error.blame.unwrap_or(Blame::Tool), error.message, action);
    if error.retryable { made.retryable() } else { made }
}

/// The end of what it said is where it says why it stopped.
fn with_said(what: String, err: &Capture) -> String {
    let text = err.text();
    let text = text.trim();
    if text.is_empty() {
        return what;
    }
    let skip = text.chars().count().saturating_sub(SAID_CHARS_MAX);
    let said: String = text.chars().skip(skip).collect();
    format!("{what}\n{said}")
}

/// What a reconcile command prints.
#[derive(Deserialize)]
#[serde(tag = "status", rename_all = "snake_case", deny_unknown_fields)]
enum Status {
    Found {
        #[serde(default)]
        result: Value,
    },
    Absent,
    Pending,
    Conflict {
        message: String,
    },
}

/// What a look found.
pub(super) fn seen(file: &ToolFile, done: &Done) -> Seen {
    let unreachable = |what: String| {
        let action = "see whether what it asks can be reached";
        Seen::Unreachable(
            EffectError::new("reconcile.failed", Blame::Provider, what, action).retryable(),
        )
    };
    if done.how != How::Exit(0) {
        return unreachable(with_said(format!("the look ended with {:?}", done.how), &done.err));
    }
    let status = done.out.whole().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    match status {
        Some(Status::Absent) => Seen::Absent,
        Some(Status::Pending) => Seen::Pending,
        Some(Status::Conflict { message }) => Seen::Conflict(EffectError::new(
            "reconcile.conflict",
            Blame::Provider,
            message,
            "a person decides which of the two stands",
        )),
        Some(Status::Found { result }) => match &file.result {
            Some(schema) => match schema.check(&result) {
                Ok(()) => Seen::Found(result),
                Err(what) => unreachable(format!("what was found does not fit `result`: {what}")),
            },
            None => Seen::Found(result),
        },
        None => unreachable(format!("the look prints no status: {}", done.out.text())),
    }
}
