//! Expressions, by how strongly each operator binds.

use super::{KEYWORDS, Parser, Reading};
use crate::pattern::error::PatternError;
use crate::pattern::lexer::Token;
use crate::pattern::problem::Problem;
use crate::pattern::syntax::{
    Arithmetic, Body, Comparison, EventField, Expr, ExprKind, Literal, Name, Span, TextTest,
};

// From loosest to tightest. A prefix operator reads its operand at its own level.
const OR: u8 = 1;
const XOR: u8 = 2;
const AND: u8 = 3;
const NOT: u8 = 4;
const COMPARE: u8 = 5;
const TEST: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const POWER: u8 = 9;
const SIGN: u8 = 10;

/// An operator that stands between its operands or behind its only one.
#[derive(Clone, Copy)]
enum Infix {
    Or,
    Xor,
    And,
    Compare(Comparison),
    In,
    Text(TextTest),
    IsNull,
    IsNotNull,
    Arithmetic(Arithmetic),
}

impl Infix {
    fn level(self) -> u8 {
        match self {
            Infix::Or => OR,
            Infix::Xor => XOR,
            Infix::And => AND,
            Infix::Compare(_) => COMPARE,
            Infix::In | Infix::Text(_) | Infix::IsNull | Infix::IsNotNull => TEST,
            Infix::Arithmetic(Arithmetic::Add | Arithmetic::Subtract) => SUM,
            Infix::Arithmetic(Arithmetic::Power) => POWER,
            Infix::Arithmetic(_) => PRODUCT,
        }
    }
}

