//! `blame`: for each property of a node or an edge, the event that gave it its value.

use std::collections::BTreeSet;

use log::{Address, Missing};
use serde_json::json;

use super::failure::Failure;
use super::shell::Shell;
use super::world;
use crate::engine::EngineError;
use crate::history::{Part, writers};
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling blame branch:short                who gave each property its value, and when
  starling blame branch:short --at main@600
  starling show main@42                      an address that it told, whole";

/// Tells for each property of a node or an edge who gave it its value: one line each
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The node or the edge; the beginning of its id will do
    id: String,
    /// When: BRANCH@OFFSET; now if it is left out
    #[arg(long, value_name = "ADDRESS")]
    at: Option<Address>,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let address = shell.address(args.at);
    let (graph, branch, _) = world::at(&store, &address, shell)?;
    let element = world::find(&store, &graph, &branch, &args.id, &address)?;
    let part = |property: Option<&str>| Part {
        id: element.id().into(),
        property: property.map(Into::into),
    };
    let names = element.properties().iter().map(|(name, _)| part(Some(name)));
    let wanted: BTreeSet<Part> = std::iter::once(part(None)).chain(names).collect();
    let snapshots = Snapshots::beside(store.path());
    let found = writers(&*store, &snapshots, branch.id, &graph, wanted);
    for (part, event) in found.map_err(EngineError::from)? {
        let value = part.property.as_deref().and_then(|name| element.property(name));
        let value = value.map(|value| value.to_json());
        let address = format!("{}@{}", branch.name, event.offset());
        let (time, actor, kind) = (event.time(), event.actor(), event.kind());
        shell.either(
            || {
                json!({
                    "id": part.id.as_str(), "property": part.property.as_deref(), "value": value,
                    "address": address, "time": time.to_string(), "actor": actor, "kind": kind,
                })
            },
            || {
                let what = match (&part.property, &value) {
                    (Some(name), Some(value)) => format!("{name} = {value}"),
                    _ => format!("({}) {}", element.type_name(), part.id),
                };
                format!("{address}  {time}  {actor}  {kind}  {what}")
            },
        )?;
    }
    Ok(())
}
