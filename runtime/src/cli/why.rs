//! `why`: the proof of a value: every change of it, by which behavior, on which match, having read
//! what, and so on for each cause up to what came from outside.

mod tree;

use log::{Address, Branch, Event, Missing};
use serde_json::{Value, json};

use super::failure::Failure;
use super::shell::Shell;
use super::world;
use crate::engine::EngineError;
use crate::history::{Changed, Prover, changes};
use crate::snapshot::Snapshots;
use tree::Tree;

const EXAMPLES: &str = "\
Examples:
  starling why branch:short.tau            every change of it, and what led to each
  starling why branch:short                every change of the node
  starling why main@42                     what led to an event
  starling why colony --at main@600        as far as offset 600
  starling why branch:short.tau --all      however long it is";

/// How many changes are told; the first and the last ones.
const TOLD_MAX: usize = 12;
/// How many firings are told with what they read.
const FIRINGS_MAX: usize = 40;

/// Proves a value: each change of it, by whom, on which match, having read what, and why that
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// A node or an edge, one of its properties, or an event: ID, ID.PROPERTY or ADDRESS
    #[arg(value_name = "ID[.PROPERTY]|ADDRESS")]
    what: String,
    /// When: BRANCH@OFFSET; now if it is left out
    #[arg(long, value_name = "ADDRESS")]
    at: Option<Address>,
    /// Tell every change and every cause, however many there are
    #[arg(long)]
    all: bool,
}

/// What is proven.
struct Claim {
    branch: Branch,
    title: String,
    id: Option<String>,
    property: Option<String>,
    changes: Vec<Changed>,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let snapshots = Snapshots::beside(store.path());
    let claim = claim(&store, &snapshots, &args, shell)?;
    let (told, left) = bounded(&claim.changes, if args.all { usize::MAX } else { TOLD_MAX });
    let prover = Prover { log: &*store, snapshots: &snapshots, branch: claim.branch.id };
    let events: Vec<Event> = told.iter().map(|changed| changed.event.clone()).collect();
    let most = if args.all { usize::MAX } else { FIRINGS_MAX };
    let proof = prover.prove(&events, most).map_err(EngineError::from)?;
    let mut tree = Tree::new(&claim.branch, &proof, args.all);
    if shell.json() {
        let changes: Vec<u64> =
            claim.changes.iter().map(|changed| changed.event.offset().get()).collect();
        let causes = tree.causes(&claim.changes);
        let proven: Vec<Value> = told.iter().map(|changed| tree.to_json(changed)).collect();
        return shell.line(json!({
            "id": claim.id, "property": claim.property, "changes": changes, "causes": causes,
            "proof": proven, "left_out": left,
        }));
    }
    shell.line(&claim.title)?;
    for (number, changed) in told.iter().enumerate() {
        if left > 0 && number == TOLD_MAX / 2 {
            shell.line(format_args!("  … {left} changes more; --all tells them"))?;
        }
        tree.tell(changed, &mut |line| shell.line(line))?;
    }
    Ok(())
}

/// The first and the last of the changes, and how many are left out between them.
fn bounded(changes: &[Changed], most: usize) -> (Vec<&Changed>, usize) {
    if changes.len() <= most {
        return (changes.iter().collect(), 0);
    }
    let (first, last) = (most / 2, changes.len() - (most - most / 2));
    let told = changes[..first].iter().chain(&changes[last..]);
    (told.collect(), last - first)
}

fn claim(
    store: &log::Store,
    snapshots: &Snapshots,
    args: &Args,
    shell: &Shell<'_>,
) -> Result<Claim, Failure> {
    let address = shell.address(args.at.clone());
    let (graph, branch, _) = world::at(store, &address, shell)?;
    if graph.element(&args.what).is_none()
        && let Some((branch, event)) = world::event(store, &args.what, &address, shell)?
    {
        let title = format!("{}@{} is there because of", branch.name, event.offset());
        let changes = vec![Changed { event, values: Vec::new() }];
        return Ok(Claim { branch, title, id: None, property: None, changes });
    }
    let (id, property) = subject(store, &graph, &branch, &args.what, &address)?;
    let element = graph.element(&id).expect("it was just found");
    let changes = changes(store, snapshots, branch.id, element, property.as_deref());
    let changes = changes.map_err(EngineError::from)?;
    let name = property.as_ref().map_or_else(|| id.clone(), |property| format!("{id}.{property}"));
    let value = property.as_deref().and_then(|property| element.property(property));
    let now = value.map_or(String::new(), |value| format!(" is {},", value.to_json()));
    let title = format!("{name}{now} after {} changes", changes.len());
    Ok(Claim { branch, title, id: Some(id), property, changes })
}

/// The element, and the property if one is meant. An id may itself contain a dot.
fn subject(
    store: &log::Store,
    graph: &projection::Graph,
    branch: &Branch,
    what: &str,
    address: &Address,
) -> Result<(String, Option<String>), Failure> {
    match (world::element(graph, what, address), what.rsplit_once('.')) {
        (Ok(element), _) => Ok((element.id().to_owned(), None)),
        (Err(_), None) => {
            world::find(store, graph, branch, what, address).map(|e| (e.id().to_owned(), None))
        }
        (Err(_), Some((id, property))) => {
            let element = world::find(store, graph, branch, id, address)?;
            Ok((element.id().to_owned(), Some(property.to_owned())))
        }
    }
}
