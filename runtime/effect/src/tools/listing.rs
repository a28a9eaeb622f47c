//! What the tools of a flock would run, for the person who is asked whether they may.

use std::path::{Path, PathBuf};

use super::file::{Runs, ToolError, ToolFile};
use crate::class::Class;

/// Every tool, and one hash of all that decides what they do.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The tools, by name.
    pub tools: Vec<Listed>,
    /// blake3 over the tool files and over every program of theirs that lies in the flock.
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

pub(super) fn list(flock: &Path, files: &[ToolFile]) -> Result<Listing, ToolError> {
    let mut hasher = blake3::Hasher::new();
    let mut tools = Vec::new();
    for file in files {
        let listed = listed(file);
        let mut sources = vec![file.path.clone()];
        // An argument that names a file of the flock is as much of the program as the first word.
        let words = listed.commands.iter().flatten().filter(|word| !word.starts_with('/'));
        sources.extend(words.map(|word| flock.join(word)).filter(|path| path.is_file()));
        for path in sources {
            let bytes = std::fs::read(&path);
            let bytes = bytes.map_err(|source| ToolError::Read { path: path.clone(), source })?;
            let name = path.strip_prefix(flock).unwrap_or(&path).to_string_lossy().into_owned();
            for part in [name.as_bytes(), &bytes] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        tools.push(listed);
    }
    Ok(Listing { tools, hash: hasher.finalize().to_hex().to_string() })
}

fn listed(file: &ToolFile) -> Listed {
    let (effect, command) = match &file.runs {
        Runs::Command(argv) => (format!("tool:{}", file.name), argv),
        Runs::Mcp(argv) => (format!("tool:{}.*", file.name), argv),
    };
    let mut wants: Vec<String> = file.effects.iter().map(|want| want.phrase().to_owned()).collect();
    wants.extend(file.reads.iter().map(|path| format!("to read {path}")));
    let secrets = file.env.iter().filter_map(|(_, value)| value.strip_prefix('$'));
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
