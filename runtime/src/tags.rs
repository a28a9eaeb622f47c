//! Tags: names of addresses.
//!
//! They are events of a branch of their own, `starling/tags`. To name a place of a history must not
//! change that history, else a tagged run would differ from one that is not; and as events they are
//! as durable as what they name, reach every guest and every backup, and tell who named what when.
//! The last event about a name counts.

use std::collections::BTreeMap;

use log::{
    Address, AppendError, At, Branch, BranchName, Derivation, Draft, Head, Log, LogError, Offer,
    ValueRef, link_at,
};
use serde_json::json;

use crate::clock;

/// The branch that holds them.
pub(crate) const BRANCH: &str = "starling/tags";
/// A name was given.
const SET: &str = "tag.set";
/// A name was taken away.
const FORGOTTEN: &str = "tag.forgotten";

/// All tags, by name.
///
/// # Errors
/// The store is damaged or cannot be read.
pub(crate) fn all(log: &dyn Log) -> Result<BTreeMap<String, Address>, LogError> {
    let mut tags = BTreeMap::new();
    let Some(branch) = find(log)? else { return Ok(tags) };
    for event in log::read_all(log, branch.id)? {
        let event = event?;
        let payload = event.payload();
        let text = |name: &str| payload.get(name).and_then(ValueRef::as_str);
        let Some(name) = text("tag") else { continue };
        let address = text("address").and_then(|address| address.parse::<Address>().ok());
        match (event.kind(), address) {
            (SET, Some(address)) => drop(tags.insert(name.to_owned(), address)),
            (FORGOTTEN, _) => drop(tags.remove(name)),
            _ => {}
        }
    }
    Ok(tags)
}

fn find(log: &dyn Log) -> Result<Option<Branch>, LogError> {
    Ok(log.branches()?.into_iter().find(|branch| branch.name.as_str() == BRANCH))
}

/// Lets a name mean a place, and gives its address.
pub(crate) fn set(
    log: &dyn Log,
    name: &BranchName,
    branch: &Branch,
    cut: Head,
    actor: &str,
) -> Result<Address, AppendError> {
    let at = cut.last().map_or(At::None, At::Offset);
    let address = Address { branch: branch.name.clone(), at };
    // The link says for ever which history was meant.
    let link = link_at(log, branch.id, cut)?.to_string();
    let payload = json!({"tag": name.as_str(), "address": address.to_string(), "link": link});
    say(log, SET, payload, actor)?;
    Ok(address)
}

/// Lets a name mean nothing.
pub(crate) fn forget(log: &dyn Log, name: &BranchName, actor: &str) -> Result<(), AppendError> {
    say(log, FORGOTTEN, json!({"tag": name.as_str()}), actor)
}

fn say(
    log: &dyn Log,
    kind: &str,
    payload: serde_json::Value,
    actor: &str,
) -> Result<(), AppendError> {
    let branch = match find(log)? {
        Some(branch) => branch,
        None => log.create(&BRANCH.parse().map_err(LogError::Name)?)?,
    };
    let head = branch.tip.head;
    // What stands at this place of this branch has happened once.
    let id = Derivation::new().text("tag").integer(head.count()).json(&payload).finish();
    let mut draft = Draft::new(id, kind, actor);
    draft.payload = payload.as_object().cloned().unwrap_or_default();
    draft.time = clock::now();
    let offer = Offer { drafts: vec![draft], expected: Some(head) };
    let gone = || LogError::Stopped { what: "it went away while a tag was written".to_owned() };
    log.offer(branch.id, offer).wait().ok_or_else(gone)??;
    Ok(())
}
