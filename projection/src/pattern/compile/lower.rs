//! Expressions with their names resolved.

use regex::Regex;
use smol_str::SmolStr;

use super::Compiler;
use crate::pattern::error::PatternError;
use crate::pattern::problem::{ErrorClass, Problem};
use crate::pattern::program::{CaseCode, Code, EachCode};
use crate::pattern::shape::Shape;
use crate::pattern::syntax::{
    Body, Case, Each, Expr, ExprKind, Function, Literal, Name, Span, TextTest,
};

impl Compiler<'_> {
    /// The code of an expression inside a scope.
    pub(crate) fn lower(&mut self, expr: &Expr, scope: usize) -> Result<Code, PatternError> {
        let mut one = |inner: &Expr| self.lower(inner, scope).map(Box::new);
        Ok(match &expr.kind {
            ExprKind::Literal(literal) => Code::Constant(literal.clone()),
            ExprKind::Parameter(name) => self.parameter(name),
            ExprKind::Variable(name) => self.resolve(name, expr, scope)?,
            ExprKind::Event(field) => {
                self.program.uses_event = true;
                Code::Event(field.clone())
            }
            ExprKind::Property(base, name) => self.field(base, name, scope)?,
            ExprKind::Index(base, index) => self.index(base, index, scope)?,
            ExprKind::HasType(base, types) => self.has_type(base, types, scope)?,
            ExprKind::List(items) => Code::List(self.all(items, scope)?),
            ExprKind::Map(entries) => Code::Map(self.entries(entries, scope)?),
            ExprKind::Not(a) => Code::Not(Box::new(self.truth(a, scope)?)),
            ExprKind::Negate(a) => Code::Negate(one(a)?),
            ExprKind::IsNull(a) => Code::IsNull(one(a)?),
            ExprKind::IsNotNull(a) => Code::Not(Box::new(Code::IsNull(one(a)?))),
            ExprKind::Xor(a, b) => {
                let a = Box::new(self.truth(a, scope)?);
                Code::Xor(a, Box::new(self.truth(b, scope)?))
            }
            ExprKind::In(a, b) => {
                let item = one(a)?;
                let list = self.lower(b, scope)?;
                self.expect(&list, b.span, &[Shape::List], "IN looks into a list")?;
                Code::In(item, Box::new(list))
            }
            ExprKind::Arithmetic(op, a, b) => Code::Arithmetic(*op, one(a)?, one(b)?),
            ExprKind::And(parts) => Code::And(self.truths(parts, scope)?),
            ExprKind::Or(parts) => Code::Or(self.truths(parts, scope)?),
            ExprKind::Compare(first, rest) => {
                let first = one(first)?;
                let mut compared = Vec::with_capacity(rest.len());
                for (comparison, next) in rest {
                    compared.push((*comparison, self.lower(next, scope)?));
                }
                Code::Compare(first, compared)
            }
            ExprKind::Text(TextTest::Matches, a, b) => self.matches(a, b, scope)?,
            ExprKind::Text(test, a, b) => Code::Text(*test, one(a)?, one(b)?),
            ExprKind::Call(function, arguments) => self.call(*function, arguments, scope)?,
            ExprKind::Exists(body) => {
                self.expect_known(body, scope)?;
                Code::Exists(self.scope(body, Some(scope))?)
            }
            ExprKind::Slice(base, from, to) => {
                let list = one(base)?;
                let from = from.as_deref().map(&mut one).transpose()?;
                Code::Slice(list, from, to.as_deref().map(one).transpose()?)
            }
            ExprKind::Case(case) => self.case(case, scope)?,
            ExprKind::Each(each) => self.each(each, scope)?,
            ExprKind::Collect(body, value) => {
                let inner = self.scope(body, Some(scope))?;
                Code::Collect(inner, Box::new(self.lower(value, inner)?))
            }
            ExprKind::Aggregate(part) => {
                let name = part.aggregate.name();
                let message = format!("{name} needs many rows, and here is one at a time");
                let error = self.error(expr.span, message).about(Problem::InvalidAggregation);
                let fix = format!("count first: WITH a, {name}(…) AS x WHERE x > 1");
                return Err(error.fix(fix));
            }
            ExprKind::Column(place) => Code::Column(*place),
        })
    }

    /// The code of an expression that must be a truth.
    pub(crate) fn truth(&mut self, expr: &Expr, scope: usize) -> Result<Code, PatternError> {
        let code = self.lower(expr, scope)?;
        self.expect(&code, expr.span, &[Shape::Bool], "a condition is true, false or null")?;
        Ok(code)
    }

    fn truths(&mut self, exprs: &[Expr], scope: usize) -> Result<Vec<Code>, PatternError> {
        exprs.iter().map(|expr| self.truth(expr, scope)).collect()
    }

    /// What an expression gives, as far as its text tells.
    pub(crate) fn shape(&self, code: &Code) -> Shape {
        Shape::of(code, &self.program, self.columns.unwrap_or_default())
    }

    /// Refuses, in a query, what can never be of a shape that it must be. In a pattern it is null.
    fn expect(
        &self,
        code: &Code,
        span: Span,
        wanted: &[Shape],
        rule: &str,
    ) -> Result<(), PatternError> {
        let shape = self.shape(code);
        if self.columns.is_none() || shape.may_be(wanted) {
            return Ok(());
        }
        let message = format!("this is {}, and {rule}", shape.word());
        Err(self.error(span, message).about(Problem::InvalidArgumentType))
    }

    /// A chain that stands for `EXISTS` names nothing that is not known.
    fn expect_known(&self, body: &Body, scope: usize) -> Result<(), PatternError> {
        if !body.bare {
            return Ok(());
        }
        for chain in &body.chains {
            let ends = chain.links.iter().flat_map(|(edge, node)| [&edge.name, &node.name]);
            for name in ends.chain([&chain.first.name]).flatten() {
                let known = self.find(&name.text, scope).is_some()
                    || self.path_named(&name.text, scope).is_some()
                    || self.outside(&name.text).is_some();
                if !known {
                    let message = format!("nothing around this chain is named `{}`", name.text);
                    let error = self.error(name.span, message).about(Problem::UndefinedVariable);
                    return Err(error.fix("leave the name out, or write EXISTS { … } around it"));
                }
            }
        }
        Ok(())
    }

    fn case(&mut self, case: &Case, scope: usize) -> Result<Code, PatternError> {
        let subject = case.subject.as_ref().map(|s| self.lower(s, scope)).transpose()?;
        let mut branches = Vec::with_capacity(case.branches.len());
        for (test, value) in &case.branches {
            let test = match subject {
                Some(_) => self.lower(test, scope)?,
                None => self.truth(test, scope)?,
            };
            branches.push((test, self.lower(value, scope)?));
        }
        let otherwise = case.otherwise.as_ref().map(|o| self.lower(o, scope)).transpose()?;
        Ok(Code::Case(Box::new(CaseCode { subject, branches, otherwise })))
    }

    fn each(&mut self, each: &Each, scope: usize) -> Result<Code, PatternError> {
        let list = self.lower(&each.list, scope)?;
        self.expect(&list, each.list.span, &[Shape::List], "IN looks into a list")?;
        self.items.push(each.name.text.clone());
        let condition = each.condition.as_ref().map(|c| self.truth(c, scope)).transpose();
        let value = each.value.as_ref().map(|v| self.lower(v, scope)).transpose();
        self.items.pop();
        let (aim, condition, value) = (each.aim, condition?, value?);
        Ok(Code::Each(Box::new(EachCode { aim, list, condition, value })))
    }

    fn all(&mut self, exprs: &[Expr], scope: usize) -> Result<Vec<Code>, PatternError> {
        exprs.iter().map(|expr| self.lower(expr, scope)).collect()
    }

    /// The code of each value in braces.
    pub(super) fn entries(
        &mut self,
        entries: &[(Name, Expr)],
        scope: usize,
    ) -> Result<Vec<(SmolStr, Code)>, PatternError> {
        let lowered =
            entries.iter().map(|(name, value)| Ok((name.text.clone(), self.lower(value, scope)?)));
        lowered.collect()
    }

    fn parameter(&mut self, name: &SmolStr) -> Code {
        if !self.program.parameters.contains(name) {
            self.program.parameters.push(name.clone());
        }
        Code::Parameter(name.clone())
    }

    /// What a name stands for: an item, a part of the pattern, a path or a column.
    fn resolve(&self, name: &str, expr: &Expr, scope: usize) -> Result<Code, PatternError> {
        let outside = self.outside(name).map(|(code, _)| code);
        if let Some(item @ Code::Item(_)) = outside {
            return Ok(item);
        }
        if let Some(slot) = self.find(name, scope) {
            return Ok(Code::Slot(slot));
        }
        if let Some(code) = self.path_named(name, scope).cloned().or(outside) {
            return Ok(code);
        }
        let reading = if self.columns.is_some() { "query" } else { "pattern" };
        let message = format!("nothing in the {reading} is named `{name}`");
        let slots = self.program.slots.iter().filter_map(|slot| slot.name.as_deref());
        let columns = self.columns.unwrap_or_default().iter().map(|column| column.name.as_str());
        let known: Vec<&str> = slots.chain(columns).filter(|name| !name.is_empty()).collect();
        let error = self.error(expr.span, message).did_you_mean(known.iter().copied());
        let error = error.about(Problem::UndefinedVariable);
        if error.fix.is_some() {
            return Err(error);
        }
        Err(error.fix(match known.as_slice() {
            [] => format!("write 'text' for a text, ${name} for a parameter"),
            _ => format!("it binds {}; write '{name}' for a text", known.join(", ")),
        }))
    }

    fn field(&mut self, base: &Expr, name: &SmolStr, scope: usize) -> Result<Code, PatternError> {
        let code = self.lower(base, scope)?;
        let shape = self.shape(&code);
        if let Code::Slot(slot) = code
            && shape != Shape::List
        {
            return Ok(Code::Read(slot, name.clone()));
        }
        if matches!(code, Code::Slot(_)) || shape == Shape::Path {
            let error = self.error(base.span, "a path has edges, but no properties");
            let error = error.about(Problem::InvalidArgumentType);
            return Err(error.fix("write -[:T*1..4 {name: value}]-> to ask each edge"));
        }
        let holders = [Shape::Map, Shape::Node, Shape::Edge];
        self.expect(&code, base.span, &holders, "only an element or a map has properties")
            .map_err(|error| error.class(ErrorClass::Type))?;
        Ok(Code::Field(Box::new(code), name.clone()))
    }

    fn index(&mut self, base: &Expr, index: &Expr, scope: usize) -> Result<Code, PatternError> {
        if let ExprKind::Literal(Literal::Text(name)) = &index.kind {
            let code = self.lower(base, scope)?;
            let shape = self.shape(&code);
            if matches!(shape, Shape::Node | Shape::Edge) {
                return self.field(base, name, scope);
            }
        }
        let code = self.lower(base, scope)?;
        let holders = [Shape::List, Shape::Map, Shape::Node, Shape::Edge];
        self.expect(&code, base.span, &holders, "only a list, a map or an element has places")
            .map_err(|error| error.class(ErrorClass::Type))?;
        Ok(Code::Index(Box::new(code), Box::new(self.lower(index, scope)?)))
    }

    fn has_type(
        &mut self,
        base: &Expr,
        types: &[Name],
        scope: usize,
    ) -> Result<Code, PatternError> {
        let code = self.lower(base, scope)?;
        if let Code::Slot(slot) = code
            && self.shape(&code) != Shape::List
        {
            let numbers = types.iter().map(|name| self.type_number(&name.text)).collect();
            return Ok(Code::HasType(slot, numbers));
        }
        if !self.shape(&code).may_be(&[Shape::Node, Shape::Edge]) {
            let error = self.error(base.span, "only a node or an edge has a type");
            return Err(error.about(Problem::InvalidArgumentType));
        }
        let names = types.iter().map(|name| name.text.clone()).collect();
        Ok(Code::IsType(Box::new(code), names))
    }

    fn matches(&mut self, a: &Expr, b: &Expr, scope: usize) -> Result<Code, PatternError> {
        let text = Box::new(self.lower(a, scope)?);
        let ExprKind::Literal(Literal::Text(expression)) = &b.kind else {
            let pattern = Box::new(self.lower(b, scope)?);
            return Ok(Code::Text(TextTest::Matches, text, pattern));
        };
        match whole_text(expression) {
            Ok(regex) => Ok(Code::Matches(text, regex)),
            Err(error) => {
                let shown = error.to_string();
                let reason = shown.lines().last().unwrap_or("it cannot be read").trim();
                let reason = reason.strip_prefix("error: ").unwrap_or(reason);
                let message = format!("this is no regular expression: {reason}");
                Err(self.error(b.span, message).about(Problem::InvalidArgumentValue))
            }
        }
    }

    fn call(
        &mut self,
        function: Function,
        arguments: &[Expr],
        scope: usize,
    ) -> Result<Code, PatternError> {
        let codes = self.all(arguments, scope)?;
        let (Some(first), Some(argument)) = (codes.first(), arguments.first()) else {
            return Ok(Code::Call(function, codes));
        };
        if function.leads_on() && self.columns.is_none() {
            let message =
                format!("{} leads to a node that the pattern does not bind", function.name());
            let error = self.error(argument.span, message);
            return Err(error.fix("bind it instead: (a)-[e]->(b)"));
        }
        let shape = self.shape(first);
        if let Some(asked) = Shape::asked_by(function)
            && !shape.may_be(asked)
        {
            let asked: Vec<&str> = asked.iter().map(|shape| shape.word()).collect();
            let message =
                format!("{} asks {}, not {}", function.name(), asked.join(" or "), shape.word());
            let error = self.error(argument.span, message).about(Problem::InvalidArgumentType);
            let element = matches!(function, Function::Id | Function::Type);
            return Err(if element {
                error.fix("write id(a) with a name of the pattern")
            } else {
                error
            });
        }
        Ok(Code::Call(function, codes))
    }
}

/// A regular expression that must match a text from its start to its end.
///
/// # Errors
/// It is no regular expression, or too large a one.
pub(crate) fn whole_text(expression: &str) -> Result<Regex, regex::Error> {
    // Read alone first, so that an error is about what was written and not about the frame.
    Regex::new(expression)?;
    Regex::new(&format!(r"\A(?:{expression})\z"))
}
