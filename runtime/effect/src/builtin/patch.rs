//! `apply_patch`: a unified diff over files whose hashes are given, all of them or none.
//!
//! Every new content is known before the first file is touched. If a file cannot be written those
//! before it are put back; only a kill in between leaves some changed and some not, and a look
//! then says which.

use std::collections::BTreeSet;
use std::path::Path;

use diffy::patch_set::{FileOperation, FilePatch, ParseOptions, PatchSet};
use serde_json::{Map, Value, json};

use super::local::{Done, Job, Local, Parts};
use crate::answer::{Fingerprint, Seen};
use crate::beneath::{Beneath, Change, hash, replace};
use crate::class::Class;
use crate::error::{Blame, EffectError};

pub(super) fn effect(flock: &Path) -> Local {
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["patch", "bases"],
        "properties": {
            "patch": {"type": "string", "minLength": 1},
            "bases": {"type": "object", "additionalProperties": {
                "type": ["string", "null"], "pattern": "^[0-9a-f]{64}$",
            }},
        },
    });
    let parts =
        Parts { name: "apply_patch", class: Class::CompareAndSet, schema, complete, act, look };
    Local::new(flock, parts)
}

fn wrong(kind: &str, what: String, action: &str) -> EffectError {
    EffectError::new(kind, Blame::Caller, what, action)
}

/// The patch must be one, and each of its files must have a base, before anybody is asked.
fn complete(args: Value) -> Result<Value, EffectError> {
    let bases = args["bases"].as_object().expect("the schema asks for an object");
    let mut named = BTreeSet::new();
    for part in parse(args["patch"].as_str().unwrap_or(""))? {
        let path = part.path;
        let base = bases.get(&path).ok_or_else(|| {
            let what = format!("`bases` has no hash of `{path}`, which the patch changes");
            wrong("arguments.bases", what, "give each file's hash, null for a new one")
        })?;
        if base.is_null() != part.creates {
            let what = format!("`{path}`: a new file has the base null, and only a new one has");
            return Err(wrong("arguments.bases", what, "read the file and give its hash"));
        }
        if !named.insert(path.clone()) {
            let what = format!("the patch changes `{path}` twice");
            return Err(wrong("arguments.patch", what, "join its hunks under one header"));
        }
    }
    Ok(args)
}

/// One file of a patch.
struct Part<'a> {
    path: String,
    creates: bool,
    deletes: bool,
    patch: FilePatch<'a, str>,
}

fn parse(text: &str) -> Result<Vec<Part<'_>>, EffectError> {
    let action = "give a unified diff as `git diff` or `diff -u` prints it";
    let bad = |why: String| wrong("arguments.patch", format!("the patch is none: {why}"), action);
    let is_git = text.lines().any(|line| line.starts_with("diff --git "));
    let options = if is_git { ParseOptions::gitdiff() } else { ParseOptions::unidiff() };
    let parts = PatchSet::parse(text, options).map(|part| {
        let patch = part.map_err(|error| bad(error.to_string()))?;
        let (path, creates, deletes) = match patch.operation() {
            FileOperation::Create(path) => (plain(path), true, false),
            FileOperation::Delete(path) => (plain(path), false, true),
            FileOperation::Modify { original, modified } if plain(original) == plain(modified) => {
                (plain(modified), false, false)
            }
            _ => return Err(bad("it renames or copies a file; delete one and create one".into())),
        };
        if patch.patch().is_binary() {
            return Err(bad(format!("`{path}` is binary")));
        }
        Ok(Part { path, creates, deletes, patch })
    });
    let parts: Vec<Part<'_>> = parts.collect::<Result<_, _>>()?;
    if parts.is_empty() { Err(bad("it changes no file".into())) } else { Ok(parts) }
}

/// A path without the `a/` or `b/` of a diff.
fn plain(path: &str) -> String {
    let path = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path);
    path.to_owned()
}

fn base<'a>(job: &'a Job, path: &str) -> Option<&'a str> {
    job.args["bases"].get(path).and_then(Value::as_str)
}

/// The text of a file, if it is at its base.
fn text_at_base(job: &Job, path: &str) -> Result<String, EffectError> {
    let bytes = job.beneath.read(path)?;
    let now = bytes.as_deref().map(hash);
    if now.as_deref() != base(job, path) {
        let what = format!(
            "`{path}` is not at its base: found {}; no file was changed",
            now.as_deref().unwrap_or("no file")
        );
        return Err(wrong("write.conflict", what, "read the files again and make the patch anew"));
    }
    String::from_utf8(bytes.unwrap_or_default())
        .map_err(|_| wrong("path.binary", format!("`{path}` is no text"), "patch a text"))
}

