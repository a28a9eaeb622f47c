//! From clauses to stages: each turns a row into rows, and knows what its columns hold.

mod projection;

use std::collections::BTreeSet;

use smol_str::SmolStr;

use super::aggregate::AggregateCode;
use super::syntax::{Clause, ProjectionKind};
use crate::pattern::{
    Body, Code, Column, Compiler, Expr, Name, PatternError, Problem, Program, Shape, Span,
};

/// A query, ready to be run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) stages: Vec<Stage>,
    /// The names of the columns of the result.
    pub(crate) columns: Vec<SmolStr>,
    pub(crate) parameters: BTreeSet<SmolStr>,
}

/// What is done with each row.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// The patterns that its expressions mention, and of a `MATCH` its own.
    pub(crate) program: Program,
    pub(crate) work: Work,
}

#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// The row with what it binds behind it, once for each match of the first scope.
    Match {
        binds: Vec<Code>,
        optional: bool,
    },
    /// The row with an item behind it, once for each item.
    Unwind(Code),
    /// New values, and the row behind them if later stages may read it.
    Project {
        values: Vec<Code>,
        keeps_row: bool,
    },
    /// One row for each group: the keys, then the aggregates.
    Group {
        keys: Vec<Code>,
        aggregates: Vec<AggregateCode>,
    },
    /// Each row once.
    Distinct,
    /// The rows in order; `true` is descending.
    Sort(Vec<(Code, bool)>),
    Skip(Code),
    Limit(Code),
    /// The rows of which it is true.
    Filter(Code),
    /// Only the first values of the row.
    Cut(usize),
}

/// Makes the plan of a query.
///
/// # Errors
/// A name that is not known, a value that can never fit, an aggregate out of place.
pub(crate) fn plan(text: &str, clauses: &[Clause]) -> Result<Plan, PatternError> {
    let mut planner = Planner {
        text,
        plan: Plan::default(),
        columns: Vec::new(),
        names_all: names_nothing(clauses),
    };
    for clause in clauses {
        match clause {
            Clause::Match { body, optional } => planner.matching(body, *optional)?,
            Clause::Unwind { list, name } => planner.unwind(list, name)?,
            Clause::Project(part) => planner.project(part)?,
        }
    }
    planner.plan.columns = planner.columns.into_iter().map(|column| column.name).collect();
    Ok(planner.plan)
}

/// Whether a query has no `RETURN` and no name: then its parts are called as they are written.
fn names_nothing(clauses: &[Clause]) -> bool {
    clauses.iter().all(|clause| match clause {
        Clause::Match { body, .. } => body.chains.iter().all(|chain| {
            let named = |(edge, node): &(crate::pattern::EdgePart, crate::pattern::NodePart)| {
                edge.name.is_some() || node.name.is_some()
            };
            chain.path.is_none() && chain.first.name.is_none() && !chain.links.iter().any(named)
        }),
        Clause::Project(part) => part.kind == ProjectionKind::Implied,
        Clause::Unwind { .. } => false,
    })
}

struct Planner<'t> {
    text: &'t str,
    plan: Plan,
    /// What the row holds, in order.
    columns: Vec<Column>,
    names_all: bool,
}

impl Planner<'_> {
    fn error(&self, span: Span, message: impl Into<String>) -> PatternError {
        PatternError::at(self.text, span, message)
    }

    fn stage(&mut self, program: Program, work: Work) {
        self.plan.parameters.extend(program.parameters.iter().cloned());
        self.plan.stages.push(Stage { program, work });
    }

    /// Compiles expressions that see these columns, as one stage.
    fn compiled(
        &mut self,
        columns: &[Column],
        compile: impl FnOnce(&mut Compiler<'_>, usize) -> Result<Work, PatternError>,
    ) -> Result<(), PatternError> {
        let mut compiler = Compiler::new(self.text, Some(columns));
        let scope = compiler.empty_scope();
        let work = compile(&mut compiler, scope)?;
        self.stage(compiler.program, work);
        Ok(())
    }

    fn matching(&mut self, body: &Body, optional: bool) -> Result<(), PatternError> {
        let columns = std::mem::take(&mut self.columns);
        let mut compiler = Compiler::new(self.text, Some(&columns));
        compiler.scope(body, None)?;
        let (mut binds, mut new) = (Vec::new(), Vec::new());
        let parts = if self.names_all { written_parts(body) } else { Vec::new() };
        for (slot, part) in compiler.program.slots.iter().enumerate() {
            let given = compiler.program.scopes[0].given.iter().any(|(known, _)| *known == slot);
            if part.scope != 0 || given {
                continue;
            }
            let name = part.name.clone().or_else(|| parts.get(slot).cloned());
            if let Some(name) = name {
                new.push(Column { name, shape: Shape::of_kind(part.kind) });
                binds.push(Code::Slot(slot));
            }
        }
        for (name, scope, code) in &compiler.paths {
            if *scope == 0 {
                new.push(Column { name: name.clone(), shape: Shape::Path });
                binds.push(code.clone());
            }
        }
        self.stage(compiler.program, Work::Match { binds, optional });
        self.columns = columns;
        self.columns.extend(new);
        Ok(())
    }

    fn unwind(&mut self, list: &Expr, name: &Name) -> Result<(), PatternError> {
        if self.columns.iter().any(|column| column.name == name.text) {
            let error = self.error(name.span, format!("`{}` already names something", name.text));
            let error = error.about(Problem::VariableAlreadyBound);
            return Err(error.fix("choose another name for the items"));
        }
        let columns = self.columns.clone();
        self.compiled(&columns, |compiler, scope| Ok(Work::Unwind(compiler.lower(list, scope)?)))?;
        self.columns.push(Column { name: name.text.clone(), shape: Shape::Any });
        Ok(())
    }
}

/// Each part of a pattern as it is written, in the order of its slots; equal ones are numbered.
fn written_parts(body: &Body) -> Vec<SmolStr> {
    let mut parts: Vec<SmolStr> = Vec::new();
    let mut add = |text: String| {
        let same = parts.iter().filter(|part| part.split(' ').next() == Some(&text)).count();
        parts.push(if same == 0 { text.into() } else { format!("{text} {}", same + 1).into() });
    };
    for chain in &body.chains {
        add(chain.first.to_string());
        for (edge, node) in &chain.links {
            add(edge.to_string());
            add(node.to_string());
        }
    }
    parts
}