impl Parser<'_> {
    /// A whole expression.
    pub(crate) fn expression(&mut self) -> Result<Expr, PatternError> {
        self.operators(OR)
    }

    /// An expression of operators that bind at least as strongly as `level`.
    fn operators(&mut self, level: u8) -> Result<Expr, PatternError> {
        self.nested(|parser| {
            let mut left = parser.prefix()?;
            while let Some((infix, words)) = parser.infix()? {
                if infix.level() < level {
                    break;
                }
                for _ in 0..words {
                    parser.advance();
                }
                left = parser.joined(left, infix)?;
                if !matches!(infix, Infix::And | Infix::Or) {
                    parser.higher()?;
                }
            }
            Ok(left)
        })
    }

    /// The operator that stands here and how many tokens it has.
    fn infix(&self) -> Result<Option<(Infix, usize)>, PatternError> {
        let found = match self.peek() {
            Token::Symbol(symbol) => match *symbol {
                "=" => (Infix::Compare(Comparison::Equal), 1),
                "<>" => (Infix::Compare(Comparison::NotEqual), 1),
                "<" => (Infix::Compare(Comparison::Less), 1),
                "<=" => (Infix::Compare(Comparison::LessOrEqual), 1),
                ">" => (Infix::Compare(Comparison::Greater), 1),
                ">=" => (Infix::Compare(Comparison::GreaterOrEqual), 1),
                "=~" => (Infix::Text(TextTest::Matches), 1),
                "+" => (Infix::Arithmetic(Arithmetic::Add), 1),
                "-" => (Infix::Arithmetic(Arithmetic::Subtract), 1),
                "*" => (Infix::Arithmetic(Arithmetic::Multiply), 1),
                "/" => (Infix::Arithmetic(Arithmetic::Divide), 1),
                "%" => (Infix::Arithmetic(Arithmetic::Remainder), 1),
                "^" => (Infix::Arithmetic(Arithmetic::Power), 1),
                _ => return Ok(None),
            },
            Token::Word(word) => match word.to_ascii_uppercase().as_str() {
                "OR" => (Infix::Or, 1),
                "XOR" => (Infix::Xor, 1),
                "AND" => (Infix::And, 1),
                "IN" => (Infix::In, 1),
                "CONTAINS" => (Infix::Text(TextTest::Contains), 1),
                "STARTS" => (Infix::Text(TextTest::StartsWith), self.with("STARTS")?),
                "ENDS" => (Infix::Text(TextTest::EndsWith), self.with("ENDS")?),
                "IS" => return self.null_test().map(Some),
                "NOT" if self.is_word_at(1, "IN") => {
                    let error = self.error("`NOT` stands before the whole test");
                    return Err(error.fix("write NOT a.status IN [...]"));
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(found))
    }

    fn with(&self, first: &str) -> Result<usize, PatternError> {
        if self.is_word_at(1, "WITH") {
            return Ok(2);
        }
        Err(self
            .error(format!("expected `WITH` after `{first}`"))
            .fix(format!("write {first} WITH")))
    }

    fn null_test(&self) -> Result<(Infix, usize), PatternError> {
        if self.is_word_at(1, "NULL") {
            return Ok((Infix::IsNull, 2));
        }
        if self.is_word_at(1, "NOT") && self.is_word_at(2, "NULL") {
            return Ok((Infix::IsNotNull, 3));
        }
        let error = self.error("expected `NULL` or `NOT NULL` after `IS`");
        Err(error.fix("write IS NULL, or `=` to compare with something else"))
    }

    /// Reads what stands right of an operator.
    fn joined(&mut self, left: Expr, infix: Infix) -> Result<Expr, PatternError> {
        let start = left.span;
        let kind = match infix {
            Infix::IsNull => ExprKind::IsNull(Box::new(left)),
            Infix::IsNotNull => ExprKind::IsNotNull(Box::new(left)),
            Infix::And => {
                let right = self.operators(AND + 1)?;
                ExprKind::And(longer(left, right, |kind| match kind {
                    ExprKind::And(parts) => Ok(parts),
                    other => Err(other),
                }))
            }
            Infix::Or => {
                let right = self.operators(OR + 1)?;
                ExprKind::Or(longer(left, right, |kind| match kind {
                    ExprKind::Or(parts) => Ok(parts),
                    other => Err(other),
                }))
            }
            Infix::Compare(comparison) => {
                let right = self.operators(COMPARE + 1)?;
                let mut rest = vec![(comparison, right)];
                while let Some((Infix::Compare(next), _)) = self.infix()? {
                    self.advance();
                    rest.push((next, self.operators(COMPARE + 1)?));
                }
                ExprKind::Compare(Box::new(left), rest)
            }
            Infix::Xor => ExprKind::Xor(Box::new(left), Box::new(self.operators(XOR + 1)?)),
            Infix::In => ExprKind::In(Box::new(left), Box::new(self.operators(TEST + 1)?)),
            Infix::Text(test) => {
                ExprKind::Text(test, Box::new(left), Box::new(self.operators(TEST + 1)?))
            }
            Infix::Arithmetic(op) => {
                let right = self.operators(infix.level() + 1)?;
                ExprKind::Arithmetic(op, Box::new(left), Box::new(right))
            }
        };
        self.term(kind, start.to(self.last_span()))
    }

    /// Counts a term.
    pub(super) fn term(&mut self, kind: ExprKind, span: Span) -> Result<Expr, PatternError> {
        self.terms += 1;
        let (what, most) = (self.reading.word(), self.reading.terms_max());
        if self.terms > most {
            return Err(self.give_up(format!("a {what} has at most {most} terms")));
        }
        Ok(Expr { kind, span })
    }

    /// An operand with the operators before it.
    fn prefix(&mut self) -> Result<Expr, PatternError> {
        let start = self.span();
        if self.eat_word("NOT") {
            let inner = self.operators(NOT)?;
            return self.term(ExprKind::Not(Box::new(inner)), start.to(self.last_span()));
        }
        if self.eat("+") {
            return self.operators(SIGN);
        }
        if self.eat("-") {
            let inner = self.operators(SIGN)?;
            let span = start.to(self.last_span());
            return match negated(&inner.kind) {
                Some(Ok(literal)) => self.term(ExprKind::Literal(literal), span),
                Some(Err(message)) => {
                    let error = PatternError::at(self.text, span, message);
                    Err(error.about(Problem::IntegerOverflow))
                }
                None => self.term(ExprKind::Negate(Box::new(inner)), span),
            };
        }
        let mut base = self.atom()?;
        loop {
            let kind = if self.eat(".") {
                ExprKind::Property(Box::new(base), self.name("the name of a property")?.text)
            } else if self.eat("[") {
                self.index(base)?
            } else if self.is_symbol(":") {
                ExprKind::HasType(Box::new(base), self.asked_types()?)
            } else {
                return Ok(base);
            };
            self.higher()?;
            base = self.term(kind, start.to(self.last_span()))?;
        }
    }

    /// `:A|B` behind a value. Where a bar ends what a list is made by, one type.
    fn asked_types(&mut self) -> Result<Vec<Name>, PatternError> {
        if self.bars {
            return self.types();
        }
        self.expect(":", "before the type")?;
        Ok(vec![self.type_name("the name of a type")?])
    }

    /// An operand without operators.
    fn atom(&mut self) -> Result<Expr, PatternError> {
        let start = self.span();
        let kind = match self.peek().clone() {
            Token::Text(text) => ExprKind::Literal(Literal::Text(text.into())),
            Token::Int(number) => ExprKind::Literal(match i64::try_from(number) {
                Ok(number) => Literal::Int(number),
                Err(_) => Literal::UInt(number),
            }),
            Token::Float(number) => ExprKind::Literal(Literal::Float(number)),
            Token::Parameter(name) => ExprKind::Parameter(name),
            Token::Quoted(name) => {
                self.refuse_empty(&name)?;
                ExprKind::Variable(name)
            }
            Token::Symbol("(") => return self.bracketed(),
            Token::Symbol("[") => return self.list(),
            Token::Symbol("{") => {
                self.advance();
                let entries = self.nested(Self::entries)?;
                return self.term(ExprKind::Map(entries), start.to(self.last_span()));
            }
            Token::Word(word) => return self.word_atom(&word),
            _ => return Err(self.expected("a value such as `a.status`, `'text'`, `3` or `$name`")),
        };
        self.advance();
        self.term(kind, start)
    }

    /// A word that begins an operand: a constant, `EXISTS`, `event`, a call or a variable.
    fn word_atom(&mut self, word: &str) -> Result<Expr, PatternError> {
        let start = self.span();
        if let Some(case) = self.case()? {
            return Ok(case);
        }
        let constant = match word.to_ascii_uppercase().as_str() {
            "TRUE" => Some(Literal::Bool(true)),
            "FALSE" => Some(Literal::Bool(false)),
            "NULL" => Some(Literal::Null),
            "EXISTS" => return self.exists(),
            _ => None,
        };
        if let Some(literal) = constant {
            self.advance();
            return self.term(ExprKind::Literal(literal), start);
        }
        if word == "event" {
            return self.event();
        }
        if KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword)) {
            return Err(self.expected("a value such as `a.status`, `'text'`, `3` or `$name`"));
        }
        if matches!(self.peek_at(1), Token::Symbol("(")) {
            return self.call(word);
        }
        self.advance();
        self.term(ExprKind::Variable(word.into()), start)
    }

    /// `event.kind`, `event.payload.x.y` and their like.
    fn event(&mut self) -> Result<Expr, PatternError> {
        let start = self.span();
        if self.reading == Reading::Query {
            let error = self.error("a query is asked without an event");
            return Err(error.fix("give what it needs as a parameter: $name"));
        }
        self.advance();
        if !self.eat(".") {
            let error = self.expected("`.` after `event`");
            return Err(error.fix("write event.kind or event.payload.x"));
        }
        let field_at = self.span();
        let name = self.name("kind, payload, actor or id")?.text;
        let field = match name.as_str() {
            "kind" => EventField::Kind,
            "actor" => EventField::Actor,
            "id" => EventField::Id,
            "payload" => {
                let mut path = Vec::new();
                while self.eat(".") {
                    path.push(self.name("the name of a field")?.text);
                }
                EventField::Payload(path)
            }
            _ => {
                let message = format!("an event has no `{name}`");
                let error = PatternError::at(self.text, field_at, message);
                let fix = format!("the domain's words are in the payload: event.payload.{name}");
                let suggested = error.did_you_mean(["kind", "payload", "actor"]);
                return Err(if suggested.fix.is_some() { suggested } else { suggested.fix(fix) });
            }
        };
        self.term(ExprKind::Event(field), start.to(self.last_span()))
    }

    /// `EXISTS { … }`
    fn exists(&mut self) -> Result<Expr, PatternError> {
        let start = self.span();
        self.advance();
        if !self.eat("{") {
            let error = self.expected("`{` after `EXISTS`");
            return Err(error.fix("write EXISTS { (a)-->(b) }, or a.name IS NOT NULL"));
        }
        let body = self.with_bars(true, |parser| parser.nested(Self::body))?;
        // What a subquery would return does not matter: it exists if it has a row.
        if self.eat_word("RETURN") {
            self.expression()?;
            while self.eat(",") {
                self.expression()?;
            }
        }
        self.refuse_clause()?;
        self.expect("}", "to close EXISTS")?;
        self.term(ExprKind::Exists(Box::new(body)), start.to(self.last_span()))
    }

    /// `( … )`: an expression, or a chain that must exist.
    fn bracketed(&mut self) -> Result<Expr, PatternError> {
        let (start, at) = (self.span(), self.at);
        let chain = self.nested(Self::chain);
        match chain {
            Ok(chain) if !chain.links.is_empty() => {
                if !self.chains {
                    let span = start.to(self.last_span());
                    let message = "a chain is a condition, not a value";
                    let error = PatternError::at(self.text, span, message);
                    return Err(error.fix("write EXISTS { … } around it, or [chain | value]"));
                }
                let body = Body { chains: vec![chain], condition: None, bare: true };
                self.term(ExprKind::Exists(Box::new(body)), start.to(self.last_span()))
            }
            other => {
                let as_chain_at = self.at;
                self.at = at;
                let as_value = self.in_brackets();
                // Of two ways to read it, the one that went further is what was meant.
                match (as_value, other) {
                    (Err(_), Err(chain)) if as_chain_at > self.at => Err(chain),
                    (value, _) => value,
                }
            }
        }
    }

    fn in_brackets(&mut self) -> Result<Expr, PatternError> {
        self.advance();
        let inner = self.with_bars(true, Self::expression)?;
        self.expect(")", "to close the bracket")?;
        Ok(inner)
    }
}

/// The parts of `left` if it is the same kind of list, else `left` alone; then `right`.
fn longer(
    left: Expr,
    right: Expr,
    parts: impl FnOnce(ExprKind) -> Result<Vec<Expr>, ExprKind>,
) -> Vec<Expr> {
    let span = left.span;
    let mut all = parts(left.kind).unwrap_or_else(|kind| vec![Expr { kind, span }]);
    all.push(right);
    all
}

/// A number literal with the other sign, so that the least whole number can be written.
fn negated(kind: &ExprKind) -> Option<Result<Literal, &'static str>> {
    const LEAST: u64 = i64::MIN.unsigned_abs();
    Some(Ok(match kind {
        ExprKind::Literal(Literal::Int(i64::MIN)) => Literal::UInt(LEAST),
        ExprKind::Literal(Literal::Int(number)) => Literal::Int(-number),
        ExprKind::Literal(Literal::UInt(LEAST)) => Literal::Int(i64::MIN),
        ExprKind::Literal(Literal::UInt(_)) => {
            return Some(Err("a whole number that is too far below zero"));
        }
        ExprKind::Literal(Literal::Float(number)) => Literal::Float(-number),
        _ => return None,
    }))
}
