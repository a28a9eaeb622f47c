//! `replay`: the log again, without acting: fold and check, or run every firing again.

use std::sync::Arc;

use log::{Address, Branch, Head, Log, Missing, Store};
use serde_json::json;

use super::failure::{Failure, scripts_elsewhere};
use super::shell::Shell;
use crate::engine::{Refired, between_firings, refire_up_to};
use crate::flock::library_of;
use crate::history::{Unsound, verify};
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling replay                    fold main, check its chain, state hashes and snapshots
  starling replay idea@600           as far as offset 600
  starling replay --refire           run every firing again with the code of its time
  starling replay --verify --refire  both";

/// Folds a branch again and checks it; nothing is written, nothing outside is asked
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The branch, or an address up to which to replay it
    #[arg(value_name = "BRANCH|ADDRESS")]
    address: Option<Address>,
    /// Fold it and check the hash chain, the recorded state hashes and the snapshots; also done if
    /// nothing is asked for
    #[arg(long)]
    verify: bool,
    /// Run every firing again and compare what it proposes, byte for byte
    #[arg(long)]
    refire: bool,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let address = shell.address(args.address);
    let (branch, cut) = shell.resolve(&*store, &address)?;
    if args.verify || !args.refire {
        verified(&store, &branch, cut, shell)?;
    }
    if args.refire {
        refired(&store, &branch, cut, shell)?;
    }
    Ok(())
}

fn verified(
    store: &Store,
    branch: &Branch,
    cut: Head,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let snapshots = Snapshots::beside(store.path());
    let found = verify(store, &snapshots, branch.id, cut).map_err(|unsound| match unsound {
        Unsound::Log(error) => Failure::from(error),
        Unsound::Fold(error) => Failure::from(crate::engine::EngineError::from(error)),
        other => Failure::Damaged(format!("{}{other}", branch.name)),
    });
    let id = branch.id.to_string();
    let found = found.map_err(|failure| {
        failure.reworded(|words| words.replace(&format!("{id}@"), &format!("{}@", branch.name)))
    })?;
    let name = branch.name.as_str();
    shell.either(
        || {
            json!({
                "branch": name, "events": cut.count(), "state": found.state.to_string(),
                "link": found.link.to_string(), "states": found.states,
                "snapshots": found.snapshots,
            })
        },
        || {
            format!(
                "{name}@{cut} folded and checked: state {}, chain {}; {} recorded state hashes and \
                 {} snapshots agree",
                short(&found.state),
                short(&found.link),
                found.states,
                found.snapshots
            )
        },
    )
}

fn refired(
    store: &Arc<Store>,
    branch: &Branch,
    asked: Head,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    scripts_elsewhere()?;
    let log: Arc<dyn Log> = Arc::clone(store) as Arc<dyn Log>;
    let cut = between_firings(&*log, branch.id, asked)?;
    let name = &branch.name;
    if cut != asked {
        shell
            .say(format_args!("{name}@{asked} splits a firing, so it is replayed to {name}@{cut}"));
    }
    let refired = refire_up_to(&*log, branch.id, cut, library_of(&log))?;
    tell(&refired, cut, shell)?;
    if let Some(first) = refired.divergences.first() {
        return Err(Failure::Diverged(format!("{name}{first}")));
    }
    if !refired.unavailable.is_empty() {
        let missing = refired
            .unavailable
            .iter()
            .map(|(version, count)| format!("{version} ({count} firings)"));
        return Err(Failure::Failed(format!(
            "what these would do is not known, since their source is not at hand: {}",
            missing.collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(())
}

fn tell(refired: &Refired, cut: Head, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let (firings, count) = (refired.firings, refired.divergences.len());
    let first = refired.divergences.first();
    let unavailable: u64 = refired.unavailable.values().sum();
    shell.either(
        || {
            json!({
                "events": cut.count(), "firings": firings, "divergences": count,
                "unavailable": refired.unavailable,
                "first": first.map(|first| json!({
                    "offset": first.offset.get(), "behavior": first.behavior,
                    "expected": first.recorded, "actual": first.proposed,
                })),
            })
        },
        || match (count, unavailable) {
            (0, 0) => format!(
                "{firings} firings run again, {} events identical, 0 outside calls",
                cut.count()
            ),
            (0, _) => format!("{firings} firings run again and identical, {unavailable} not run"),
            _ => format!("{count} of {firings} firings do something else now"),
        },
    )
}

fn short(hash: &log::Hash) -> String {
    hash.to_string()[..12].to_owned()
}
