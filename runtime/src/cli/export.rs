//! `export`: a branch as lines of JSON.

use log::{Address, Escapes, Missing, Offset};

use super::failure::Failure;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling export > main.jsonl
  starling export main@600 --ascii
  starling export side | starling import - --store copy.redb";

/// Writes a branch as lines of JSON, one event a line; `import` reads them back to the same hashes
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// What to export: a branch, or one up to an offset; main if none is named
    address: Option<Address>,
    /// Write characters outside ASCII as \u escapes
    #[arg(long)]
    ascii: bool,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let log = shell.open(Missing::Refuse)?;
    let address = shell.address(args.address);
    let (branch, cut) = shell.resolve(&*log, &address)?;
    let escapes = if args.ascii { Escapes::Ascii } else { Escapes::Needed };
    let count = log::export(&*log, branch.id, Offset::ZERO..cut.next(), shell.out, escapes)?;
    shell.say(format_args!("exported {count} events of {}@{cut}", branch.name));
    Ok(())
}
