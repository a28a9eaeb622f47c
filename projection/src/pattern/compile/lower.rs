//! Expressions with their names resolved.

use regex::Regex;
use smol_str::SmolStr;

use super::Compiler;
use crate::pattern::error::PatternError;
use crate::pattern::program::{Code, Kind};
use crate::pattern::syntax::{Expr, ExprKind, Function, Literal, Name, Span, TextTest};

impl Compiler<'_> {
    /// The code of an expression inside a scope.
    pub(super) fn lower(&mut self, expr: &Expr, scope: usize) -> Result<Code, PatternError> {
        let mut one = |inner: &Expr| self.lower(inner, scope).map(Box::new);
        Ok(match &expr.kind {
            ExprKind::Literal(literal) => Code::Constant(literal.clone()),
            ExprKind::Parameter(name) => self.parameter(name),
            ExprKind::Variable(name) => Code::Slot(self.resolve(name, expr, scope)?),
            ExprKind::Event(field) => {
                self.program.uses_event = true;
                Code::Event(field.clone())
            }
            ExprKind::Property(base, name) => self.field(base, name, scope)?,
            ExprKind::Index(base, index) => self.index(base, index, scope)?,
            ExprKind::HasType(base, types) => self.has_type(base, types, scope)?,
            ExprKind::List(items) => Code::List(self.all(items, scope)?),
            ExprKind::Map(entries) => Code::Map(self.entries(entries, scope)?),
            ExprKind::Not(a) => Code::Not(one(a)?),
            ExprKind::Negate(a) => Code::Negate(one(a)?),
            ExprKind::IsNull(a) => Code::IsNull(one(a)?),
            ExprKind::IsNotNull(a) => Code::Not(Box::new(Code::IsNull(one(a)?))),
            ExprKind::Xor(a, b) => Code::Xor(one(a)?, one(b)?),
            ExprKind::In(a, b) => Code::In(one(a)?, one(b)?),
            ExprKind::Arithmetic(op, a, b) => Code::Arithmetic(*op, one(a)?, one(b)?),
            ExprKind::And(parts) => Code::And(self.all(parts, scope)?),
            ExprKind::Or(parts) => Code::Or(self.all(parts, scope)?),
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
            ExprKind::Exists(body) => Code::Exists(self.scope(body, Some(scope))?),
        })
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

    fn resolve(&self, name: &str, expr: &Expr, scope: usize) -> Result<usize, PatternError> {
        if let Some(slot) = self.find(name, scope) {
            return Ok(slot);
        }
        let message = format!("nothing in the pattern is named `{name}`");
        let known: Vec<&str> =
            self.program.slots.iter().filter_map(|slot| slot.name.as_deref()).collect();
        let error = self.error(expr.span, message).did_you_mean(known.iter().copied());
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
        let Code::Slot(slot) = code else {
            return Ok(Code::Field(Box::new(code), name.clone()));
        };
        if self.program.slots[slot].kind == Kind::Path {
            let error = self.error(base.span, "a path has edges, but no properties");
            return Err(error.fix("write -[:T*1..4 {name: value}]-> to ask each edge"));
        }
        Ok(Code::Read(slot, name.clone()))
    }

    fn index(&mut self, base: &Expr, index: &Expr, scope: usize) -> Result<Code, PatternError> {
        if let ExprKind::Literal(Literal::Text(name)) = &index.kind {
            return self.field(base, name, scope);
        }
        let base = Box::new(self.lower(base, scope)?);
        Ok(Code::Index(base, Box::new(self.lower(index, scope)?)))
    }

    fn has_type(
        &mut self,
        base: &Expr,
        types: &[Name],
        scope: usize,
    ) -> Result<Code, PatternError> {
        let Code::Slot(slot) = self.lower(base, scope)? else {
            return Err(self.error(base.span, "only a node or an edge has a type"));
        };
        let numbers = types.iter().map(|name| self.type_number(&name.text)).collect();
        Ok(Code::HasType(slot, numbers))
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
                Err(self.error(b.span, message))
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
        if matches!(function, Function::Id | Function::Type) {
            let element = match codes.as_slice() {
                [Code::Slot(slot)] => self.program.slots[*slot].kind != Kind::Path,
                _ => false,
            };
            if !element {
                let message = format!("{} asks a node or an edge", function.name());
                let span = arguments.first().map_or(Span::default(), |first| first.span);
                return Err(self
                    .error(span, message)
                    .fix("write id(a) with a name of the pattern"));
            }
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
