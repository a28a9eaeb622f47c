//! Patterns: shapes of the graph, written in a subset of openCypher, and their matches.
//!
//! A pattern is read once, and asked often: for all its matches in a graph, for those that one
//! event made true or false, or whether one match stands. The language is described in
//! `PATTERNS.md`, by examples that are tests.

mod compile;
mod delta;
mod env;
mod error;
mod eval;
mod explain;
mod full;
mod functions;
mod interest;
mod lexer;
mod parse;
mod print;
mod problem;
mod program;
mod reach;
mod row;
mod search;
mod shape;
mod steps;
mod syntax;
#[cfg(test)]
mod tests;
mod value;

pub use env::Env;
pub use error::PatternError;
pub use explain::{Explanation, SearchPlan, Stage};
pub use interest::{Aspect, Fixed, Watch};
pub use problem::{ErrorClass, Fault, Problem};
pub use program::Kind;
pub use row::{DeltaRows, Row};
pub use steps::{Exhausted, Steps};

pub(crate) use compile::Compiler;
pub(crate) use lexer::Token;
pub(crate) use parse::{Parser, Reading};
pub(crate) use print::{Variable as WrittenName, write_text};
pub(crate) use program::{AnchorKey, Code, Program};
pub(crate) use search::{Aim, Halt, Search, Task};
pub(crate) use shape::{Column, Shape};
pub(crate) use syntax::{
    Aggregate, Aggregated, Body, Case, Each, EdgePart, Expr, ExprKind, Literal, Name, NodePart,
    Span,
};
#[cfg(test)]
pub(crate) use value::equal;
pub(crate) use value::{Val, compare_numbers};

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use log::Bound;
use smol_str::SmolStr;

use crate::delta::Delta;
use crate::graph::{Born, Graph};

/// A pattern, ready to be matched. Two are equal if they have the same canonical form.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    canonical: String,
    program: Program,
}

/// What a pattern binds: one place of each of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name, if it was given one.
    pub name: Option<SmolStr>,
    /// Whether it is a node, an edge or a path.
    pub kind: Kind,
}

/// The types that the elements of a pattern can have, those inside `EXISTS` included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Types {
    /// The types of nodes that are named.
    pub nodes: BTreeSet<SmolStr>,
    /// Whether some node may be of any type.
    pub any_node: bool,
    /// The types of edges that are named.
    pub edges: BTreeSet<SmolStr>,
    /// Whether some edge may be of any type.
    pub any_edge: bool,
}

/// How many slots the rows of a pattern have: those of the pattern itself come first.
fn outer_slots(program: &Program) -> usize {
    program.scopes[0].own.count_ones() as usize
}

