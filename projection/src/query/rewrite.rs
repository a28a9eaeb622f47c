//! Expressions in which parts are replaced: what a query knows already is read from its column.

use crate::pattern::{Aggregated, Case, Each, Expr, ExprKind, Name, PatternError};

/// What `replaced` gives for a part: what stands in its place, or nothing to look further inside.
pub(crate) type Replaced = Result<Option<ExprKind>, PatternError>;

/// The expression with each part replaced, outermost first.
pub(crate) fn rewrite(
    expr: &Expr,
    replaced: &mut dyn FnMut(&Expr) -> Replaced,
) -> Result<Expr, PatternError> {
    let span = expr.span;
    if let Some(kind) = replaced(expr)? {
        return Ok(Expr { kind, span });
    }
    let mut one = |inner: &Expr| rewrite(inner, replaced).map(Box::new);
    let kind = match &expr.kind {
        ExprKind::Property(base, name) => ExprKind::Property(one(base)?, name.clone()),
        ExprKind::Index(base, index) => ExprKind::Index(one(base)?, one(index)?),
        ExprKind::Slice(base, from, to) => {
            let base = one(base)?;
            let from = from.as_deref().map(&mut one).transpose()?;
            ExprKind::Slice(base, from, to.as_deref().map(one).transpose()?)
        }
        ExprKind::HasType(base, types) => ExprKind::HasType(one(base)?, types.clone()),
        ExprKind::Not(a) => ExprKind::Not(one(a)?),
        ExprKind::Negate(a) => ExprKind::Negate(one(a)?),
        ExprKind::IsNull(a) => ExprKind::IsNull(one(a)?),
        ExprKind::IsNotNull(a) => ExprKind::IsNotNull(one(a)?),
        ExprKind::Xor(a, b) => ExprKind::Xor(one(a)?, one(b)?),
        ExprKind::In(a, b) => ExprKind::In(one(a)?, one(b)?),
        ExprKind::Text(test, a, b) => ExprKind::Text(*test, one(a)?, one(b)?),
        ExprKind::Arithmetic(op, a, b) => ExprKind::Arithmetic(*op, one(a)?, one(b)?),
        ExprKind::Compare(first, rest) => {
            let first = one(first)?;
            let rest = rest.iter().map(|(op, next)| Ok((*op, rewrite(next, replaced)?)));
            ExprKind::Compare(first, rest.collect::<Result<_, PatternError>>()?)
        }
        ExprKind::List(parts) => ExprKind::List(rewrite_all(parts, replaced)?),
        ExprKind::And(parts) => ExprKind::And(rewrite_all(parts, replaced)?),
        ExprKind::Or(parts) => ExprKind::Or(rewrite_all(parts, replaced)?),
        ExprKind::Call(function, parts) => ExprKind::Call(*function, rewrite_all(parts, replaced)?),
        ExprKind::Map(entries) => {
            let entry =
                |(name, value): &(Name, Expr)| Ok((name.clone(), rewrite(value, replaced)?));
            ExprKind::Map(entries.iter().map(entry).collect::<Result<_, PatternError>>()?)
        }
        ExprKind::Case(case) => ExprKind::Case(Box::new(rewrite_case(case, replaced)?)),
        ExprKind::Each(each) => ExprKind::Each(Box::new(rewrite_each(each, replaced)?)),
        ExprKind::Aggregate(part) => {
            let argument = part.argument.as_ref().map(|a| rewrite(a, replaced)).transpose()?;
            ExprKind::Aggregate(Box::new(Aggregated { argument, ..(**part).clone() }))
        }
        ExprKind::Literal(_)
        | ExprKind::Parameter(_)
        | ExprKind::Variable(_)
        | ExprKind::Event(_)
        | ExprKind::Exists(_)
        | ExprKind::Collect(..)
        | ExprKind::Column(_) => expr.kind.clone(),
    };
    Ok(Expr { kind, span })
}

fn rewrite_all(
    parts: &[Expr],
    replaced: &mut dyn FnMut(&Expr) -> Replaced,
) -> Result<Vec<Expr>, PatternError> {
    parts.iter().map(|part| rewrite(part, replaced)).collect()
}

fn rewrite_case(
    case: &Case,
    replaced: &mut dyn FnMut(&Expr) -> Replaced,
) -> Result<Case, PatternError> {
    let subject = case.subject.as_ref().map(|s| rewrite(s, replaced)).transpose()?;
    let mut branches = Vec::with_capacity(case.branches.len());
    for (test, value) in &case.branches {
        branches.push((rewrite(test, replaced)?, rewrite(value, replaced)?));
    }
    let otherwise = case.otherwise.as_ref().map(|o| rewrite(o, replaced)).transpose()?;
    Ok(Case { subject, branches, otherwise })
}

/// The name of the item hides what is called so outside.
fn rewrite_each(
    each: &Each,
    replaced: &mut dyn FnMut(&Expr) -> Replaced,
) -> Result<Each, PatternError> {
    let list = rewrite(&each.list, replaced)?;
    let mut inside = |part: &Expr| match mentions(part, &each.name.text) {
        true => Ok(None),
        false => replaced(part),
    };
    let condition = each.condition.as_ref().map(|c| rewrite(c, &mut inside)).transpose()?;
    let value = each.value.as_ref().map(|v| rewrite(v, &mut inside)).transpose()?;
    Ok(Each { aim: each.aim, name: each.name.clone(), list, condition, value })
}

/// Whether an expression mentions a name.
fn mentions(expr: &Expr, name: &str) -> bool {
    any(expr, &mut |part| matches!(&part.kind, ExprKind::Variable(found) if found == name))
}

/// Whether a test is true of some part of an expression.
pub(crate) fn any(expr: &Expr, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
    let mut found = false;
    let walked = rewrite(expr, &mut |part| {
        found |= test(part);
        // Nothing below matters once it is found.
        Ok(found.then(|| part.kind.clone()))
    });
    walked.expect("nothing was refused");
    found
}

/// Whether an expression needs many rows.
pub(crate) fn has_aggregate(expr: &Expr) -> bool {
    any(expr, &mut |part| matches!(part.kind, ExprKind::Aggregate(_)))
}

/// Whether an expression is a name, or a property of one.
pub(crate) fn is_simple(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Variable(_) | ExprKind::Column(_) => true,
        ExprKind::Property(base, _) => is_simple(base),
        _ => false,
    }
}
