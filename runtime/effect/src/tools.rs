//! The tools of a flock: each a file `tools/NAME.toml`, each the effect `tool:NAME`.

pub(crate) mod file;
pub(crate) mod judge;
mod listing;
pub(crate) mod tool;

pub use file::ToolError;
pub use listing::{Listed, Listing};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::executor::Executor;
use crate::mcp;
use crate::sandbox::Sandbox;

use file::{Runs, ToolFile};

/// What a program is asked for, by name.
pub type Named = (String, Arc<dyn Executor>);

/// Makes an executor of every tool of a flock, by name. A server that speaks MCP is started once,
/// to ask for its tools.
///
/// # Errors
/// A file cannot be used, or a server does not answer; the error names the file, line and column.
pub fn load(flock: &Path, sandbox: Sandbox) -> Result<Vec<Named>, ToolError> {
    let flock = flock.canonicalize().unwrap_or_else(|_| flock.to_owned());
    let mut found: Vec<Named> = Vec::new();
    for file in read(&flock)? {
        match &file.runs {
            Runs::Command(_) => {
                let name = format!("tool:{}", file.name);
                found.push((name, Arc::new(tool::Tool::new(file, &flock, sandbox))));
            }
            Runs::Mcp(_) => found.extend(mcp::load(file, &flock, sandbox)?),
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}

/// What the tools of a flock would run and want, for the person who is asked whether they may.
/// Nothing is started. `uses` are the folders elsewhere that it takes behaviors from.
///
/// # Errors
/// A file cannot be used.
pub fn list(flock: &Path, uses: &[PathBuf]) -> Result<Listing, ToolError> {
    let flock = flock.canonicalize().unwrap_or_else(|_| flock.to_owned());
    listing::list(&flock, uses, &read(&flock)?)
}

/// The tool files of a flock, by name.
fn read(flock: &Path) -> Result<Vec<ToolFile>, ToolError> {
    let folder = flock.join("tools");
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(ToolError::Read { path: folder, source }),
    };
    let is_tool = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "toml");
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(is_tool).collect();
    paths.sort();
    paths.iter().map(|path| file::read(path)).collect()
}
