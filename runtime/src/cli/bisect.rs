//! `bisect`: the event at which a pattern became true.

use log::{Address, Bound, Branch, BranchName, Head, Log, Missing};
use projection::Pattern;
use serde_json::json;

use super::answer::command_line;
use super::failure::Failure;
use super::sentence::Narrator;
use super::shell::Shell;
use crate::engine::row_json;
use crate::history::{self, Turned, Turning};
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling bisect main '(:Trip {status: \"closed\"})'    an event that made this true
  starling bisect main '(:Order)' --first               the first one, by reading all of them
  starling bisect main@900 '(:Order)' --from main@600   between two offsets";

/// Finds an event at which a pattern turned from false to true, and who did it
///
/// It halves the way between a world without a match and one with: a pattern that comes and goes
/// turned true at the event it names, perhaps also at others.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The branch, or an address up to which to look
    #[arg(value_name = "BRANCH|ADDRESS")]
    until: Address,
    /// The pattern, such as '(:Trip {status: "closed"})'
    pattern: String,
    /// Look after this address only
    #[arg(long, value_name = "ADDRESS")]
    from: Option<Address>,
    /// Read event by event and find the first
    #[arg(long)]
    first: bool,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let pattern = Pattern::parse(&args.pattern).map_err(|e| Failure::Usage(e.to_string()))?;
    if let Some(name) = pattern.parameters().iter().next() {
        return Err(Failure::Usage(format!("the pattern mentions ${name}; write its value")));
    }
    let store = shell.open(Missing::Refuse)?;
    let (branch, until) = shell.resolve(&*store, &args.until)?;
    let from = match &args.from {
        None => Head::EMPTY,
        Some(from) => from_on(&*store, &branch, from, shell)?,
    };
    if from > until {
        return Err(Failure::Usage(format!("--from {from} is later than {until}; exchange them")));
    }
    let snapshots = Snapshots::beside(store.path());
    let search = if args.first { history::first_true } else { history::bisect };
    let turned = search(&*store, &snapshots, branch.id, (from, until), &pattern)?;
    let name = &branch.name;
    let Turning { event, row, worlds } = match turned {
        Turned::At(turning) => *turning,
        Turned::Before => {
            let how = "it holds from the beginning on; look --from an earlier address";
            return Err(Failure::NotFound(format!(
                "at {name}@{from} the pattern has a match: {how}"
            )));
        }
        Turned::Not => {
            let how = if args.first {
                "it never had one between them"
            } else {
                "--first finds out whether it had one before"
            };
            return Err(Failure::NotFound(format!(
                "at {name}@{until} the pattern has no match: {how}"
            )));
        }
    };
    let address = format!("{name}@{}", event.offset());
    shell.either(
        || {
            json!({
                "address": address, "id": event.id().to_string(), "kind": event.kind(),
                "actor": event.actor(), "match": row_json(&row.bound), "worlds": worlds,
            })
        },
        || {
            let ids: Vec<&str> = row.bound.iter().flat_map(Bound::ids).map(|id| &**id).collect();
            let line = Narrator::default().line(&event);
            format!("{address} made it true\n  on {}\n{line}", ids.join(", "))
        },
    )?;
    let next = command_line(
        &format!("why {address}"),
        shell.named_store().as_deref(),
        &BranchName::main(),
    );
    shell.say(format_args!("{worlds} worlds were looked at; next: {next}"));
    Ok(())
}

/// Where the search begins: an address of the same branch.
fn from_on(
    store: &dyn Log,
    branch: &Branch,
    from: &Address,
    shell: &Shell<'_>,
) -> Result<Head, Failure> {
    let (of, head) = shell.resolve(store, from)?;
    if of.id == branch.id {
        return Ok(head);
    }
    let (name, other) = (&branch.name, &of.name);
    Err(Failure::Usage(format!(
        "--from names {other} and the search is on {name}: write --from {name}@OFFSET"
    )))
}
