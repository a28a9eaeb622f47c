//! `tag`: names for addresses.

use log::{Address, Log, Missing};
use serde_json::json;

use super::failure::Failure;
use super::shell::Shell;
use crate::tags;

const EXAMPLES: &str = "\
Examples:
  starling tag                       all tags
  starling tag before-sale main@600  from now on `before-sale` may stand wherever main@600 may
  starling diff before-sale main
  starling tag before-sale main@700 --move
  starling tag before-sale --delete";

/// Names an address, lists the names, or forgets one
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The name; without one, all are listed
    name: Option<log::BranchName>,
    /// What it names: BRANCH@OFFSET; the end of a branch is named as it is now
    #[arg(value_name = "ADDRESS")]
    address: Option<Address>,
    /// Forget the name
    #[arg(long, conflicts_with = "address")]
    delete: bool,
    /// Let a name that is there mean another address
    #[arg(long = "move")]
    moved: bool,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let Some(name) = args.name else {
        let tags = tags::all(&*store)?;
        if tags.is_empty() {
            shell.say("no address has a name; next: starling tag NAME ADDRESS");
        }
        return tags.iter().try_for_each(|(name, address)| {
            shell.either(
                || json!({"tag": name, "address": address.to_string()}),
                || format!("{name}  {address}"),
            )
        });
    };
    let actor = super::append::actor(None)?;
    if args.delete {
        let was = tags::all(&*store)?.remove(name.as_str());
        let missing =
            || Failure::NotFound(format!("there is no tag `{name}`; `starling tag` lists them"));
        let was = was.ok_or_else(missing)?;
        tags::forget(&*store, &name, &actor)?;
        return shell.either(
            || json!({"forgotten": name.as_str(), "address": was.to_string()}),
            || format!("{name} named {was}; it names nothing now"),
        );
    }
    let Some(address) = args.address else {
        let found = tags::all(&*store)?.remove(name.as_str());
        let address = found.ok_or_else(|| {
            let how = format!("`starling tag {name} ADDRESS` makes it");
            Failure::NotFound(format!("there is no tag `{name}`; {how}"))
        })?;
        return shell.either(
            || json!({"tag": name.as_str(), "address": address.to_string()}),
            || address.to_string(),
        );
    };
    if store.branches()?.iter().any(|branch| branch.name == name) {
        return Err(Failure::Conflict(format!(
            "`{name}` is a branch, and a name means one thing; choose another"
        )));
    }
    let (branch, cut) = shell.resolve(&*store, &address)?;
    let known = tags::all(&*store)?.remove(name.as_str());
    if let Some(known) = known.filter(|_| !args.moved) {
        return Err(Failure::Conflict(format!(
            "`{name}` names {known} already; --move lets it name {address}"
        )));
    }
    let address = tags::set(&*store, &name, &branch, cut, &actor)?;
    shell.either(
        || json!({"tag": name.as_str(), "address": address.to_string()}),
        || format!("{name} names {address}"),
    )
}
