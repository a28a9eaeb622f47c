//! `effects`: what is open, unknown or waits for a person, and the commands that answer it.

use log::{Address, Missing};
use serde_json::Value;

use super::answer::command_line;
use super::failure::Failure;
use super::shell::Shell;
use crate::effect::{OpenEffect, Standing};
use crate::engine::EngineError;
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling effects                    all that is open on the branch
  starling effects main@600           what was open there
  starling effects --json             one a line";

/// Lists effects that are open, unknown or wait for a person, with the commands that answer them
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// When: BRANCH@OFFSET; now if it is left out
    #[arg(value_name = "ADDRESS")]
    address: Option<Address>,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let now = args.address.is_none();
    let address = shell.address(args.address);
    let (branch, cut) = shell.resolve(&*store, &address)?;
    let state = Snapshots::beside(store.path()).fold_branch(&*store, branch.id, cut);
    let state = state.map_err(EngineError::from)?;
    let mut open: Vec<OpenEffect> = state.open_effects();
    open.sort_by_key(|open| open.offset);
    if shell.json() {
        return open.iter().try_for_each(|open| shell.line(open.to_json()));
    }
    if open.is_empty() {
        return shell.line("no effect is open");
    }
    let named = shell.named_store();
    for (standing, title) in [
        (Standing::Unknown, "unknown: it may have taken effect, and only a person can say"),
        (Standing::Waits, "a person is asked"),
        (Standing::Open, "open"),
    ] {
        let of: Vec<&OpenEffect> = open.iter().filter(|open| open.standing == standing).collect();
        if of.is_empty() {
            continue;
        }
        shell.line(format_args!("{title}:"))?;
        for open in of {
            shell.line(sentence(open))?;
            for command in open.commands.iter().filter(|_| now) {
                let line = command_line(command, named.as_deref(), &branch.name);
                shell.line(format_args!("    {line}"))?;
            }
        }
    }
    Ok(())
}

fn sentence(open: &OpenEffect) -> String {
    let OpenEffect { effect, behavior, offset, waits_for, .. } = open;
    let class = open.class.map_or(String::new(), |class| format!(", {class}"));
    let until = open.until.map_or(String::new(), |until| format!(", until {until}"));
    let args = short(&open.args);
    format!("  {effect} {args}, asked by {behavior} @{offset}{class}: waits for {waits_for}{until}")
}

fn short(args: &Value) -> String {
    let text = args.to_string();
    let cut: String = text.chars().take(80).filter(|c| !c.is_control()).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}
