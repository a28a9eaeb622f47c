//! `WITH` and `RETURN`: new values, grouping, order, and which rows are kept.

use smol_str::SmolStr;

use super::super::aggregate::AggregateCode;
use super::super::rewrite::{any, has_aggregate, is_simple, rewrite};
use super::super::syntax::{Item, Projection, ProjectionKind};
use super::{Planner, Work};
use crate::pattern::{
    Code, Column, Compiler, Expr, ExprKind, Literal, PatternError, Problem, Shape,
};

/// An item with the name of its column.
struct Named {
    name: SmolStr,
    expr: Expr,
    /// The canonical form of the expression, by which it is found again.
    text: String,
}

impl Planner<'_> {
    pub(super) fn project(&mut self, part: &Projection) -> Result<(), PatternError> {
        let items = self.items(part)?;
        let grouped = items.iter().any(|item| has_aggregate(&item.expr));
        let before = std::mem::take(&mut self.columns);
        // What ORDER BY and WHERE can see: after grouping or DISTINCT only what is projected.
        let keeps_row = !grouped && !part.distinct;
        let out = if grouped {
            self.grouped(&items, &before)?
        } else {
            self.values(
                &items.iter().map(|item| &item.expr).collect::<Vec<_>>(),
                &before,
                keeps_row,
            )?
        };
        let out: Vec<Column> = items
            .iter()
            .zip(out)
            .map(|(item, shape)| Column { name: item.name.clone(), shape })
            .collect();
        let width = out.len();
        let mut seen = out.clone();
        if keeps_row {
            seen.extend(before);
        }
        if part.distinct {
            self.compiled(&[], |_, _| Ok(Work::Distinct))?;
        }
        if !part.order.is_empty() {
            let mut keys = Vec::new();
            for key in &part.order {
                keys.push((
                    self.on_items(&key.expr, &items, (grouped, keeps_row), &seen)?,
                    key.descending,
                ));
            }
            self.compiled(&seen, |compiler, scope| {
                let lowered =
                    keys.iter().map(|(key, down)| Ok((compiler.lower(key, scope)?, *down)));
                Ok(Work::Sort(lowered.collect::<Result<_, PatternError>>()?))
            })?;
        }
        if let Some(count) = &part.skip {
            self.count(count, Work::Skip)?;
        }
        if let Some(count) = &part.limit {
            self.count(count, Work::Limit)?;
        }
        if let Some(condition) = &part.condition {
            let condition = &self.on_items(condition, &items, (grouped, keeps_row), &seen)?;
            self.compiled(&seen, |compiler, scope| {
                Ok(Work::Filter(compiler.truth(condition, scope)?))
            })?;
        }
        if seen.len() > width {
            self.compiled(&[], |_, _| Ok(Work::Cut(width)))?;
        }
        self.columns = out;
        self.expect_names(part)
    }

    /// The items with their names, `*` spelled out.
    fn items(&self, part: &Projection) -> Result<Vec<Named>, PatternError> {
        let mut items: Vec<Named> = Vec::new();
        if part.star {
            if self.columns.is_empty() && part.items.is_empty() {
                let error = self.error(part.span, "`*` is all that is named, and nothing is");
                let error = error.about(Problem::NoVariablesInScope);
                return Err(error.fix("name what should be shown: MATCH (a) RETURN *"));
            }
            for (place, column) in self.columns.iter().enumerate() {
                let expr = Expr { kind: ExprKind::Column(place), span: part.span };
                items.push(Named {
                    name: column.name.clone(),
                    expr,
                    text: column.name.to_string(),
                });
            }
        }
        for item in &part.items {
            let name = name_of(item);
            if items.iter().any(|known| known.name == name) {
                let span = item.name.as_ref().map_or(item.expr.span, |name| name.span);
                let error = self.error(span, format!("two columns are named `{name}`"));
                let error = error.about(Problem::ColumnNameConflict);
                return Err(error.fix("name one of them otherwise: AS other"));
            }
            let expr = item.expr.clone();
            items.push(Named { name, text: expr.to_string(), expr });
        }
        Ok(items)
    }

    /// Refuses what `WITH` would pass on without a name.
    fn expect_names(&self, part: &Projection) -> Result<(), PatternError> {
        let nameless =
            |item: &&Item| item.name.is_none() && !matches!(item.expr.kind, ExprKind::Variable(_));
        match part.items.iter().find(nameless) {
            Some(item) if part.kind == ProjectionKind::With => {
                let error = self.error(item.expr.span, "what WITH passes on needs a name");
                let error = error.about(Problem::NoExpressionAlias);
                Err(error.fix(format!("write {} AS name", item.text)))
            }
            _ => Ok(()),
        }
    }

    /// A stage that computes values, and what they are.
    fn values(
        &mut self,
        exprs: &[&Expr],
        columns: &[Column],
        keeps_row: bool,
    ) -> Result<Vec<Shape>, PatternError> {
        let mut shapes = Vec::new();
        self.compiled(columns, |compiler, scope| {
            let mut values = Vec::new();
            for expr in exprs {
                let code = compiler.lower(expr, scope)?;
                shapes.push(compiler.shape(&code));
                values.push(code);
            }
            Ok(Work::Project { values, keeps_row })
        })?;
        Ok(shapes)
    }

    /// The stages of a projection with aggregates: group by the items without, then compute.
    fn grouped(&mut self, items: &[Named], columns: &[Column]) -> Result<Vec<Shape>, PatternError> {
        let keys: Vec<&Named> = items.iter().filter(|item| !has_aggregate(&item.expr)).collect();
        let mut aggregates: Vec<Expr> = Vec::new();
        let mut rewritten = Vec::new();
        for item in items {
            let place = keys.iter().position(|key| key.name == item.name);
            rewritten.push(match place {
                Some(place) => Expr { kind: ExprKind::Column(place), span: item.expr.span },
                None => self.on_groups(&item.expr, &keys, columns, &mut aggregates)?,
            });
        }
        let mut groups: Vec<Column> = Vec::new();
        self.compiled(columns, |compiler, scope| {
            let mut codes = Vec::new();
            for key in &keys {
                let code = compiler.lower(&key.expr, scope)?;
                // Without a name: only by its place can it be read.
                groups.push(Column { name: SmolStr::default(), shape: compiler.shape(&code) });
                codes.push(code);
            }
            let made = aggregates.iter().map(|expr| aggregate(compiler, expr, scope));
            let aggregates = made.collect::<Result<Vec<_>, _>>()?;
            Ok(Work::Group { keys: codes, aggregates })
        })?;
        let aggregated = Column { name: SmolStr::default(), shape: Shape::Any };
        groups.extend(aggregates.iter().map(|_| aggregated.clone()));
        self.values(&rewritten.iter().collect::<Vec<_>>(), &groups, false)
    }

    /// An item with aggregates, with these and what is grouped by read from their columns.
    fn on_groups(
        &self,
        expr: &Expr,
        keys: &[&Named],
        columns: &[Column],
        aggregates: &mut Vec<Expr>,
    ) -> Result<Expr, PatternError> {
        rewrite(expr, &mut |part| {
            if let ExprKind::Aggregate(aggregated) = &part.kind {
                if aggregated.argument.as_ref().is_some_and(has_aggregate) {
                    let error = self.error(part.span, "an aggregate inside another");
                    let error = error.about(Problem::NestedAggregation);
                    return Err(error.fix("compute the inner one first: WITH a, count(*) AS n"));
                }
                aggregates.push(part.clone());
                return Ok(Some(ExprKind::Column(keys.len() + aggregates.len() - 1)));
            }
            if let ExprKind::Each(each) = &part.kind
                && each.condition.iter().chain(&each.value).any(has_aggregate)
            {
                let error = self.error(part.span, "an aggregate is asked for each item of a list");
                return Err(error.about(Problem::InvalidAggregation));
            }
            if matches!(part.kind, ExprKind::Exists(_) | ExprKind::Collect(..)) {
                let error = self.error(part.span, "a pattern beside an aggregate");
                let error = error.about(Problem::AmbiguousAggregationExpression);
                return Err(error.fix("compute it first: WITH a, [(a)-->(b) | b] AS list"));
            }
            let text = part.to_string();
            let key = keys.iter().position(|key| key.text == text && is_simple(&key.expr));
            if let Some(place) = key {
                return Ok(Some(ExprKind::Column(place)));
            }
            match &part.kind {
                ExprKind::Variable(name) if columns.iter().any(|c| c.name == *name) => {
                    let message = format!(
                        "`{name}` may differ inside a group: what is not grouped by cannot stand \
                         beside an aggregate"
                    );
                    let error = self.error(part.span, message);
                    let error = error.about(Problem::AmbiguousAggregationExpression);
                    Err(error.fix(format!("group by it first: WITH {name}, count(*) AS n")))
                }
                _ => Ok(None),
            }
        })
    }

    /// An expression of ORDER BY or WHERE, with what is projected read from its column.
    fn on_items(
        &self,
        expr: &Expr,
        items: &[Named],
        (grouped, keeps_row): (bool, bool),
        seen: &[Column],
    ) -> Result<Expr, PatternError> {
        let aggregates = grouped && has_aggregate(expr);
        let place = |part: &Expr| {
            let text = part.to_string();
            let found = items.iter().position(|item| item.text == text);
            found.filter(|_| !matches!(part.kind, ExprKind::Variable(_)))
        };
        rewrite(expr, &mut |part| {
            let found = place(part);
            let whole = !aggregates
                || is_simple(part)
                || matches!(part.kind, ExprKind::Aggregate(_))
                || std::ptr::eq(part, expr);
            if let (Some(place), true) = (found, whole) {
                return Ok(Some(ExprKind::Column(place)));
            }
            if found.is_some() {
                let message = "only names, properties and aggregates can be joined here";
                let error = self.error(part.span, message);
                let error = error.about(Problem::AmbiguousAggregationExpression);
                return Err(error.fix("give it a name with AS, and order by the name"));
            }
            let pattern = matches!(part.kind, ExprKind::Exists(_) | ExprKind::Collect(..));
            if pattern && !keeps_row {
                let message = "after grouping or DISTINCT no pattern can be asked here";
                let error = self.error(part.span, message).about(Problem::UndefinedVariable);
                return Err(error.fix("give it a name with AS, and order by the name"));
            }
            let ExprKind::Aggregate(aggregated) = &part.kind else { return Ok(None) };
            let unknown = aggregated.argument.as_ref().filter(|_| grouped).filter(|argument| {
                any(argument, &mut |inner| match &inner.kind {
                    ExprKind::Variable(name) => seen.iter().all(|column| column.name != *name),
                    _ => false,
                })
            });
            match unknown {
                Some(argument) => {
                    let message = "what is not projected is not known after grouping";
                    let error = self.error(argument.span, message);
                    let error = error.about(Problem::UndefinedVariable);
                    Err(error.fix("add the aggregate to the columns, and order by its name"))
                }
                None => Ok(None),
            }
        })
    }

    /// `SKIP` or `LIMIT`: a number that is the same for all rows.
    fn count(&mut self, expr: &Expr, work: impl FnOnce(Code) -> Work) -> Result<(), PatternError> {
        let varies = any(expr, &mut |part| {
            matches!(part.kind, ExprKind::Variable(_) | ExprKind::Exists(_) | ExprKind::Collect(..))
        });
        let wrong = |problem: Problem, message: &str, planner: &Self| {
            Err(planner.error(expr.span, message).about(problem))
        };
        if varies {
            let message = "the number of rows cannot depend on a row";
            return wrong(Problem::NonConstantExpression, message, self);
        }
        match &expr.kind {
            ExprKind::Literal(Literal::Int(number)) if *number < 0 => {
                let message = "rows are counted from zero";
                return wrong(Problem::NegativeIntegerArgument, message, self);
            }
            ExprKind::Literal(Literal::Int(_)) => {}
            ExprKind::Literal(_) => {
                let message = "rows are counted in whole numbers";
                return wrong(Problem::InvalidArgumentType, message, self);
            }
            _ => {}
        }
        self.compiled(&[], |compiler, scope| Ok(work(compiler.lower(expr, scope)?)))
    }
}

/// The name of the column of an item: the one given, or its text.
fn name_of(item: &Item) -> SmolStr {
    match (&item.name, &item.expr.kind) {
        (Some(name), _) => name.text.clone(),
        (None, ExprKind::Variable(name)) => name.clone(),
        (None, _) => item.text.clone(),
    }
}

fn aggregate(
    compiler: &mut Compiler<'_>,
    expr: &Expr,
    scope: usize,
) -> Result<AggregateCode, PatternError> {
    let ExprKind::Aggregate(part) = &expr.kind else { unreachable!("only aggregates are kept") };
    let mut lower =
        |expr: &Option<Expr>| expr.as_ref().map(|e| compiler.lower(e, scope)).transpose();
    let (argument, share) = (lower(&part.argument)?, lower(&part.share)?);
    Ok(AggregateCode { aggregate: part.aggregate, distinct: part.distinct, argument, share })
}
