//! `show`: one event by its address, or one node or edge by its id.

use log::{Address, Escapes, Event, Missing, Store};
use projection::World;
use serde_json::{Value, json};

use super::failure::Failure;
use super::shell::Shell;
use super::world;

const EXAMPLES: &str = "\
Examples:
  starling show main@42                    an event, whole
  starling show 9f2c41d0                   the same by its id; the beginning of one will do
  starling show branch:short               a node or an edge as it is now
  starling show branch:short --at main@42  and as it was then; the beginning of an id will do";

/// Shows one event, node or edge, whole
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// An address such as main@42, a tag, or the id of an event, a node or an edge
    #[arg(value_name = "ADDRESS|ID")]
    what: String,
    /// When to look at a node or edge: BRANCH@OFFSET
    #[arg(long, value_name = "ADDRESS")]
    at: Option<Address>,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let address = shell.address(args.at);
    let (graph, branch, _) = world::at(&store, &address, shell)?;
    if graph.element(&args.what).is_none()
        && let Some((_, event)) = world::event(&store, &args.what, &address, shell)?
    {
        return show_event(&store, &event, shell);
    }
    let element = world::find(&store, &graph, &branch, &args.what, &address)?;
    let ends = element.ends().map(|(from, to)| {
        let end = |node: projection::NodeRef| graph.at(node.into()).map(|node| node.id());
        json!({"from": end(from), "to": end(to)})
    });
    let mut whole = json!({
        "id": element.id(), "type": element.type_name(), "version": element.version(),
        "changed": element.changed().get(), "created": element.born().offset.get(),
        "properties": element.properties_json(),
    });
    if let Some(ends) = ends {
        whole["from"] = ends["from"].clone();
        whole["to"] = ends["to"].clone();
    }
    if shell.json() { shell.line(whole) } else { pretty(&whole, shell) }
}

fn show_event(store: &Store, event: &Event, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let mut line = Vec::new();
    log::write_line(store, event, Escapes::Needed, &mut line)?;
    let line = String::from_utf8_lossy(&line).trim_end().to_owned();
    if shell.json() {
        return shell.line(line);
    }
    let whole: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
    pretty(&whole, shell)
}

fn pretty(whole: &Value, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(whole).unwrap_or_else(|_| whole.to_string());
    shell.line(text)
}
