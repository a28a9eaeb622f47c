//! A tree as text, in one canonical form: what two patterns are compared by.
//!
//! Keywords are upper case, types sorted, names quoted only where they must be, brackets only where
//! they change the meaning. Reading the printed text gives the same tree.

use std::fmt::{self, Display, Formatter};

use smol_str::SmolStr;

use crate::pattern::lexer::is_plain_name;
use crate::pattern::parse::KEYWORDS;
use crate::pattern::syntax::{
    Aggregated, Arithmetic, Body, Case, Chain, Direction, Each, EachAim, EdgePart, EventField,
    Expr, ExprKind, Length, Literal, Name, NodePart,
};

/// A name as it must be written: in back quotes unless it is a plain word.
struct Word<'a>(&'a str);

/// A variable: like any name, but a keyword is quoted too.
pub(crate) struct Variable<'a>(pub(crate) &'a str);

/// An expression with a bar behind it: a bar of its own stands in brackets.
struct BeforeBar<'a>(&'a Expr);

/// An expression inside an operator of this level.
struct Inside<'a>(&'a Expr, u8);

impl Display for Word<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if is_plain_name(self.0) {
            f.write_str(self.0)
        } else {
            write!(f, "`{}`", self.0.replace('`', "``"))
        }
    }
}

impl Display for Variable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(self.0)) {
            write!(f, "`{}`", self.0)
        } else {
            Word(self.0).fmt(f)
        }
    }
}

impl Display for Body {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        separated(f, &self.chains)?;
        match &self.condition {
            Some(condition) => write!(f, " WHERE {condition}"),
            None => Ok(()),
        }
    }
}

impl Display for Chain {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{} = ", Variable(&path.text))?;
        }
        self.first.fmt(f)?;
        for (edge, node) in &self.links {
            write!(f, "{edge}{node}")?;
        }
        Ok(())
    }
}

impl Display for NodePart {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        inside(f, self.name.as_ref(), &self.types, None, &self.properties)?;
        f.write_str(")")
    }
}

impl Display for EdgePart {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.direction == Direction::In { "<-" } else { "-" })?;
        let empty = self.name.is_none() && self.types.is_empty() && self.properties.is_empty();
        if !empty || self.length.is_some() {
            f.write_str("[")?;
            inside(f, self.name.as_ref(), &self.types, self.length, &self.properties)?;
            f.write_str("]")?;
        }
        f.write_str(if self.direction == Direction::Out { "->" } else { "-" })
    }
}

/// The inside of the brackets of a node or an edge.
fn inside(
    f: &mut Formatter<'_>,
    name: Option<&Name>,
    types: &[Name],
    length: Option<Length>,
    properties: &[(Name, Expr)],
) -> fmt::Result {
    if let Some(name) = name {
        Variable(&name.text).fmt(f)?;
    }
    write_types(f, types)?;
    match length {
        None => {}
        Some(Length { min: 1, max: None }) => f.write_str("*")?,
        Some(Length { min, max: None }) => write!(f, "*{min}..")?,
        Some(Length { min, max: Some(max) }) => write!(f, "*{min}..{max}")?,
    }
    if properties.is_empty() {
        return Ok(());
    }
    let alone = name.is_none() && types.is_empty() && length.is_none();
    f.write_str(if alone { "" } else { " " })?;
    write_entries(f, properties)
}

fn write_types(f: &mut Formatter<'_>, types: &[Name]) -> fmt::Result {
    let mut names: Vec<&SmolStr> = types.iter().map(|name| &name.text).collect();
    names.sort_unstable();
    names.dedup();
    for (place, name) in names.into_iter().enumerate() {
        f.write_str(if place == 0 { ":" } else { "|" })?;
        Word(name).fmt(f)?;
    }
    Ok(())
}

fn write_entries(f: &mut Formatter<'_>, entries: &[(Name, Expr)]) -> fmt::Result {
    f.write_str("{")?;
    for (place, (name, value)) in entries.iter().enumerate() {
        f.write_str(if place == 0 { "" } else { ", " })?;
        write!(f, "{}: {value}", Word(&name.text))?;
    }
    f.write_str("}")
}