fn act(job: &Job) -> Done {
    let mut changes: Vec<(Change, Option<Vec<u8>>)> = Vec::new();
    for part in parse(job.text("patch"))? {
        let before = text_at_base(job, &part.path)?;
        let patch = part.patch.patch().as_text().expect("a binary one was refused");
        let after = diffy::apply(&before, patch).map_err(|error| {
            let what = format!("`{}`: {error}; no file was changed", part.path);
            wrong("patch.context", what, "read the file again and make the patch anew")
        })?;
        if part.deletes && !after.is_empty() {
            let what = format!("`{}` has more lines than the patch deletes", part.path);
            return Err(wrong("patch.context", what, "make the patch anew"));
        }
        let before = (!part.creates).then(|| before.into_bytes());
        let content = (!part.deletes).then(|| after.into_bytes());
        let base = base(job, &part.path).map(str::to_owned);
        changes.push((Change { path: part.path, base, content }, before));
    }
    for (at, (change, _)) in changes.iter().enumerate() {
        if let Err(error) = replace(&job.beneath, change, &job.action) {
            return Err(put_back(&job.beneath, &changes[..at], &job.action, error));
        }
    }
    let files: Map<String, Value> =
        changes.iter().map(|(change, _)| (change.path.clone(), json!(after(change)))).collect();
    let result = json!({"files": files});
    let names: Vec<&str> = changes.iter().map(|(change, _)| change.path.as_str()).collect();
    let fingerprint = Fingerprint {
        what: names.join(", "),
        base: Some(hash(job.args["bases"].to_string().as_bytes())),
        result: Some(hash(result.to_string().as_bytes())),
    };
    Ok((result, Some(fingerprint)))
}

fn after(change: &Change) -> Option<String> {
    change.content.as_deref().map(hash)
}

/// Undoes what was done of a patch, the last file first.
fn put_back(
    beneath: &Beneath,
    done: &[(Change, Option<Vec<u8>>)],
    action: &str,
    error: EffectError,
) -> EffectError {
    for (change, before) in done.iter().rev() {
        let back =
            Change { path: change.path.clone(), base: after(change), content: before.clone() };
        if let Err(second) = replace(beneath, &back, action) {
            let what = format!("{error}; and `{}` could not be put back: {second}", change.path);
            return wrong("patch.half_done", what, "put the named file back by hand");
        }
    }
    error
}

/// Which of a patch's files are at their base, and which are what the patch makes of it.
fn look(job: &Job) -> Seen {
    let parts = match parse(job.text("patch")) {
        Ok(parts) => parts,
        Err(error) => return Seen::Unreachable(error),
    };
    let (mut done, mut not_done, mut neither) = (Map::new(), Vec::new(), Vec::new());
    for part in parts {
        let now = match job.beneath.read(&part.path) {
            Ok(now) => now,
            Err(error) => return Seen::Unreachable(error),
        };
        let name = now.as_deref().map(hash);
        if name.as_deref() == base(job, &part.path) {
            not_done.push(part.path);
        } else if undone(&part, now).as_deref() == base(job, &part.path) {
            done.insert(part.path, json!(name));
        } else {
            neither.push(part.path);
        }
    }
    match (done.is_empty(), not_done.is_empty(), neither.is_empty()) {
        (_, true, true) => Seen::Found(json!({"files": done})),
        (true, _, true) => Seen::Absent,
        _ => {
            let done: Vec<String> = done.into_iter().map(|(path, _)| path).collect();
            let what = format!(
                "patched: {}; not patched: {}; neither: {}",
                done.join(", "),
                not_done.join(", "),
                neither.join(", ")
            );
            Seen::Conflict(wrong("patch.half_done", what, "finish the patch or undo it by hand"))
        }
    }
}

/// The hash of what a file was if it is what the patch made.
fn undone(part: &Part<'_>, now: Option<Vec<u8>>) -> Option<String> {
    let patch = part.patch.patch().as_text()?.reverse();
    let text = String::from_utf8(now.unwrap_or_default()).ok()?;
    let before = diffy::apply(&text, &patch).ok()?;
    (!part.creates || !before.is_empty()).then(|| hash(before.as_bytes()))
}
