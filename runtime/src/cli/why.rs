//! `why`: every change of an element or of one of its properties, and the causes that led to the
//! last.

use std::collections::HashMap;

use log::{Address, Cause, ChangeRef, Event, EventId, Missing, Offset};
use serde_json::{Value, json};

use super::failure::Failure;
use super::sentence::Narrator;
use super::shell::Shell;
use super::world;
use crate::engine::resolved;

const EXAMPLES: &str = "\
Examples:
  starling why branch:short.tau            who changed it, and from what
  starling why branch:short                every change of the node
  starling why colony --at main@600        as far as offset 600";

/// How many changes are told; the first and the last ones.
const TOLD_MAX: usize = 12;
/// How many causes are told, from the last change back.
const CAUSES_MAX: usize = 20;

/// Tells why something is as it is: each change, by whom, and the causes behind the last one
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// A node or an edge, or one of its properties: ID or ID.PROPERTY
    #[arg(value_name = "ID[.PROPERTY]")]
    what: String,
    /// When: BRANCH@OFFSET; now if it is left out
    #[arg(long, value_name = "ADDRESS")]
    at: Option<Address>,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let address = shell.address(args.at);
    let (graph, branch, cut) = world::at(&store, &address, shell)?;
    let (id, property) = subject(&graph, &args.what, &address)?;
    let mut narrator = Narrator::default();
    let mut story = Story::default();
    for event in log::read(&*store, branch.id, Offset::ZERO..cut.next())? {
        let event = event?;
        let line = narrator.line(&event);
        if touches(&event, &id, property.as_deref()) {
            story.changes.push((event.offset(), line));
            story.last = Some(event.clone());
        }
        story.offsets.insert(event.id(), event.offset());
    }
    let causes = causes(&store, branch.id, &story)?;
    if shell.json() {
        let offsets: Vec<u64> = story.changes.iter().map(|(offset, _)| offset.get()).collect();
        let causes: Vec<u64> = causes.iter().map(|event| event.offset().get()).collect();
        return shell.line(json!({
            "id": id, "property": property, "changes": offsets, "causes": causes,
        }));
    }
    tell(&id, property.as_deref(), &graph, &story, &causes, shell)
}

/// What was found on the way through the log.
#[derive(Default)]
struct Story {
    changes: Vec<(Offset, String)>,
    last: Option<Event>,
    offsets: HashMap<EventId, Offset>,
}

/// The element, and the property if one is meant. An id may itself contain a dot.
fn subject(
    graph: &projection::Graph,
    what: &str,
    address: &Address,
) -> Result<(String, Option<String>), Failure> {
    let whole = world::element(graph, what, address).map(|element| element.id().to_owned());
    match (whole, what.rsplit_once('.')) {
        (Ok(id), _) => Ok((id, None)),
        (Err(failure), None) => Err(failure),
        (Err(_), Some((id, property))) => {
            let element = world::element(graph, id, address)?;
            Ok((element.id().to_owned(), Some(property.to_owned())))
        }
    }
}

/// Whether an event wrote an element, or one of its properties.
fn touches(event: &Event, id: &str, property: Option<&str>) -> bool {
    resolved(event).iter().filter(|change| change.target == id).any(|change| {
        let Some(property) = property else { return true };
        match change.change {
            ChangeRef::Create { properties, .. }
            | ChangeRef::Ensure { properties, .. }
            | ChangeRef::Link { properties, .. }
            | ChangeRef::EnsureLink { properties, .. }
            | ChangeRef::Write { properties, .. } => properties.get_encoded(property).is_some(),
            ChangeRef::Unset { names, .. } => names.iter().any(|name| name == property),
            ChangeRef::Remove { .. } => true,
        }
    })
}

/// The last change and what caused it, back to an event from outside.
fn causes(store: &log::Store, branch: log::BranchId, story: &Story) -> Result<Vec<Event>, Failure> {
    let mut chain: Vec<Event> = story.last.clone().into_iter().collect();
    while let Some(last) = chain.last()
        && let Some(cause) = last.cause()
    {
        let (Cause::Firing { event, .. } | Cause::Action { action: event }) = cause;
        let Some(offset) = story.offsets.get(&event) else { break };
        chain.push(log::read_one(store, branch, *offset)?);
    }
    Ok(chain)
}

fn tell(
    id: &str,
    property: Option<&str>,
    graph: &projection::Graph,
    story: &Story,
    causes: &[Event],
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let name = property.map_or_else(|| id.to_owned(), |property| format!("{id}.{property}"));
    let value = property.and_then(|property| graph.element(id)?.property(property));
    let now = value.map_or(String::new(), |value: log::ValueRef<'_>| {
        let value: Value = value.to_json();
        format!(" is {value},")
    });
    shell.line(format_args!("{name}{now} after {} changes", story.changes.len()))?;
    let skipped = story.changes.len().saturating_sub(TOLD_MAX);
    for (number, (_, line)) in story.changes.iter().enumerate() {
        let half = TOLD_MAX / 2;
        if skipped > 0 && number == half {
            shell.line(format_args!("       … {skipped} more"))?;
        }
        if skipped == 0 || number < half || number >= half + skipped {
            shell.line(line)?;
        }
    }
    if causes.len() > 1 {
        shell.line("the last change, back to what came from outside:")?;
        let mut narrator = Narrator::default();
        for (depth, event) in causes.iter().take(CAUSES_MAX).enumerate() {
            shell.line(format_args!("{}{}", "  ".repeat(depth.min(20)), narrator.line(event)))?;
        }
        if causes.len() > CAUSES_MAX {
            shell.line(format_args!("… {} causes more", causes.len() - CAUSES_MAX))?;
        }
    }
    Ok(())
}
