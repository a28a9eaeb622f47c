//! A query as a tree: clauses, each of which turns rows into rows.

use smol_str::SmolStr;

use crate::pattern::{Body, Expr, Name, Span};

/// One clause.
#[derive(Clone, Debug)]
pub(crate) enum Clause {
    /// `[OPTIONAL] MATCH …`: each row once for each match.
    Match { body: Body, optional: bool },
    /// `UNWIND list AS name`: each row once for each item.
    Unwind { list: Expr, name: Name },
    /// `WITH …`, or `RETURN …` at the end.
    Project(Projection),
}

/// What is kept of each row, of which rows, in which order.
#[derive(Clone, Debug)]
pub(crate) struct Projection {
    /// Where its first word stands.
    pub(crate) span: Span,
    pub(crate) kind: ProjectionKind,
    pub(crate) distinct: bool,
    /// `*`: all that is named.
    pub(crate) star: bool,
    pub(crate) items: Vec<Item>,
    pub(crate) order: Vec<OrderItem>,
    pub(crate) skip: Option<Expr>,
    pub(crate) limit: Option<Expr>,
    pub(crate) condition: Option<Expr>,
}

/// Which word a projection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProjectionKind {
    With,
    Return,
    /// It was not written: a pattern alone returns all that it names.
    Implied,
}

/// `expression [AS name]`
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) expr: Expr,
    pub(crate) name: Option<Name>,
    /// The expression as it was written, which names its column.
    pub(crate) text: SmolStr,
}

/// `expression [ASC | DESC]`
#[derive(Clone, Debug)]
pub(crate) struct OrderItem {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
}
