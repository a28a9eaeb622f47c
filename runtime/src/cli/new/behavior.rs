//! `new behavior`: a file that runs at once, in each form.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::cli::failure::Failure;
use crate::cli::shell::Shell;
use crate::cli::subject::flock_of;

/// A form of a behavior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// A script
    Star,
    /// A prompt, answered by a model
    Md,
    /// An executable, in any language
    Exec,
    /// A Rust file of the library
    Rust,
}

const STAR: &str = r#"# Saved = live, deleted = gone.
behavior(
    name = "NAME",
    description = "Notes each event of a kind; say here what it does.",
    on = "note.added",                 # or match = "(n:Note)": fires when that becomes true
    writes = ["Seen"],
    emits = ["note.seen"],
)
def NAME(event):
    emit("note.seen", {"text": event.payload.text}, create("Seen", text = event.payload.text))
"#;

const STAR_TEST: &str = r#"[[test]]
name = "a note is seen"
given = [{ kind = "note.added", payload = { text = "hello" } }]
expect = [{ emit = "note.seen", payload = { text = "hello" } }]
"#;

const EXEC: &str = r#"#!/usr/bin/env python3
# /// starling
# description = "Counts the words of a note; say here what it does."
# on = "note.added"
# emits = ["note.counted"]
# writes = []
# ///
# Event, match and reads come as JSON on standard input; what follows is printed, a JSON object a
# line. Standard error is the log. Exit code 0 is done, 2 is no, with the reason on standard error.
import json
import sys

told = json.load(sys.stdin)
words = len(told["event"]["payload"]["text"].split())
print("counting", file=sys.stderr)
print(json.dumps({"emit": "note.counted", "payload": {"words": words}}))
"#;

const EXEC_TEST: &str = r#"# The executable is not run: this is what it answered once. `starling try FILE --run` runs it.
[[test]]
name = "a note is counted"
given = [{ kind = "note.added", payload = { text = "two words" } }]
answer = [{ effect = "exec:NAME", result = { proposals = [{ emit = "note.counted", payload = { words = 2 } }] } }]
expect = [{ emit = "note.counted", payload = { words = 2 } }]
"#;

const MD: &str = r#"---
description: Sums up a note; say here what it does.
on: note.added
emits: [note.summed_up]
writes: []
model: writer
answer:
  type: object
  required: [summary]
  properties: {summary: {type: string}}
propose:
  - emit: note.summed_up
---
Sum up this note in one sentence, as {"summary": "…"}:

{{ event.payload.text }}
"#;

const MD_TEST: &str = r#"[[test]]
name = "a note is summed up"
given = [{ kind = "note.added", payload = { text = "a long story" } }]
answer = [{ effect = "model:writer", result = { answer = { summary = "a story" } } }]
expect = [{ emit = "note.summed_up", payload = { summary = "a story" } }]

[[test]]
name = "an answer that does not fit is not taken"
given = [{ kind = "note.added", payload = { text = "a long story" } }]
answer = [{ effect = "model:writer", result = { answer = { summary = 7 } } }]
fails = "/summary"
"#;

const RUST: &str = r#"//! Notes each event of a kind; say here what it does and why it is in the library.

use serde_json::json;

use crate::{Firing, MetadataError, Proposals, ReactError, RustBehavior};

pub(super) fn behavior() -> Result<RustBehavior, MetadataError> {
    RustBehavior::new(
        &json!({
            "name": "NAME",
            "description": "Notes each event of a kind.",
            "on": "note.added",
            "emits": ["note.seen"],
            "writes": [],
        }),
        react,
    )
}

fn react(firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
    out.emit("note.seen", json!({"by": firing.event.actor}));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    #[test]
    fn a_note_is_seen() {
        let scene = json!({"event": {"kind": "note.added"}});
        check(&behavior().expect("metadata"), scene, "note.seen {\"by\":\"user:ann\"}");
    }
}
"#;

/// Writes the file, its test, and says what to do next.
pub(super) fn make(name: &str, form: Form, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
        return Err(Failure::Usage(format!(
            "`{name}` cannot be a name: it has a-z 0-9 _ and begins with a letter, such as greet_guest"
        )));
    }
    if form == Form::Rust {
        return rust(name, shell);
    }
    let flock = flock_of(Path::new(".")).ok_or_else(|| {
        Failure::NotFound(
            "there is no flock here: no folder above has a flock.toml; `starling new flock NAME` makes one"
                .to_owned(),
        )
    })?;
    let (ending, text, test) = match form {
        Form::Star => ("star", STAR, STAR_TEST),
        Form::Md => ("md", MD, MD_TEST),
        Form::Exec | Form::Rust => ("py", EXEC, EXEC_TEST),
    };
    let behaviors = flock.join("behaviors");
    let file = behaviors.join(format!("{name}.{ending}"));
    let beside = behaviors.join(format!("{name}.test.toml"));
    for path in [&file, &beside] {
        if path.exists() {
            return Err(Failure::Conflict(format!("{} exists already", path.display())));
        }
    }
    let failed = |error| Failure::Failed(format!("{}: {error}", file.display()));
    fs::create_dir_all(&behaviors).map_err(failed)?;
    fs::write(&beside, test.replace("NAME", name)).map_err(failed)?;
    fs::write(&file, text.replace("NAME", name)).map_err(failed)?;
    if form == Form::Exec {
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    shell.line(file.display())?;
    shell.line(beside.display())?;
    next(form, &flock, &file, &beside, shell);
    Ok(())
}

fn next(form: Form, flock: &Path, file: &Path, beside: &Path, shell: &mut Shell<'_>) {
    let (flock, file, beside) = (flock.display(), file.display(), beside.display());
    shell.say("next:");
    shell.say(format_args!("  starling test {beside}"));
    shell.say(format_args!("  starling check {flock}     what is wrong, without running it"));
    if form == Form::Exec {
        shell.say(format_args!("  starling try {file} --run  run it on the world as it is"));
    }
    shell.say(format_args!("  starling run {flock}       loads it; then say something to it:"));
    shell.say(format_args!(
        "  starling append note.added '{{\"text\": \"two words\"}}' --store {flock}"
    ));
    shell.say(format_args!("  starling run {flock}       it answers"));
    if form == Form::Md {
        shell.say("and in flock.toml, for the model that answers:");
        shell.say("  [grants]\n  effects = [\"model:writer\"]");
        shell.say("  [models.writer]\n  provider = \"recorded\"\n  answers = \"answers.jsonl\"");
    }
}

/// A Rust behavior is part of the program: it is a file of the source tree.
fn rust(name: &str, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let library = PathBuf::from("behaviors/src/library");
    if !library.is_dir() {
        return Err(Failure::NotFound(
            "a Rust behavior is a file of the library of Starling itself: go to the root of its source \
             tree, where behaviors/src/library is; in a flock take --form star, md or exec"
                .to_owned(),
        ));
    }
    let file = library.join(format!("{name}.rs"));
    if file.exists() {
        return Err(Failure::Conflict(format!("{} exists already", file.display())));
    }
    let failed = |error| Failure::Failed(format!("{}: {error}", file.display()));
    fs::write(&file, RUST.replace("NAME", name)).map_err(failed)?;
    shell.line(file.display())?;
    shell.say("next: cargo test --release -p starling-behaviors library");
    Ok(())
}
