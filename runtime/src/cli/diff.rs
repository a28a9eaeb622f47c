//! `diff`: where histories part, and how their worlds differ: what, and who wrote each side of it.

mod told;

use std::collections::{BTreeMap, BTreeSet};

use log::{Address, Branch, Event, Head, Missing, Offset, Store, read_one};
use projection::{Difference, diff};
use serde_json::{Value, json};

use super::failure::Failure;
use super::sentence::Narrator;
use super::shell::Shell;
use crate::engine::EngineError;
use crate::history::{Part, Side, figures, first_difference, sides, writers};
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling diff main@100 main@200     what changed in between
  starling diff main idea             two branches: where they part, what differs, who wrote it
  starling diff main idea --stat      only how many, and what each has done
  starling diff main a b c            several, each against the first
  starling diff main idea --json";

/// How many differences are told.
const TOLD_MAX: usize = 100;

/// Compares histories and worlds; ends with 1 when worlds differ
///
/// Nodes and edges are the same if they have the same derivation, so doing the same again is no
/// difference.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The first: BRANCH, BRANCH@OFFSET or a tag
    #[arg(value_name = "ADDRESS")]
    one: Address,
    /// What is compared with it
    #[arg(value_name = "ADDRESS", required = true)]
    others: Vec<Address>,
    /// Tell only how many nodes and edges differ, and what each side has done
    #[arg(long)]
    stat: bool,
    /// Tell every difference, however many there are
    #[arg(long)]
    all: bool,
}

/// One side: its address as it was written, and what it means.
struct Named<'a> {
    address: &'a Address,
    branch: Branch,
    side: Side,
}

impl Named<'_> {
    fn place(&self) -> (log::BranchId, Head) {
        (self.side.branch, self.side.cut)
    }
}

/// What two sides have found of each other.
struct Comparison<'g> {
    parted: Option<Offset>,
    /// The events where they part.
    events: [Option<Event>; 2],
    differences: Vec<Difference<'g>>,
    /// Who wrote what stands on each side.
    authors: [BTreeMap<Part, Event>; 2],
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let snapshots = Snapshots::beside(store.path());
    let addresses: Vec<&Address> = std::iter::once(&args.one).chain(&args.others).collect();
    let mut places = Vec::new();
    for address in &addresses {
        places.push(shell.resolve(&*store, address)?);
    }
    let heads: Vec<_> = places.iter().map(|(branch, cut)| (branch.id, *cut)).collect();
    let folded = sides(&*store, &snapshots, &heads).map_err(EngineError::from)?;
    let named = addresses.into_iter().zip(places).zip(folded);
    let named: Vec<Named<'_>> =
        named.map(|((address, (branch, _)), side)| Named { address, branch, side }).collect();
    let told = if args.all || shell.json() { usize::MAX } else { TOLD_MAX };
    let mut same = true;
    for other in &named[1..] {
        let found = compare(&store, &snapshots, [&named[0], other], args.stat, told)?;
        same &= found.differences.is_empty();
        let sides = [&named[0], other];
        if shell.json() {
            shell.line(to_json(sides, &found, args.stat))?;
        } else {
            tell(&sides, &found, args.stat, told, shell)?;
        }
    }
    if !shell.json() {
        told::table(&named.iter().map(|of| (of.address, figures(&of.side))).collect::<Vec<_>>())
            .into_iter()
            .try_for_each(|line| shell.line(line))?;
    }
    if same { Ok(()) } else { Err(Failure::Differs) }
}

fn compare<'g>(
    store: &Store,
    snapshots: &Snapshots,
    sides: [&'g Named<'_>; 2],
    stat: bool,
    told: usize,
) -> Result<Comparison<'g>, Failure> {
    let [one, other] = sides;
    let parted = first_difference(store, one.place(), other.place())?;
    let mut events = [None, None];
    if let Some(offset) = parted {
        for (event, side) in events.iter_mut().zip(sides) {
            if offset < side.side.cut.next() {
                *event = Some(read_one(store, side.side.branch, offset)?);
            }
        }
    }
    let graphs = sides.map(|side| &side.side.state.graph);
    let differences = diff(graphs[0], graphs[1]);
    let wanted = differences.iter().take(if stat { 0 } else { told }).flat_map(parts);
    let wanted: BTreeSet<Part> = wanted.collect();
    let authors = |side: &Named<'_>| {
        let world = &side.side.state.graph;
        let found = writers(store, snapshots, side.side.branch, world, wanted.clone());
        found.map_err(|error| Failure::from(EngineError::from(error)))
    };
    let authors = [authors(one)?, authors(other)?];
    Ok(Comparison { parted, events, differences, authors })
}

