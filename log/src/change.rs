//! What an event does to the graph: the list of its changes, applied all or none.
//!
//! The log carries changes and checks their form; what they do is the business of `projection`.
//! Inside an event, `#3` names the element that change number 3 of the same event makes.
//!
//! | change | as JSON |
//! |---|---|
//! | create a node, with a derived id (`null`) or a chosen one | `{"create": null, "type": "Task", "properties": {…}}` |
//! | create a node unless its id exists | `{"ensure": "task:1", "type": "Task", "properties": {…}}` |
//! | create an edge | `{"link": "OWNS", "from": "a", "to": "b", "id": "e", "properties": {…}}` |
//! | create an edge unless one of that type joins these ends | `{"ensure_link": "OWNS", "from": "a", "to": "b", "properties": {…}}` |
//! | write properties, add numbers to them, append an item to lists | `{"set"\|"add"\|"append": "a", "properties": {…}, "if_version": 3}` |
//! | drop properties | `{"unset": "a", "names": ["x"]}` |
//! | remove a node with its edges, or an edge | `{"remove": "a"}` |

mod json;
mod stored;

pub use stored::{ChangeRef, ChangesRef, NamesRef};
pub(crate) use stored::{check_changes, write_changes};

use serde_json::{Map, Value};
use smol_str::SmolStr;

/// How a write joins the value that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteOp {
    /// The new value replaces the old one.
    Set,
    /// A number is added to a number; a missing one counts as 0.
    Add,
    /// One item is put at the end of a list; a missing one counts as empty.
    Append,
}

/// One change, owned: how a change is written.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the table above and `ChangeRef` describe the fields")]
pub enum Change {
    /// A new node; the id is derived from the event unless one is chosen.
    Create { id: Option<SmolStr>, type_name: SmolStr, properties: Map<String, Value> },
    /// A node, created if it is absent.
    Ensure { id: SmolStr, type_name: SmolStr, properties: Map<String, Value> },
    /// A new edge; the id is derived from the event unless one is chosen.
    Link {
        id: Option<SmolStr>,
        type_name: SmolStr,
        from: SmolStr,
        to: SmolStr,
        properties: Map<String, Value>,
    },
    /// An edge named by its type and ends, created if it is absent.
    EnsureLink { type_name: SmolStr, from: SmolStr, to: SmolStr, properties: Map<String, Value> },
    /// Properties written, added to or appended to.
    Write { op: WriteOp, id: SmolStr, properties: Map<String, Value>, if_version: Option<u64> },
    /// Properties dropped.
    Unset { id: SmolStr, names: Vec<SmolStr> },
    /// An element removed; the edges at a node fall with it.
    Remove { id: SmolStr },
}

/// The number of the change that `#3` refers to, if `id` is such a reference.
#[must_use]
pub fn change_reference(id: &str) -> Option<usize> {
    let digits = id.strip_prefix('#')?;
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if plain && (digits == "0" || !digits.starts_with('0')) { digits.parse().ok() } else { None }
}
