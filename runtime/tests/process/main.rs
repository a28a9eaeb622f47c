//! What only the real binary can show: separate processes, what they print, and killing them.
//!
//! With `STARLING_LONG=1` there are more kills, bombs and backups.
#![allow(clippy::unwrap_used, reason = "a test says what failed where it fails")]

mod apart;
mod author;
mod bombs;
mod cli;
mod forks;
mod live;
mod payments;
mod programs;
mod prompts;
mod run;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// What a command did.
struct Done {
    code: i32,
    out: String,
    err: String,
}

/// The program itself: its processes are killed, so they cannot be this one.
fn starling() -> Command {
    Command::new(env!("CARGO_BIN_EXE_starling"))
}

/// A command in a folder, by the user ann, with nothing to read.
fn command(folder: &Path, line: &[&str]) -> Command {
    let mut command = starling();
    command.current_dir(folder).args(line).env("USER", "ann").env_remove("STARLING_STORE");
    command.stdin(Stdio::null());
    command
}

fn run(folder: &Path, line: &[&str]) -> Done {
    Done::of(command(folder, line))
}

/// Runs a command that works.
fn works(folder: &Path, line: &[&str]) -> Done {
    run(folder, line).worked(line)
}

/// Runs a command that works, and gives its output.
fn ok(folder: &Path, line: &[&str]) -> String {
    works(folder, line).out
}

/// Runs a command that ends with this code, and says this.
fn fails(folder: &Path, line: &[&str], code: i32, says: &str) -> Done {
    run(folder, line).failed(line, code, says)
}

/// The events of one kind in the store of the flock `flock`.
fn events_of(folder: &Path, kind: &str) -> Vec<Value> {
    of_kind(&ok(folder, &["log", "--store", "flock", "--json", "-n", "100000"]), kind)
}

/// Of the lines of `log --json`, the events of one kind.
fn of_kind(log: &str, kind: &str) -> Vec<Value> {
    let all = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|event| event["kind"] == kind).collect()
}

/// Whether the long forms were asked for.
fn long() -> bool {
    std::env::var_os("STARLING_LONG").is_some()
}

impl Done {
    fn of(mut command: Command) -> Done {
        let output = command.output().unwrap();
        Done {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn worked(self, line: &[&str]) -> Done {
        assert_eq!(self.code, 0, "{line:?}: {}{}", self.out, self.err);
        self
    }

    fn failed(self, line: &[&str], code: i32, says: &str) -> Done {
        assert_eq!(self.code, code, "{line:?}: {}{}", self.out, self.err);
        assert!(self.err.contains(says), "{line:?}: {}", self.err);
        self
    }
}

/// A flock in a folder of its own, and a state folder in which its trust is kept.
struct Place {
    folder: TempDir,
}

const FLOCK: &str = r#"
[[start]]
kind = "note.added"
payload = { text = "three small words" }
changes = [{ create = "note:1", type = "Note", properties = { text = "three small words" } }]
"#;

impl Place {
    fn new(flock: &str, files: &[(&str, &str)]) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let place = Place { folder };
        place.write("flock.toml", flock);
        for (name, text) in files {
            place.write(name, text);
        }
        place
    }

    /// Writes a file; one that begins with `#!` may be run.
    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        if text.starts_with("#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, line: &[&str]) -> Done {
        let mut command = command(self.path(), line);
        command.env("XDG_STATE_HOME", self.path().join(".starling/state"));
        Done::of(command)
    }

    fn ok(&self, line: &[&str]) -> Done {
        self.run(line).worked(line)
    }

    fn fails(&self, line: &[&str], code: i32, says: &str) {
        self.run(line).failed(line, code, says);
    }

    /// The payloads of the events of one kind.
    fn of_kind(&self, kind: &str) -> Vec<Value> {
        let log = self.ok(&["log", "--json", "-n", "100000"]).out;
        of_kind(&log, kind).into_iter().map(|mut event| event["payload"].take()).collect()
    }

    /// The only failure that the log tells of.
    fn failure(&self) -> String {
        let failed = self.of_kind("behavior.failed");
        assert_eq!(failed.len(), 1, "{failed:?}");
        failed[0]["error"].as_str().unwrap().to_owned()
    }
}

fn program(fields: &str, body: &str) -> String {
    let fields: Vec<String> = fields.lines().map(|line| format!("# {}\n", line.trim())).collect();
    format!(
        "#!/bin/sh\n# /// starling\n# description = \"A test.\"\n{}# ///\n{body}\n",
        fields.concat()
    )
}
