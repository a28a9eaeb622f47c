//! Why an event cannot be applied, told with the facts that its author needs to mend it.
#![allow(missing_docs, reason = "the fields are facts named by the message that shows them")]

use log::Offset;

/// Why an event was refused. The graph is as it was before.
///
/// `change` is the number of the change in the event, from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    #[error(
        "the event has offset {found}, the graph is due for {expected}: apply every event of the \
         branch once, in order"
    )]
    Gap { expected: Offset, found: Offset },
    #[error(
        "change {change}: `{id}` exists already; choose another id, or write `{instead}` to keep \
         the one that is there"
    )]
    Exists { change: usize, id: String, instead: &'static str },
    #[error(
        "change {change}: cannot {operation} `{id}`: there is no such node or edge; create it \
         first, in an earlier change or event"
    )]
    Missing { change: usize, operation: &'static str, id: String },
    #[error(
        "change {change}: a `{type_name}` edge cannot go {direction} `{id}`: there is no such \
         node; create it first, in an earlier change or event"
    )]
    MissingEnd { change: usize, type_name: String, direction: &'static str, id: String },
    #[error(
        "change {change}: a `{type_name}` edge cannot go {direction} `{id}`: that is an edge, and \
         edges join nodes"
    )]
    EndIsEdge { change: usize, type_name: String, direction: &'static str, id: String },
    #[error(
        "change {change}: `{reference}` must name an earlier change of the same event, from #0 to \
         #{change} exclusive"
    )]
    Reference { change: usize, reference: String },
    #[error(
        "`{id}` cannot be chosen as an id: {what}; use 1 to 200 characters without `#` and \
         without control characters, such as `trip:shenzhen`"
    )]
    ChosenId { id: String, what: &'static str },
    #[error(
        "change {change}: `{id}` has version {actual}, the change was made for version \
         {expected}; read it again and decide anew"
    )]
    Version { change: usize, id: String, expected: u64, actual: u64 },
    #[error(
        "change {change}: cannot {operation} to `{property}` of `{id}`: it takes {wanted}, and \
         {found}"
    )]
    WrongType {
        change: usize,
        operation: &'static str,
        id: String,
        property: String,
        wanted: &'static str,
        found: String,
    },
    #[error(
        "change {change}: adding {addend} to `{property}` of `{id}`, which is {value}, overflows \
         a 64-bit integer; store it as a float"
    )]
    Overflow { change: usize, id: String, property: String, value: String, addend: String },
    #[error(
        "change {change}: adding {addend} to `{property}` of `{id}`, which is {value}, gives a \
         number that is not finite"
    )]
    NotFinite { change: usize, id: String, property: String, value: String, addend: String },
    #[error(
        "change {change}: `{property}` of `{id}` would nest more than {limit} deep; flatten it or \
         make the items nodes"
    )]
    TooDeep { change: usize, id: String, property: String, limit: usize },
    #[error("change {change}: a graph can number {limit} {what} in its life, and all are used")]
    Full { change: usize, what: &'static str, limit: u32 },
    #[error(
        "{}`{id}` would not fit the schema of `{type_name}`{}: {what}; mend the value, or declare \
         another schema",
        named(*.change),
        place(.at)
    )]
    Schema { change: Option<usize>, id: String, type_name: String, at: String, what: String },
    #[error("the schema of `{type_name}` cannot be used: {what}")]
    BadSchema { type_name: String, what: String },
}

fn named(change: Option<usize>) -> String {
    change.map_or(String::new(), |change| format!("change {change}: "))
}

fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!(" at {at}") }
}
