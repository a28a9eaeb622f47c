//! Executables and prompts as behaviors, and the tools of their authors, by the real binary.
#![allow(clippy::unwrap_used, reason = "a test says what failed where it fails")]

mod apart;
mod author;
mod bombs;
mod programs;
mod prompts;

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
        let mut command = Command::new(env!("CARGO_BIN_EXE_starling"));
        command.current_dir(self.path()).args(line).stdin(Stdio::null());
        command.env("USER", "ann").env_remove("STARLING_STORE");
        command.env("XDG_STATE_HOME", self.path().join(".starling/state"));
        let output = command.output().unwrap();
        Done {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn ok(&self, line: &[&str]) -> Done {
        let done = self.run(line);
        assert_eq!(done.code, 0, "{line:?}: {}{}", done.out, done.err);
        done
    }

    fn fails(&self, line: &[&str], code: i32, says: &str) {
        let done = self.run(line);
        assert_eq!(done.code, code, "{line:?}: {}{}", done.out, done.err);
        assert!(done.err.contains(says), "{line:?}: {}", done.err);
    }

    /// The payloads of the events of one kind.
    fn of_kind(&self, kind: &str) -> Vec<Value> {
        let out = self.ok(&["log", "--json", "-n", "100000"]).out;
        let lines = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|e| e["kind"] == kind).map(|mut e| e["payload"].take()).collect()
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