impl Pattern {
    /// Reads a pattern: `[MATCH] (a:Task)-[:NEEDS]->(b), … [WHERE condition]`.
    ///
    /// # Errors
    /// The text is no pattern, or names something that it does not bind. The error points at the
    /// token and says what to write instead.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        let body = parse::parse(text)?;
        let program = compile::compile(text, &body)?;
        let outer = program.scopes[0].own;
        assert_eq!(outer & (outer + 1), 0, "the slots of the pattern itself come first");
        let canonical = body.to_string();
        // Brackets that are printed where none were written may nest deeper than is read.
        parse::readable::readable(text, &canonical)?;
        Ok(Pattern { text: text.to_owned(), canonical, program })
    }

    /// The text as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The one form that every pattern of the same meaning and spelling shares.
    #[must_use]
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// What it binds, in pattern order, named or not: the places of a row.
    #[must_use]
    pub fn variables(&self) -> Vec<Variable> {
        let outer = self.program.slots.iter().take(outer_slots(&self.program));
        outer.map(|slot| Variable { name: slot.name.clone(), kind: slot.kind }).collect()
    }

    /// The parameters it mentions, by name.
    #[must_use]
    pub fn parameters(&self) -> BTreeSet<SmolStr> {
        self.program.parameters.iter().cloned().collect()
    }

    /// Whether it mentions `event`.
    #[must_use]
    pub fn uses_event(&self) -> bool {
        self.program.uses_event
    }

    /// The types that its elements can have.
    #[must_use]
    pub fn types(&self) -> Types {
        let mut types = Types::default();
        for (number, slot) in self.program.slots.iter().enumerate() {
            let names = self.program.type_names(number);
            match slot.kind {
                Kind::Node => types.any_node |= names.is_none(),
                Kind::Edge | Kind::Path => types.any_edge |= names.is_none(),
            }
            let known = if slot.kind == Kind::Node { &mut types.nodes } else { &mut types.edges };
            known.extend(names.unwrap_or_default());
        }
        types
    }

    /// Whether its parts hang together by edges or equalities, so that each change leads to the
    /// matches it makes without a look through a whole type. A trigger must be so.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        reach::loose_slot(&self.program).is_none()
    }

    /// Why it is not connected, in words that name the part; `None` if it is.
    #[must_use]
    pub fn disconnected(&self) -> Option<String> {
        let slot = reach::loose_slot(&self.program)?;
        let part = explain::slot_name(&self.program, slot);
        Some(format!(
            "a change of {part} does not lead to the rest of the pattern `{}`: connect them by an \
             edge, or by an equality such as a.key = b.key between elements with types",
            self.canonical
        ))
    }

    /// Whether full matching starts from something bound or from an equality with an index, when
    /// the given variables are bound; if not, it looks through a whole type.
    #[must_use]
    pub fn is_anchored(&self, given: &[&str]) -> bool {
        reach::is_anchored(&self.program, given)
    }

    /// The (type, property) pairs that delta matching needs an index of; see
    /// `Graph::declare_index`. Patterns connected by edges need none.
    #[must_use]
    pub fn indexes_for_delta(&self) -> Vec<(SmolStr, SmolStr)> {
        reach::indexes_for_delta(&self.program)
    }

    /// The (type, property) pairs that full matching can use an index of, when the given variables
    /// are bound.
    #[must_use]
    pub fn indexes_for_matches(&self, given: &[&str]) -> Vec<(SmolStr, SmolStr)> {
        reach::indexes_for_matches(&self.program, given)
    }

    /// What must change for a match to become true or false. An event that does nothing of this
    /// cannot wake the pattern.
    #[must_use]
    pub fn interest(&self) -> Vec<Watch> {
        interest::interest(&self.program)
    }

    /// Every match in a graph that binds each given variable to the element with the given id, in
    /// order. Names that the pattern does not bind are ignored.
    ///
    /// # Errors
    /// It took more steps than allowed.
    pub fn matches(
        &self,
        graph: &Graph,
        given: &[(&str, &str)],
        env: &Env<'_>,
        steps: &Steps,
    ) -> Result<Vec<Row>, Exhausted> {
        full::matches(&self.program, graph, given, env, steps)
    }

    /// The matches that the last event made true and those it made false: `graph` is the world
    /// after it, `delta` what it changed. A row whose elements were removed and made again with
    /// the same ids is the same row.
    ///
    /// # Errors
    /// It took more steps than allowed.
    pub fn delta(
        &self,
        graph: &Graph,
        delta: &Delta,
        env: &Env<'_>,
        steps: &Steps,
    ) -> Result<DeltaRows, Exhausted> {
        delta::delta(&self.program, graph, delta, env, steps)
    }

    /// The order of a row, if it is a match in this graph.
    ///
    /// # Errors
    /// It took more steps than allowed.
    pub fn stands(
        &self,
        graph: &Graph,
        row: &[Bound],
        env: &Env<'_>,
        steps: &Steps,
    ) -> Result<Option<Vec<Born>>, Exhausted> {
        full::stands(&self.program, graph, row, env, steps)
    }

    /// How the pattern is searched for in this graph: from nothing, and from each part that an
    /// event can change.
    #[must_use]
    pub fn explain(&self, graph: &Graph) -> Explanation {
        explain::explain(&self.program, &self.canonical, graph)
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        Pattern::parse(text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.canonical == other.canonical
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical.hash(state);
    }
}
