//! `check`: what is wrong with a flock, without running it.

use std::path::PathBuf;

use super::failure::{Failure, scripts_elsewhere};
use super::shell::Shell;
use super::subject::flock_of;
use crate::flock::{Finding, Flock, Form, Level, Overrides, lint};

const EXAMPLES: &str = "\
Examples:
  starling check                             the flock around this folder
  starling check examples/bridge             that flock
  starling check behaviors/greet_guest.star  one file of it
  starling check --strict                    what may be wrong is wrong";

/// Checks a flock without running it: files, patterns, types, effects, guards and loops
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// A flock, or a file of one
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Warnings count as errors
    #[arg(long)]
    strict: bool,
}

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    scripts_elsewhere()?;
    let folder = flock_of(&args.path).ok_or_else(|| {
        let path = args.path.display();
        Failure::NotFound(format!("{path} is in no flock: no folder above it has a flock.toml"))
    })?;
    let flock = Flock::read(&folder, &Overrides::default())?;
    let whole = args.path.canonicalize().unwrap_or_else(|_| args.path.clone());
    let only = whole.is_file().then(|| whole.strip_prefix(&folder).ok()).flatten();
    let only = only.map(|path| path.display().to_string()).filter(|path| path != "flock.toml");
    let mut found = lint(&flock);
    found.retain(|finding| only.as_ref().is_none_or(|only| finding.path == *only));
    for finding in &found {
        if shell.json() {
            shell.line(finding.to_json())?;
        } else {
            shell.line(line(finding))?;
        }
    }
    let errors = found.iter().filter(|finding| finding.level == Level::Error).count();
    let warnings = found.len() - errors;
    let checked = match &only {
        Some(only) => only.clone(),
        None => format!("{} files of {}", flock.sources.len(), flock.name),
    };
    shell.say(format_args!("{checked}: {errors} errors, {warnings} warnings"));
    if only.is_none() {
        shell.say(determinism(&flock));
    }
    let wrong = errors > 0 || (args.strict && warnings > 0);
    if wrong { Err(Failure::Differs) } else { Ok(()) }
}

/// What can make two runs of a flock differ, as far as its files tell.
fn determinism(flock: &Flock) -> String {
    let count = |form: Form| {
        flock.sources.iter().filter(|source| Form::of_path(&source.path) == form).count()
    };
    let (prompts, programs) = (count(Form::Prompt), count(Form::Program));
    if prompts + programs == 0 {
        return "deterministic: its scripts see no clock, no chance but `rand`, which the seed draws, and \
                nothing outside"
            .to_owned();
    }
    format!(
        "its scripts are deterministic; its prompts ({prompts}) and executables ({programs}) are asked as \
         effects, so what they answer is in the log, and a replay or a fork asks none of them again"
    )
}

fn line(finding: &Finding) -> String {
    let Finding { level, path, line, what } = finding;
    let level = if *level == Level::Error { "error" } else { "warning" };
    // What a file says of itself begins with its own place.
    if what.starts_with(path.as_str()) {
        return format!("{level}: {what}");
    }
    let line = line.map_or(String::new(), |line| format!(":{line}"));
    format!("{level}: {path}{line}: {what}")
}