fn separated<T: Display>(f: &mut Formatter<'_>, items: &[T]) -> fmt::Result {
    for (place, item) in items.iter().enumerate() {
        f.write_str(if place == 0 { "" } else { ", " })?;
        item.fmt(f)?;
    }
    Ok(())
}

/// How strongly an expression holds together; compare the levels of the parser.
fn level(kind: &ExprKind) -> u8 {
    match kind {
        ExprKind::Or(_) => 1,
        ExprKind::Xor(..) => 2,
        ExprKind::And(_) => 3,
        ExprKind::Not(_) => 4,
        ExprKind::Compare(..) => 5,
        ExprKind::In(..) | ExprKind::Text(..) | ExprKind::IsNull(_) | ExprKind::IsNotNull(_) => 6,
        ExprKind::Arithmetic(Arithmetic::Add | Arithmetic::Subtract, ..) => 7,
        ExprKind::Arithmetic(Arithmetic::Power, ..) => 9,
        ExprKind::Arithmetic(..) => 8,
        ExprKind::Negate(_) => 10,
        ExprKind::Literal(Literal::Int(number)) if *number < 0 => 10,
        ExprKind::Literal(Literal::Float(number)) if number.is_sign_negative() => 10,
        _ => 11,
    }
}

impl Display for BeforeBar<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        if text.contains('|') { write!(f, "({text})") } else { f.write_str(&text) }
    }
}

impl Display for Inside<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if level(&self.0.kind) < self.1 { write!(f, "({})", self.0) } else { self.0.fmt(f) }
    }
}

/// `[(a)-->(b) WHERE condition | value]`
fn write_collect(f: &mut Formatter<'_>, body: &Body, value: &Expr) -> fmt::Result {
    f.write_str("[")?;
    separated(f, &body.chains)?;
    let mut conditions = body.condition.iter();
    conditions.try_for_each(|condition| write!(f, " WHERE {}", BeforeBar(condition)))?;
    write!(f, " | {value}]")
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let own = level(&self.kind);
        match &self.kind {
            ExprKind::Literal(literal) => literal.fmt(f),
            ExprKind::List(items) => {
                f.write_str("[")?;
                separated(f, items)?;
                f.write_str("]")
            }
            ExprKind::Map(entries) => write_entries(f, entries),
            ExprKind::Parameter(name) => write!(f, "${}", Word(name)),
            ExprKind::Variable(name) => Variable(name).fmt(f),
            ExprKind::Event(field) => field.fmt(f),
            ExprKind::Property(base, name) => write!(f, "{}.{}", Inside(base, 11), Word(name)),
            ExprKind::Index(base, index) => write!(f, "{}[{index}]", Inside(base, 11)),
            ExprKind::HasType(base, types) => {
                Inside(base, 11).fmt(f)?;
                write_types(f, types)
            }
            ExprKind::Not(inner) => write!(f, "NOT {}", Inside(inner, own)),
            // Signs in a row need no brackets, which would nest deeper than what was read.
            ExprKind::Negate(inner) if matches!(inner.kind, ExprKind::Negate(_)) => {
                write!(f, "-{inner}")
            }
            ExprKind::Negate(inner) => write!(f, "-{}", Inside(inner, own + 1)),
            ExprKind::And(parts) => joined(f, parts, "AND", own + 1),
            ExprKind::Or(parts) => joined(f, parts, "OR", own + 1),
            ExprKind::Xor(a, b) => write!(f, "{} XOR {}", Inside(a, own), Inside(b, own + 1)),
            ExprKind::Compare(first, rest) => {
                Inside(first, own + 1).fmt(f)?;
                for (comparison, next) in rest {
                    write!(f, " {} {}", comparison.symbol(), Inside(next, own + 1))?;
                }
                Ok(())
            }
            ExprKind::In(a, b) => write!(f, "{} IN {}", Inside(a, own), Inside(b, own + 1)),
            ExprKind::Text(test, a, b) => {
                write!(f, "{} {} {}", Inside(a, own), test.symbol(), Inside(b, own + 1))
            }
            ExprKind::IsNull(inner) => write!(f, "{} IS NULL", Inside(inner, own)),
            ExprKind::IsNotNull(inner) => write!(f, "{} IS NOT NULL", Inside(inner, own)),
            ExprKind::Arithmetic(op, a, b) => {
                write!(f, "{} {} {}", Inside(a, own), op.symbol(), Inside(b, own + 1))
            }
            ExprKind::Call(function, arguments) => {
                write!(f, "{}(", function.name())?;
                separated(f, arguments)?;
                f.write_str(")")
            }
            ExprKind::Exists(body) => write!(f, "EXISTS {{ {body} }}"),
            ExprKind::Slice(base, from, to) => {
                write!(f, "{}[", Inside(base, 11))?;
                from.iter().try_for_each(|from| from.fmt(f))?;
                f.write_str("..")?;
                to.iter().try_for_each(|to| to.fmt(f))?;
                f.write_str("]")
            }
            ExprKind::Case(case) => case.fmt(f),
            ExprKind::Each(each) => each.fmt(f),
            ExprKind::Collect(body, value) => write_collect(f, body, value),
            ExprKind::Aggregate(part) => part.fmt(f),
            ExprKind::Column(place) => write!(f, "#{place}"),
        }
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CASE")?;
        self.subject.iter().try_for_each(|subject| write!(f, " {subject}"))?;
        for (test, value) in &self.branches {
            write!(f, " WHEN {test} THEN {value}")?;
        }
        self.otherwise.iter().try_for_each(|value| write!(f, " ELSE {value}"))?;
        f.write_str(" END")
    }
}

