//! Logs of ActiveGraph, from a trace in JSON lines or from its SQLite file.
//!
//! 1. Every event is kept, of unknown types too, in its order, with its payload as it is. What has
//!    no place in an event of ours (run, id, cause, frame, time as text) is carried in `imported`.
//! 2. The graph is the one that its own projection gives; ids stay as they are (`claim#11`).
//! 3. A run that was forked is a fork: the prefix that it copied is shared.
//! 4. A row that cannot be read is named by its position; nothing is written unless all can be, or
//!    leaving such rows out was asked for.

mod lines;
mod row;
mod sqlite;
mod translate;
mod write;

use std::path::{Path, PathBuf};

pub(crate) use row::{Bad, Row, Run};
use translate::Translator;

use log::{BranchName, Log, LogError};

use crate::engine::FoldError;

/// What to import, and how.
#[derive(Debug)]
pub(crate) struct Options {
    /// The file: JSON lines, or a SQLite database.
    pub(crate) file: PathBuf,
    /// The branch for a file with one run; runs of a file with several are named by their ids.
    pub(crate) branch: BranchName,
    /// Only this run, and those it was forked from.
    pub(crate) run: Option<String>,
    /// Leave out rows that cannot be read.
    pub(crate) skip: bool,
    /// Who claims the branches meanwhile.
    pub(crate) owner: String,
}

/// One run as it was imported.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) branch: BranchName,
    pub(crate) run: String,
    /// The branch and offset that it was forked from.
    pub(crate) forked_from: Option<String>,
    pub(crate) appended: u64,
    pub(crate) found: u64,
    /// What could not be kept as it was, in sentences.
    pub(crate) notices: Vec<String>,
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are facts named by the message that shows them")]
pub(crate) enum ImportError {
    #[error("{file} cannot be read: {what}")]
    Unreadable { file: PathBuf, what: String },
    #[error("{}", corrupt(.0))]
    Corrupt(Vec<Bad>),
    #[error("there is no run `{run}` in it; there are {known}")]
    NoRun { run: String, known: String },
    #[error("`{run}` cannot be the name of a branch: {what}")]
    Name { run: String, what: String },
    #[error(
        "{branch}@{offset} holds another event than {place}, so {branch} is not an import of this run; \
         import into another store or branch"
    )]
    Differs { branch: BranchName, offset: log::Offset, place: String },
    #[error(transparent)]
    Fold(#[from] FoldError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Append(#[from] log::AppendError),
}

/// How many corrupt rows are named.
const NAMED_MAX: usize = 10;

fn corrupt(rows: &[Bad]) -> String {
    let named: Vec<String> = rows.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let more = match rows.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!("\n… and {more} more"),
    };
    format!(
        "{} rows cannot be read, and nothing was imported; --skip-corrupt leaves them out:\n{}{more}",
        rows.len(),
        named.join("\n")
    )
}

/// Imports a file. What was left out is told too.
pub(crate) fn import(
    log: &dyn Log,
    options: &Options,
) -> Result<(Vec<Imported>, Vec<Bad>), ImportError> {
    let mut runs = read(&options.file)?;
    if let Some(wanted) = &options.run {
        keep_run(&mut runs, wanted)?;
    }
    let mut bad = Vec::new();
    for run in &mut runs {
        bad.append(&mut run.bad);
    }
    if !bad.is_empty() && !options.skip {
        return Err(ImportError::Corrupt(bad));
    }
    row::parents_first(&mut runs);
    let mut translator = Translator::new(&runs, &options.branch);
    // All of it is translated before any of it is written.
    let mut lines = Vec::new();
    for run in &runs {
        let (line, mut left_out) = translator.run(run)?;
        bad.append(&mut left_out);
        lines.push(line);
    }
    if !bad.is_empty() && !options.skip {
        return Err(ImportError::Corrupt(bad));
    }
    let mut imported = Vec::new();
    for line in lines {
        imported.push(write::write(log, line, &options.owner)?);
    }
    Ok((imported, bad))
}

fn read(file: &Path) -> Result<Vec<Run>, ImportError> {
    let unreadable = |what: String| ImportError::Unreadable { file: file.to_owned(), what };
    let mut start = [0; 16];
    let opened = std::fs::File::open(file).map_err(|error| unreadable(error.to_string()))?;
    let length = std::io::Read::read(&mut &opened, &mut start);
    let length = length.map_err(|error| unreadable(error.to_string()))?;
    if start[..length].starts_with(b"SQLite format 3") {
        sqlite::read(file).map_err(|error| unreadable(error.to_string()))
    } else {
        let bytes = std::fs::read(file).map_err(|error| unreadable(error.to_string()))?;
        Ok(lines::read(&bytes))
    }
}

/// Keeps one run and those it was forked from.
fn keep_run(runs: &mut Vec<Run>, wanted: &str) -> Result<(), ImportError> {
    if !runs.iter().any(|run| run.id == wanted) {
        let known: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
        let known = known.join(", ");
        return Err(ImportError::NoRun { run: wanted.to_owned(), known });
    }
    let mut kept = vec![wanted.to_owned()];
    while let Some(run) = runs.iter().find(|run| kept.last() == Some(&run.id)) {
        match &run.parent {
            Some((parent, _)) if !kept.contains(parent) => kept.push(parent.clone()),
            _ => break,
        }
    }
    runs.retain(|run| kept.contains(&run.id));
    Ok(())
}
