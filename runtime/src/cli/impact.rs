//! `impact`: what followed from an event, a node or an edge: `why` forwards, as a tree.

use std::collections::{BTreeMap, BTreeSet};

use log::{Address, Branch, Event, EventId, Head, Missing, Offset, Store};
use serde_json::json;

use super::failure::Failure;
use super::sentence::what;
use super::shell::Shell;
use super::world;
use crate::engine::resolved;
use crate::history::{cause_of, fired_on, followers};

const EXAMPLES: &str = "\
Examples:
  starling impact main@42          all that followed from an event
  starling impact trip:shenzhen    from the events that wrote a node, or fired on it
  starling impact main@42 --all";

/// How many events are told.
const TOLD_MAX: usize = 200;
/// How deep the tree is indented.
const INDENT_MAX: usize = 20;

/// Tells what followed from an event, a node or an edge, as a tree
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// An address such as main@42, a tag, or the id of an event, a node or an edge
    #[arg(value_name = "ADDRESS|ID")]
    what: String,
    /// How far to look: BRANCH@OFFSET; to the end if it is left out
    #[arg(long, value_name = "ADDRESS")]
    at: Option<Address>,
    /// Tell every event, however many there are
    #[arg(long)]
    all: bool,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let most = if args.all { usize::MAX } else { TOLD_MAX };
    let address = shell.address(args.at.clone());
    let found = find(&store, &args, &address, most, shell)?;
    let (branch, (events, more)) = found;
    let mut below: BTreeMap<Option<EventId>, Vec<&Event>> = BTreeMap::new();
    let known: BTreeSet<EventId> = events.iter().map(Event::id).collect();
    for event in &events {
        let parent = cause_of(event).filter(|cause| known.contains(cause));
        below.entry(parent).or_default().push(event);
    }
    // Depth first, each event below its cause, without recursion: chains may be long.
    let mut waiting = children(&mut below, None, 0);
    while let Some((depth, event)) = waiting.pop() {
        tell(&branch, depth, event, shell)?;
        waiting.append(&mut children(&mut below, Some(event.id()), depth + 1));
    }
    if events.is_empty() {
        shell.say("nothing followed from it");
    }
    if more > 0 {
        shell.say(format_args!("{more} events more followed; --all tells them"));
    }
    Ok(())
}

/// What followed at once from an event, the last first, each with its depth.
fn children<'e>(
    below: &mut BTreeMap<Option<EventId>, Vec<&'e Event>>,
    parent: Option<EventId>,
    depth: usize,
) -> Vec<(usize, &'e Event)> {
    let children = below.remove(&parent).unwrap_or_default();
    children.into_iter().rev().map(|event| (depth, event)).collect()
}

type Followed = (Vec<Event>, u64);

fn find(
    store: &Store,
    args: &Args,
    address: &Address,
    most: usize,
    shell: &Shell<'_>,
) -> Result<(Branch, Followed), Failure> {
    let (graph, branch, cut) = world::at(store, address, shell)?;
    if graph.element(&args.what).is_none()
        && let Some((branch, event)) = world::event(store, &args.what, address, shell)?
    {
        let until = if args.at.is_some() { cut } else { branch.tip.head };
        let range = (event.offset(), until.max(Head::after(event.offset())));
        let found = followers(store, branch.id, range, most, |other| other.id() == event.id())?;
        return Ok((branch, found));
    }
    let element = world::find(store, &graph, &branch, &args.what, address)?;
    let born: Offset = element.born().offset;
    let id = element.id();
    let found = followers(store, branch.id, (born, cut), most, |event| about(event, id))?;
    Ok((branch, found))
}

/// Whether an event wrote an element, or its behavior fired on a match that holds it.
fn about(event: &Event, id: &str) -> bool {
    resolved(event).iter().any(|change| change.target == id) || fired_on(event, |bound| bound == id)
}

fn tell(
    branch: &Branch,
    depth: usize,
    event: &Event,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let address = format!("{}@{}", branch.name, event.offset());
    shell.either(
        || {
            json!({
                "address": address, "id": event.id().to_string(), "kind": event.kind(),
                "actor": event.actor(), "depth": depth,
                "cause": cause_of(event).map(|cause| cause.to_string()),
            })
        },
        || {
            let indent = "  ".repeat(depth.min(INDENT_MAX));
            format!("{indent}{address}  {}  {}  {}", event.actor(), event.kind(), what(event))
        },
    )
}
