//! Queries: clauses that turn the matches of patterns into a table.
//!
//! A query is read once and can be run on any graph. It only reads, gives its rows one by one as
//! they are found, and gives the same rows in the same order for the same graph, always. The
//! language is described in `PATTERNS.md`, by examples that are tests.

mod aggregate;
mod order;
mod parse;
mod plan;
mod rewrite;
mod run;
mod syntax;
#[cfg(test)]
mod tests;
mod value;

pub use value::{QueryEdge, QueryNode, QueryValue};

use std::collections::BTreeSet;
use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;

use smol_str::SmolStr;

use crate::graph::Graph;
use crate::pattern::{
    AnchorKey, Code, Env, Exhausted, Fault, PatternError, Program, Reading, Steps,
};
use plan::Plan;

/// A query, ready to be run.
#[derive(Clone, Debug)]
pub struct Query {
    text: String,
    plan: Plan,
}

/// Why a query ended before its last row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryError {
    /// It took more steps than allowed.
    Exhausted(Exhausted),
    /// A value could not be computed.
    Fault(Fault),
}

impl Query {
    /// Reads a query: `MATCH … WHERE … WITH … UNWIND … RETURN …`. A pattern alone returns all that
    /// it names.
    ///
    /// # Errors
    /// The text is no query, or names something that is not known. The error points at the token
    /// and says what to write instead.
    pub fn parse(text: &str) -> Result<Query, PatternError> {
        let plan = parse::parse(text).and_then(|clauses| plan::plan(text, &clauses));
        let plan = plan.map_err(|error| error.reading(Reading::Query))?;
        Ok(Query { text: text.to_owned(), plan })
    }

    /// The text as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names of the columns of its result.
    #[must_use]
    pub fn columns(&self) -> &[SmolStr] {
        &self.plan.columns
    }

    /// The parameters it mentions, by name.
    #[must_use]
    pub fn parameters(&self) -> &BTreeSet<SmolStr> {
        &self.plan.parameters
    }

    /// The (type, property) pairs by which one part of it is found for each of another: with an
    /// index of these a join does not look through a whole type again and again. See
    /// `Graph::declare_index`; the answer is the same without.
    #[must_use]
    pub fn indexes(&self) -> BTreeSet<(SmolStr, SmolStr)> {
        let programs = self.plan.stages.iter().map(|stage| &stage.program);
        programs.flat_map(joined_by).collect()
    }

    /// Gives each row to `sink`, as soon as it is found, until `sink` has enough.
    ///
    /// # Errors
    /// It took more steps than allowed, or a value could not be computed. Rows may have been given
    /// before.
    pub fn run(
        &self,
        graph: &Graph,
        env: &Env<'_>,
        steps: &Steps,
        sink: &mut dyn FnMut(Vec<QueryValue>) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        run::run(&self.plan, graph, env, steps, &mut |row| {
            sink(row.iter().map(|value| QueryValue::of(value, graph)).collect())
        })
    }

    /// All rows of its result.
    ///
    /// # Errors
    /// It took more steps than allowed, or a value could not be computed.
    pub fn rows(
        &self,
        graph: &Graph,
        env: &Env<'_>,
        steps: &Steps,
    ) -> Result<Vec<Vec<QueryValue>>, QueryError> {
        let mut rows = Vec::new();
        self.run(graph, env, steps, &mut |row| {
            rows.push(row);
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }
}

/// The properties by which a program finds elements once for each of something else.
fn joined_by(program: &Program) -> impl Iterator<Item = (SmolStr, SmolStr)> {
    let anchors = program.scopes.iter().flat_map(|scope| &scope.anchors);
    anchors.flat_map(|anchor| {
        let mut varies = anchor.needs != 0;
        anchor.value.visit(&mut |part| varies |= matches!(part, Code::Column(_) | Code::Item(_)));
        let types = program.type_names(anchor.slot).filter(|_| varies).unwrap_or_default();
        let property = match &anchor.key {
            AnchorKey::Property(name) => Some(name),
            AnchorKey::Id => None,
        };
        types.into_iter().filter_map(move |name| Some((name, property?.clone())))
    })
}

impl FromStr for Query {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        Query::parse(text)
    }
}

impl From<Exhausted> for QueryError {
    fn from(exhausted: Exhausted) -> Self {
        QueryError::Exhausted(exhausted)
    }
}

impl From<Fault> for QueryError {
    fn from(fault: Fault) -> Self {
        QueryError::Fault(fault)
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::Exhausted(exhausted) => exhausted.fmt(f),
            QueryError::Fault(fault) => f.write_str(&fault.message),
        }
    }
}

impl std::error::Error for QueryError {}
