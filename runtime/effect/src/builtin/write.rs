//! `fs.write`: a file of the workspace from a base to a result, or not at all.
//!
//! `base` is the hash of what the writer saw, `null` if it saw no file. Whoever wrote meanwhile is
//! not overwritten: the write fails and names both hashes.

use std::path::Path;

use serde_json::{Value, json};

use super::local::{Done, Job, Local, Parts};
use crate::answer::{Fingerprint, Seen};
use crate::beneath::{Change, hash, replace};
use crate::class::Class;
use crate::error::{Blame, EffectError};

pub(super) fn effect(flock: &Path) -> Local {
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["path", "text", "base"],
        "properties": {
            "path": {"type": "string"},
            "text": {"type": "string"},
            "base": {"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"},
            "result": {"type": "string"},
        },
    });
    let parts =
        Parts { name: "fs.write", class: Class::CompareAndSet, schema, complete, act, look };
    Local::new(flock, parts)
}

/// The hash of the result follows from the text: it is part of what is recorded before anything
/// is written, so that a look can tell the result from the base.
fn complete(mut args: Value) -> Result<Value, EffectError> {
    let result = hash(args["text"].as_str().unwrap_or("").as_bytes());
    if args.get("result").is_some_and(|said| *said != result.as_str()) {
        return Err(EffectError::new(
            "arguments.result",
            Blame::Caller,
            "`result` is not the hash of `text`",
            "leave `result` out",
        ));
    }
    args["result"] = json!(result);
    Ok(args)
}

fn fingerprint(job: &Job) -> Fingerprint {
    let text = |name: &str| job.args.get(name).and_then(Value::as_str).map(str::to_owned);
    Fingerprint { what: job.text("path").to_owned(), base: text("base"), result: text("result") }
}

fn act(job: &Job) -> Done {
    let Fingerprint { what: path, base, result } = fingerprint(job);
    let content = job.text("text").as_bytes().to_vec();
    let bytes = content.len();
    let change = Change { path: path.clone(), base, content: Some(content) };
    replace(&job.beneath, &change, &job.action)?;
    Ok((json!({"path": path, "hash": result, "bytes": bytes}), Some(fingerprint(job))))
}

fn look(job: &Job) -> Seen {
    let Fingerprint { what: path, base, result } = fingerprint(job);
    let now = match job.beneath.read(&path) {
        Ok(now) => now.map(|bytes| hash(&bytes)),
        Err(error) => return Seen::Unreachable(error),
    };
    if now == result {
        return Seen::Found(json!({"path": path, "hash": result, "bytes": job.text("text").len()}));
    }
    if now == base {
        return Seen::Absent;
    }
    let say = |hash: Option<String>| hash.unwrap_or_else(|| "no file".to_owned());
    Seen::Conflict(EffectError::new(
        "write.conflict",
        Blame::Caller,
        format!(
            "`{path}` is neither at its base {} nor at its result {}: found {}",
            say(base),
            say(result),
            say(now)
        ),
        "look at the file and decide whether it stands",
    ))
}
