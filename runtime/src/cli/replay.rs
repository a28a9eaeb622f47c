//! `replay`: the log again, without acting: fold and check, or run every firing again.

use std::sync::Arc;

use log::{Address, Head, Log, Missing};
use serde_json::json;

use super::failure::{Failure, scripts_elsewhere};
use super::shell::Shell;
use crate::engine::refire;
use crate::flock::library_of;
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling replay              fold the branch main and check every hash of its chain
  starling replay --refire     and run every firing again with the code of its time";

/// Folds a branch again and checks it; nothing is written, nothing outside is asked
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The branch
    #[arg(value_name = "BRANCH")]
    address: Option<Address>,
    /// Run every firing again and compare what it proposes, byte for byte
    #[arg(long)]
    refire: bool,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    scripts_elsewhere()?;
    let store = shell.open(Missing::Refuse)?;
    let address = shell.address(args.address);
    let (branch, cut) = shell.resolve(&*store, &address)?;
    let (head, link) = log::verify(&*store, branch.id)?;
    if !args.refire {
        let state = Snapshots::none()
            .fold_branch(&*store, branch.id, cut)
            .map_err(|error| Failure::from(crate::engine::EngineError::from(error)))?;
        let hash = state.graph.state_hash();
        return shell.either(
            || json!({"events": cut.count(), "state": hash.to_string(), "link": link.to_string()}),
            || format!("{cut} folded and checked: state {}, chain {}", short(&hash), short(&link)),
        );
    }
    whole(cut, head, &address)?;
    let log: Arc<dyn Log> = Arc::clone(&store) as Arc<dyn Log>;
    let refired = refire(&*store, branch.id, library_of(&log))?;
    let count = refired.divergences.len();
    shell.either(
        || json!({"events": head.count(), "firings": refired.firings, "divergences": count}),
        || match count {
            0 => format!(
                "{} firings run again, {} events identical, 0 outside calls",
                refired.firings,
                head.count()
            ),
            _ => format!("{count} of {} firings do something else now", refired.firings),
        },
    )?;
    match refired.divergences.first() {
        None => Ok(()),
        Some(first) => Err(Failure::Diverged(first.to_string())),
    }
}

fn whole(cut: Head, head: Head, address: &Address) -> Result<(), Failure> {
    if cut == head {
        return Ok(());
    }
    let what = format!("--refire runs a whole branch; leave the offset of {address} out");
    Err(Failure::Usage(what))
}

fn short(hash: &log::Hash) -> String {
    hash.to_string()[..12].to_owned()
}
