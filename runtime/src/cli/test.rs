//! `test`: the test files beside behaviors.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::check_test::{Case, read};
use super::failure::{Failure, scripts_elsewhere};
use super::shell::Shell;
use super::subject::{declared, flock_of};
use crate::flock::{Flock, Overrides};

const EXAMPLES: &str = "\
Examples:
  starling test                                   every test of the flock around this folder
  starling test examples/schelling                of that flock
  starling test behaviors/greet_guest.test.toml   of one file";

/// Runs the tests beside behaviors: NAME.test.toml says what is given and what is to be proposed
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// A flock, a folder of flocks, or a test file
    #[arg(default_value = ".")]
    path: PathBuf,
}

const ENDING: &str = ".test.toml";

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    scripts_elsewhere()?;
    let mut files = Vec::new();
    gather(&args.path, &mut files)?;
    files.sort();
    if files.is_empty() {
        let path = args.path.display();
        return Err(Failure::NotFound(format!(
            "there is no test in {path}; a test stands beside its behavior as NAME{ENDING}"
        )));
    }
    let (mut passed, mut failed) = (0usize, 0usize);
    let mut flocks = Flocks::new();
    for file in &files {
        for (name, result) in run_file(file, &mut flocks) {
            let wrong = result.err();
            *(if wrong.is_none() { &mut passed } else { &mut failed }) += 1;
            let file = file.display().to_string();
            if shell.json() {
                shell.line(json!({
                    "file": file, "test": name, "passed": wrong.is_none(), "why": wrong,
                }))?;
            } else if let Some(wrong) = wrong {
                shell.line(format_args!("FAILED {file}: {name}\n{}", indented(&wrong)))?;
            } else {
                shell.say(format_args!("ok     {file}: {name}"));
            }
        }
    }
    if !shell.json() {
        shell.line(format_args!("{passed} passed, {failed} failed"))?;
    }
    if failed > 0 { Err(Failure::Differs) } else { Ok(()) }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// The test files at a path: itself, those of a flock, or of the flocks in a folder.
fn gather(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if path.is_file() {
        if path.to_string_lossy().ends_with(ENDING) {
            files.push(path.to_owned());
            return Ok(());
        }
        let beside = path.with_extension("test.toml");
        if beside.is_file() {
            files.push(beside);
        }
        return Ok(());
    }
    let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    if hidden && path != Path::new(".") && path != Path::new("..") {
        return Ok(());
    }
    let failed = |error| Failure::NotFound(format!("{} cannot be read: {error}", path.display()));
    for entry in fs::read_dir(path).map_err(failed)? {
        let inner = entry?.path();
        let is_test = inner.to_string_lossy().ends_with(ENDING);
        if inner.is_dir() || is_test {
            gather(&inner, files)?;
        }
    }
    Ok(())
}

/// The result of each test of a file; one result if it cannot be used at all.
fn run_file(file: &Path, flocks: &mut Flocks) -> Vec<(String, Result<(), String>)> {
    match prepare(file, flocks) {
        Err(what) => vec![("the file".to_owned(), Err(what))],
        Ok((cases, run)) => cases.iter().map(|case| (case.name.clone(), run(case))).collect(),
    }
}

type Run<'f> = Box<dyn Fn(&Case) -> Result<(), String> + 'f>;

/// The flocks that test files belong to, each read once.
type Flocks = BTreeMap<PathBuf, Result<Flock, String>>;

fn prepare<'f>(file: &Path, flocks: &'f mut Flocks) -> Result<(Vec<Case>, Run<'f>), String> {
    let text = fs::read_to_string(file);
    let text = text.map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    let cases = read(file, &text)?;
    let folder = flock_of(file)
        .ok_or_else(|| format!("{} belongs to no flock: no flock.toml above it", file.display()))?;
    let read_flock = |folder: &PathBuf| {
        Flock::read(folder, &Overrides::default()).map_err(|error| error.to_string())
    };
    let flock = flocks.entry(folder).or_insert_with_key(read_flock).as_ref();
    let flock = flock.map_err(Clone::clone)?;
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    let stem = name.unwrap_or_default().trim_end_matches(ENDING).to_owned();
    let is_subject = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name == stem || name.split_once('.').is_some_and(|(first, _)| first == stem)
    };
    let source = flock.sources.iter().find(|source| is_subject(&source.path));
    let source = source.ok_or_else(|| format!("there is no behavior file `{stem}` to test"))?;
    let behaviors = match declared(source) {
        Ok(behaviors) => behaviors,
        Err(Failure::Failed(what)) => return Err(what),
        Err(_) => return Err(format!("{} cannot be used", source.path)),
    };
    let (payload, start) = (flock.payload(), flock.start);
    Ok((cases, Box::new(move |case: &Case| case.run(&behaviors, &payload, start))))
}
