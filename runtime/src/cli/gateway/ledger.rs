//! What the gateway has done: a file that only grows, a line of JSON for each thing.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use serde_json::{Value, json};

/// What was done, in order, on disk and in memory.
#[derive(Debug)]
pub(super) struct Ledger {
    file: File,
    lines: Vec<Value>,
}

/// One thing that is asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) what: String,
    pub(super) action: String,
    pub(super) key: String,
    pub(super) attempt: String,
    pub(super) args: Value,
}

impl Ledger {
    /// Opens a ledger and reads what it has.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let lines = text.lines().map(serde_json::from_str);
        let lines = lines.collect::<Result<_, _>>().map_err(io::Error::from)?;
        Ok(Ledger { file, lines })
    }

    /// Does it: a line, on disk before anybody hears of it.
    pub(super) fn record(&mut self, asked: &Asked) -> io::Result<Value> {
        let receipt = format!("{}-{}", asked.what, self.lines.len() + 1);
        let line = json!({
            "receipt": receipt, "did": asked.what, "action": asked.action, "key": asked.key,
            "attempt": asked.attempt, "args": asked.args,
        });
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.file.sync_data()?;
        self.lines.push(line.clone());
        Ok(line)
    }

    /// What was done for an action.
    pub(super) fn of_action(&self, what: &str, action: &str) -> Option<&Value> {
        self.lines.iter().find(|line| line["did"] == what && line["action"] == action)
    }

    /// What was done with a key.
    pub(super) fn of_key(&self, what: &str, key: &str) -> Option<&Value> {
        self.lines.iter().find(|line| line["did"] == what && line["key"] == key)
    }
}