/// What of an element differs: that it is there, or some of its properties.
fn parts(difference: &Difference<'_>) -> Vec<Part> {
    let part = |property: Option<&str>| Part {
        id: difference.id.into(),
        property: property.map(Into::into),
    };
    if difference.before.is_none() || difference.after.is_none() {
        return vec![part(None)];
    }
    difference.properties().into_iter().map(|(name, ..)| part(Some(name))).collect()
}

/// Who wrote a part on a side: the address of the event, and its actor.
fn author(side: &Named<'_>, authors: &BTreeMap<Part, Event>, part: &Part) -> Option<Value> {
    let event = authors.get(part)?;
    let address = format!("{}@{}", side.branch.name, event.offset());
    Some(json!({"address": address, "actor": event.actor(), "kind": event.kind()}))
}

/// How many nodes and edges, and properties of those on both sides, are added, removed and changed.
fn counts(differences: &[Difference<'_>]) -> Value {
    let (mut added, mut removed, mut changed, mut properties) = (0, 0, 0, 0);
    for difference in differences {
        match (difference.before, difference.after) {
            (None, _) => added += 1,
            (_, None) => removed += 1,
            _ => {
                changed += 1;
                properties += difference.properties().len();
            }
        }
    }
    json!({"added": added, "removed": removed, "changed": changed, "properties": properties})
}

fn to_json(sides: [&Named<'_>; 2], found: &Comparison<'_>, stat: bool) -> Value {
    let [one, other] = sides;
    let event = |event: &Option<Event>| {
        event.as_ref().map(|event| {
            json!({"id": event.id().to_string(), "kind": event.kind(), "actor": event.actor()})
        })
    };
    let view = |view: Option<projection::ElementView<'_>>| {
        view.map(|view| json!({"type": view.type_name(), "properties": view.properties_json()}))
    };
    let by = |part: &Part| {
        json!({
            "one": author(one, &found.authors[0], part),
            "other": author(other, &found.authors[1], part),
        })
    };
    let list = found.differences.iter().map(|difference| {
        let mut told = json!({
            "id": difference.id, "one": view(difference.before), "other": view(difference.after),
        });
        let by = parts(difference)
            .into_iter()
            .map(|part| (part.property.clone().map_or_else(String::new, Into::into), by(&part)));
        told["by"] = Value::Object(by.collect());
        told
    });
    let list: Vec<Value> = if stat { Vec::new() } else { list.collect() };
    let numbers = |side: &Named<'_>| -> Value {
        let numbers = figures(&side.side).into_iter();
        numbers.map(|(name, count)| (name.to_string(), Value::from(count))).collect()
    };
    json!({
        "one": one.address.to_string(), "other": other.address.to_string(),
        "first_event": found.parted.map(Offset::get),
        "events": [event(&found.events[0]), event(&found.events[1])],
        "counts": counts(&found.differences),
        "differences": list,
        "figures": {"one": numbers(one), "other": numbers(other)},
    })
}

fn tell(
    sides: &[&Named<'_>; 2],
    found: &Comparison<'_>,
    stat: bool,
    told: usize,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let [one, other] = sides;
    shell.line(format_args!("{} and {}:", one.address, other.address))?;
    match found.parted {
        None => shell.line("  their events are the same")?,
        Some(offset) => {
            shell.line(format_args!("  their events part at offset {offset}:"))?;
            let mut narrator = Narrator::default();
            for (sign, event) in ['-', '+'].into_iter().zip(&found.events) {
                let line = event.as_ref().map(|event| narrator.line(event));
                let line = line.unwrap_or_else(|| "       ends before it".to_owned());
                shell.line(format_args!("  {sign} {}", line.trim_start()))?;
            }
        }
    }
    let count = found.differences.len();
    if count == 0 {
        return shell.line("  their worlds are equal");
    }
    let counts = counts(&found.differences);
    shell.line(format_args!(
        "  {count} nodes and edges differ: {} added, {} removed, {} changed in {} properties",
        counts["added"], counts["removed"], counts["changed"], counts["properties"]
    ))?;
    if stat {
        return Ok(());
    }
    for difference in found.differences.iter().take(told) {
        let by = |part: &Part| {
            [author(one, &found.authors[0], part), author(other, &found.authors[1], part)]
        };
        for line in told::difference(difference, &parts(difference), by) {
            shell.line(format_args!("  {line}"))?;
        }
    }
    if count > told {
        shell.line(format_args!("  … {} more; --all tells them", count - told))?;
    }
    Ok(())
}
