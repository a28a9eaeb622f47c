//! The world at an address, and what ids and addresses mean there, for commands that look at it.

use std::ops::ControlFlow;

use log::{Address, Branch, ChangeRef, Event, Head, Store, read_one};
use projection::{ElementView, Graph};

use super::failure::Failure;
use super::shell::Shell;
use crate::engine::{EngineError, resolved};
use crate::history::{backwards, event_by_id};
use crate::snapshot::Snapshots;
use crate::tags;

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

/// The element that an id means in the world of a branch; where it was and is gone, the message
/// says until when.
pub(super) fn find<'g>(
    store: &Store,
    graph: &'g Graph,
    branch: &Branch,
    id: &str,
    address: &Address,
) -> Result<ElementView<'g>, Failure> {
    let missing = match element(graph, id, address) {
        Err(missing @ Failure::NotFound(_)) => missing,
        found => return found,
    };
    let mut last = None;
    backwards(store, branch.id, graph.head(), |event| {
        let named = |change: &crate::engine::Resolved<'_>| change.target.starts_with(id);
        if let Some(change) = resolved(event).iter().rev().find(|change| named(change)) {
            let removes = matches!(change.change, ChangeRef::Remove { .. });
            last = Some((change.target.clone(), event.offset(), removes));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    let Some((gone, offset, removes)) = last else { return Err(missing) };
    let name = &branch.name;
    let then = if removes { offset.get().saturating_sub(1) } else { offset.get() };
    Err(Failure::NotFound(format!(
        "`{gone}` is not there any more at {address}: {name}@{offset} is the last event that wrote it, \
         and `--at {name}@{then}` has it as it was"
    )))
}

/// The event that an address, a tag or the beginning of an event's id means, with its branch;
/// `None` if the text is none of them.
pub(super) fn event(
    store: &Store,
    text: &str,
    at: &Address,
    shell: &Shell<'_>,
) -> Result<Option<(Branch, Event)>, Failure> {
    let is_tag = || Ok::<_, Failure>(tags::all(store)?.contains_key(text));
    if text.contains('@') || is_tag()? {
        let Ok(address) = text.parse::<Address>() else { return Ok(None) };
        let (branch, cut) = shell.resolve(store, &address)?;
        let Some(offset) = cut.last() else {
            return Err(Failure::NotFound(format!("{address} is before the first event")));
        };
        let event = read_one(store, branch.id, offset)?;
        return Ok(Some((branch, event)));
    }
    let digits = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if !digits || !(4..=32).contains(&text.len()) {
        return Ok(None);
    }
    let (branch, cut) = shell.resolve(store, at)?;
    match event_by_id(store, branch.id, cut, text)? {
        (_, true) => {
            Err(Failure::Usage(format!("several events begin with {text}; write more of it")))
        }
        (found, false) => Ok(found.map(|event| (branch, event))),
    }
}
