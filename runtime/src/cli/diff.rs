//! `diff`: where two addresses part, and how their worlds differ.

use log::{Address, BranchId, Head, Missing, Offset, Store};
use projection::{Difference, diff};
use serde_json::{Value, json};

use super::failure::Failure;
use super::shell::Shell;
use super::world;

const EXAMPLES: &str = "\
Examples:
  starling diff main@100 main@200     what changed in between
  starling diff main idea             two branches
  starling diff main idea --json";

/// How many differences are told.
const TOLD_MAX: usize = 100;

/// Compares two worlds; ends with 1 when they differ
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// One address: BRANCH or BRANCH@OFFSET
    #[arg(value_name = "ADDRESS")]
    one: Address,
    /// The other
    #[arg(value_name = "ADDRESS")]
    other: Address,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let (one, one_branch, one_cut) = world::at(&store, &args.one, shell)?;
    let (other, other_branch, other_cut) = world::at(&store, &args.other, shell)?;
    let parted = first_difference(&store, (one_branch.id, one_cut), (other_branch.id, other_cut))?;
    let differences = diff(&one, &other);
    if shell.json() {
        let list: Vec<Value> = differences.iter().map(to_json).collect();
        shell.line(json!({
            "one": args.one.to_string(), "other": args.other.to_string(),
            "first_event": parted.map(Offset::get), "differences": list,
        }))?;
    } else {
        match parted {
            None => shell.line("the events are the same")?,
            Some(offset) => shell.line(format_args!("the events part at offset {offset}"))?,
        }
        for difference in differences.iter().take(TOLD_MAX) {
            shell.line(told(difference))?;
        }
        if differences.len() > TOLD_MAX {
            shell.line(format_args!("… {} more", differences.len() - TOLD_MAX))?;
        }
        let count = differences.len();
        shell.say(match count {
            0 => "the worlds are equal".to_owned(),
            _ => format!("{count} nodes and edges differ"),
        });
    }
    let same = differences.is_empty();
    if same { Ok(()) } else { Err(Failure::Differs) }
}

/// The first offset at which two lines of history hold other events.
fn first_difference(
    store: &Store,
    one: (BranchId, Head),
    other: (BranchId, Head),
) -> Result<Option<Offset>, Failure> {
    let shared = one.1.min(other.1);
    let mut theirs = log::read(store, other.0, Offset::ZERO..shared.next())?;
    for event in log::read(store, one.0, Offset::ZERO..shared.next())? {
        let event = event?;
        let same = theirs.next().transpose()?.is_some_and(|their| their == event);
        if !same {
            return Ok(Some(event.offset()));
        }
    }
    Ok((one.1 != other.1).then(|| shared.next()))
}

/// One difference as JSON: the id, and each side or the properties that differ.
fn to_json(difference: &Difference<'_>) -> Value {
    let side = |view: Option<projection::ElementView<'_>>| {
        view.map(|view| json!({"type": view.type_name(), "properties": view.properties_json()}))
    };
    json!({"id": difference.id, "one": side(difference.before), "other": side(difference.after)})
}

/// One difference as lines: what was added, removed or changed.
fn told(difference: &Difference<'_>) -> String {
    let whole = |sign: char, view: projection::ElementView<'_>| {
        let properties = Value::Object(view.properties_json());
        format!("{sign} ({}) {} {properties}", view.type_name(), view.id())
    };
    match (difference.before, difference.after) {
        (Some(gone), None) => whole('-', gone),
        (None, Some(new)) => whole('+', new),
        _ => {
            let text = |value: Option<log::ValueRef<'_>>| {
                value.map_or("nothing".to_owned(), |value| value.to_json().to_string())
            };
            let changed = difference.properties();
            let changed = changed
                .into_iter()
                .map(|(name, one, other)| format!("{name} {} -> {}", text(one), text(other)));
            format!("~ {}: {}", difference.id, changed.collect::<Vec<_>>().join(", "))
        }
    }
}
