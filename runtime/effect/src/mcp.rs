//! Tools of servers that speak MCP: refused by name as long as there is no client.

use std::path::Path;

use crate::sandbox::Sandbox;
use crate::tools::file::ToolFile;
use crate::tools::{Named, ToolError};

pub(crate) fn load(
    file: ToolFile,
    _flock: &Path,
    _sandbox: Sandbox,
) -> Result<Vec<Named>, ToolError> {
    let what = "`mcp` comes in a later version; a tool is a `command`".to_owned();
    Err(ToolError::File { path: file.path, line: 1, column: 1, what })
}