impl Display for Each {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let called = EachAim::CALLED.iter().find(|(_, aim)| *aim == self.aim);
        match called {
            Some((name, _)) => write!(f, "{name}(")?,
            None => f.write_str("[")?,
        }
        write!(f, "{} IN {}", Variable(&self.name.text), BeforeBar(&self.list))?;
        let mut conditions = self.condition.iter();
        conditions.try_for_each(|condition| write!(f, " WHERE {}", BeforeBar(condition)))?;
        self.value.iter().try_for_each(|value| write!(f, " | {value}"))?;
        f.write_str(if called.is_some() { ")" } else { "]" })
    }
}

impl Display for Aggregated {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.aggregate.name())?;
        f.write_str(if self.distinct { "DISTINCT " } else { "" })?;
        match (&self.argument, &self.share) {
            (None, _) => f.write_str("*)"),
            (Some(argument), None) => write!(f, "{argument})"),
            (Some(argument), Some(share)) => write!(f, "{argument}, {share})"),
        }
    }
}

fn joined(f: &mut Formatter<'_>, parts: &[Expr], word: &str, level: u8) -> fmt::Result {
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            write!(f, " {word} ")?;
        }
        Inside(part, level).fmt(f)?;
    }
    Ok(())
}

impl Display for EventField {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            EventField::Kind => f.write_str("event.kind"),
            EventField::Actor => f.write_str("event.actor"),
            EventField::Id => f.write_str("event.id"),
            EventField::Payload(path) => {
                f.write_str("event.payload")?;
                path.iter().try_for_each(|name| write!(f, ".{}", Word(name)))
            }
        }
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Null => f.write_str("NULL"),
            Literal::Bool(true) => f.write_str("TRUE"),
            Literal::Bool(false) => f.write_str("FALSE"),
            Literal::Int(number) => number.fmt(f),
            Literal::UInt(number) => number.fmt(f),
            // The debug form always shows that it is not a whole number.
            Literal::Float(number) => write!(f, "{number:?}"),
            Literal::Text(text) => write_text(f, text),
        }
    }
}

/// Writes a text in quotes, so that reading it gives it back.
pub(crate) fn write_text(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("'")?;
    for c in text.chars() {
        match c {
            '\'' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("'")
}
