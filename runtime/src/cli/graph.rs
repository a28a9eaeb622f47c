//! `graph`: the world at an address.

use log::{Address, Missing};
use projection::World;

use super::failure::Failure;
use super::shell::Shell;
use super::world;

const EXAMPLES: &str = "\
Examples:
  starling graph                     the world now
  starling graph --at main@600       the world after event 600
  starling graph --json | jq '.nodes | length'";

/// Shows the world: every node and edge, with its properties
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// When: BRANCH@OFFSET; now if it is left out
    #[arg(long, value_name = "ADDRESS")]
    at: Option<Address>,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let address = shell.address(args.at);
    let (graph, _, _) = world::at(&store, &address, shell)?;
    if shell.json() {
        return shell.line(graph.to_json());
    }
    let text = |element: projection::ElementView<'_>| {
        let properties = serde_json::Value::Object(element.properties_json());
        format!("{} {properties}", element.id())
    };
    for node in World::nodes(&graph) {
        let node = graph.at(node.into()).expect("a listed node is there");
        shell.line(format_args!("({}) {}", node.type_name(), text(node)))?;
    }
    for edge in World::edges(&graph) {
        let edge = graph.at(edge.into()).expect("a listed edge is there");
        let (from, to) = edge.ends().expect("an edge has ends");
        let end = |node: projection::NodeRef| graph.at(node.into()).map_or("?", |node| node.id());
        let (from, to) = (end(from), end(to));
        shell.line(format_args!("({from})-[{}]->({to}) {}", edge.type_name(), text(edge)))?;
    }
    let (nodes, edges) = (graph.node_count(), graph.edge_count());
    shell.say(format_args!("{nodes} nodes and {edges} edges at {address}"));
    Ok(())
}
