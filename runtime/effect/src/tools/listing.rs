//! What the tools of a flock would run, for the person who is asked whether they may.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::file::{Runs, ToolError, ToolFile};
use crate::class::Class;

/// Every tool, and one hash of all that decides what they do.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The tools, by name.
    pub tools: Vec<Listed>,
    /// blake3 over all that decides what the flock does: its settings, its behaviors, those of
    /// the folders that it uses, its tools and every program of theirs that lies in the flock.
    pub hash: String,
}

/// One tool.
#[derive(Clone, Debug)]
pub struct Listed {
    /// `tool:NAME`, or `tool:NAME.*` for a server, whose tools are not known before it runs.
    pub effect: String,
    /// What it is for.
    pub description: String,
    /// The programs that it runs, with their arguments.
    pub commands: Vec<Vec<String>>,
    /// What it promises about being called again.
    pub class: Class,
    /// What it wants of the machine, one phrase each.
    pub wants: Vec<String>,
    /// Its file.
    pub file: PathBuf,
}

/// What of a flock decides what it does.
const RULES: [&str; 3] = ["flock.toml", "behaviors", "tools"];

/// What in a folder that a flock uses decides nothing, and changes by itself.
const STATE: [&str; 2] = [".git", ".starling"];

pub(super) fn list(
    flock: &Path,
    uses: &[PathBuf],
    files: &[ToolFile],
) -> Result<Listing, ToolError> {
    let tools: Vec<Listed> = files.iter().map(listed).collect();
    let mut sources = BTreeSet::new();
    for rule in RULES {
        gather(&flock.join(rule), &[], &mut sources)?;
    }
    for used in uses {
        gather(&flock.join(used), &STATE, &mut sources)?;
    }
    // An argument that names a file of the flock is as much of the program as the first word.
    let words = tools.iter().flat_map(|tool| tool.commands.iter().flatten());
    let words = words.filter(|word| !word.is_empty() && !word.starts_with('/'));
    sources.extend(words.map(|word| flock.join(word)).filter(|path| path.is_file()));
    let mut hasher = blake3::Hasher::new();
    for path in sources {
        let bytes = std::fs::read(&path);
        let bytes = bytes.map_err(|source| ToolError::Read { path: path.clone(), source })?;
        let name = path.strip_prefix(flock).unwrap_or(&path).to_string_lossy().into_owned();
        // What may be run is another thing than the same text that may not.
        let mode: &[u8] = if crate::program::is_executable(&path) { b"x" } else { b"-" };
        for part in [name.as_bytes(), mode, &bytes] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    Ok(Listing { tools, hash: hasher.finalize().to_hex().to_string() })
}

/// Every file at or below a path, but what is called as one of `but`.
fn gather(path: &Path, but: &[&str], into: &mut BTreeSet<PathBuf>) -> Result<(), ToolError> {
    if path.is_file() {
        into.insert(path.to_owned());
        return Ok(());
    }
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(ToolError::Read { path: path.to_owned(), source }),
    };
    let counts = |name: &OsStr| !but.iter().any(|left_out| name == *left_out);
    let mut entries = entries.flatten().filter(|entry| counts(&entry.file_name()));
    entries.try_for_each(|entry| gather(&entry.path(), but, into))
}

fn listed(file: &ToolFile) -> Listed {
    let (effect, command) = match &file.runs {
        Runs::Command(argv) => (format!("tool:{}", file.name), argv),
        Runs::Mcp(argv) => (format!("tool:{}.*", file.name), argv),
    };
    let mut wants: Vec<String> = file.effects.iter().map(|want| want.phrase().to_owned()).collect();
    wants.extend(file.reads.iter().map(|path| format!("to read {path}")));
    let secrets = file.env.values().filter_map(|value| value.strip_prefix('$'));
    wants.extend(secrets.map(|name| format!("the variable {name}")));
    Listed {
        effect,
        description: file.description.clone(),
        commands: [Some(command), file.reconcile.as_ref()].into_iter().flatten().cloned().collect(),
        class: file.class,
        wants,
        file: file.path.clone(),
    }
}
