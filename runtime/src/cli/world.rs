//! The world at an address, for commands that look at it.

use log::{Address, Branch, Head, Store};
use projection::{ElementView, Graph};

use super::failure::Failure;
use super::shell::Shell;
use crate::engine::EngineError;
use crate::snapshot::Snapshots;

/// The graph at an address, with the branch and the head that it means.
pub(super) fn at(
    store: &Store,
    address: &Address,
    shell: &Shell<'_>,
) -> Result<(Graph, Branch, Head), Failure> {
    let (branch, cut) = shell.resolve(store, address)?;
    let graph = Snapshots::beside(store.path()).graph_at(store, branch.id, cut);
    let graph = graph.map_err(EngineError::from)?;
    Ok((graph, branch, cut))
}

/// The element that an id or the beginning of one means.
pub(super) fn element<'g>(
    graph: &'g Graph,
    id: &str,
    address: &Address,
) -> Result<ElementView<'g>, Failure> {
    if let Some(element) = graph.element(id) {
        return Ok(element);
    }
    let found = graph.find_prefix(id, 4);
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(Failure::NotFound(format!(
            "there is no node or edge `{id}` at {address}; `starling graph --at {address}` lists them"
        ))),
        several => {
            let ids: Vec<&str> = several.iter().map(|element| element.id()).collect();
            Err(Failure::Usage(format!("`{id}` may mean {}, …; write more of it", ids.join(", "))))
        }
    }
}
