//! `promote`: what a branch has become is brought into the branch that it left, or nothing is.

use std::sync::Arc;

use log::{BranchName, Log, Missing};
use projection::Pattern;
use serde_json::{Value, json};

use super::answer::command_line;
use super::append::actor;
use super::failure::Failure;
use super::shell::{Shell, counted};
use crate::clock::now;
use crate::promote::{Land, PromoteError, Promoted, Promotion};
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling promote idea                        into the branch that it was forked from
  starling promote idea --dry-run              says what would land and who would wake
  starling promote deep --into main            from a fork of a fork
  starling promote idea --only '(t:Trip)-[:CHOSE]->(f)'   only what this matches there";

/// Brings what a branch has become into its parent: all of it, or nothing if something conflicts
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The branch to promote
    #[arg(value_name = "BRANCH")]
    from: BranchName,
    /// The branch to bring it into; its parent, if none is named
    #[arg(long, value_name = "BRANCH")]
    into: Option<BranchName>,
    /// Say what would happen and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Only the nodes and edges that this pattern matches on the branch
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// Who promotes it: user:NAME
    #[arg(long, value_name = "ACTOR")]
    actor: Option<String>,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let who = actor(args.actor.as_deref())?;
    let only = args.only.as_deref().map(Pattern::parse).transpose();
    let only = only.map_err(|error| Failure::Usage(error.to_string()))?;
    let store = shell.open(Missing::Refuse)?;
    let from = shell.branch(&*store, &args.from)?;
    let into = match (&args.into, &from.fork) {
        (Some(name), _) => shell.branch(&*store, name)?,
        (None, Some(fork)) => store.branch(fork.parent)?,
        (None, None) => {
            let what =
                format!("{} was not forked from any branch; name one with --into", from.name);
            return Err(Failure::Usage(what));
        }
    };
    let promotion =
        Promotion { from: &from, into: &into, only: only.as_ref(), who: &who, now: now() };
    let land = if args.dry_run { Land::DryRun } else { Land::Now };
    let log: Arc<dyn Log> = Arc::clone(&store) as Arc<dyn Log>;
    let done = promotion.run(&log, &Snapshots::beside(store.path()), (land, &shell.me()));
    match done {
        Ok(promoted) => tell(&promotion, &promoted, args.dry_run, shell),
        Err(PromoteError::Conflicts(all)) => {
            for conflict in &all {
                shell.either(|| conflict.to_json(), || conflict.to_string())?;
            }
            let count = all.len();
            Err(Failure::Conflict(format!(
                "{count} conflicts between {} and {}; nothing was promoted: change one side, or name \
                 what to bring with --only",
                from.name, into.name
            )))
        }
        Err(error) => Err(error.into()),
    }
}

fn tell(
    promotion: &Promotion<'_>,
    promoted: &Promoted,
    dry_run: bool,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let (from, into) = (&promotion.from.name, &promotion.into.name);
    let Promoted { changes, keys, wakes, quiet, since, landed } = promoted;
    let at = landed.map(|offset| format!("{into}@{offset}"));
    let nothing = *changes == 0 && keys.is_empty();
    let json = || {
        let wakes: Vec<Value> =
            wakes.iter().map(|(name, count)| json!({"behavior": name, "matches": count})).collect();
        json!({
            "from": from.as_str(), "into": into.as_str(), "changes": changes, "keys": keys,
            "wakes": wakes, "quiet": quiet, "since": since.count(), "landed": at,
        })
    };
    let text = || match &at {
        Some(at) => format!("{from} is promoted into {into}: {changes} changes landed at {at}"),
        None if nothing => format!("{into} has all that {from} has become; nothing was promoted"),
        None => format!("{from} would be promoted into {into} with {changes} changes"),
    };
    shell.either(json, text)?;
    for (name, count) in wakes {
        let matches = counted(*count as u64, "match");
        shell.say(format_args!("  {name} wakes on {matches} that stood on neither branch"));
    }
    if *quiet > 0 {
        let matches = counted(*quiet as u64, "match");
        shell.say(format_args!("  {matches} had their say on {from} and are quiet"));
    }
    if !keys.is_empty() {
        shell.say(format_args!("  {} durable keys travel", keys.len()));
    }
    if dry_run {
        shell.say("nothing was written");
    } else if !wakes.is_empty() {
        let line = command_line("run", shell.named_store().as_deref(), into);
        shell.say(format_args!("next: {line}"));
    }
    Ok(())
}

impl From<PromoteError> for Failure {
    fn from(error: PromoteError) -> Self {
        match error {
            PromoteError::Engine(error) => error.into(),
            PromoteError::Refused(what) => Failure::Usage(what),
            conflicts @ PromoteError::Conflicts(_) => Failure::Conflict(conflicts.to_string()),
        }
    }
}
