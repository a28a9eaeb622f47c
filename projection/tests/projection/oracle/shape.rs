//! Patterns of the oracle: a tree of its own, which is printed to the text that the product reads.
//!
//! Nothing of the product's parser is used here. Each part has a number of its own, by which the
//! naive matcher knows it; the text calls it `v` and the number, or leaves the name out.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

/// The number of a node, an edge or a path of a pattern.
pub(crate) type Part = usize;

/// Chains and the condition on them: a whole pattern, or the inside of an `EXISTS`.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) chains: Vec<Chain>,
    pub(crate) test: Option<Test>,
}

/// A node, then edges each with a further node.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) first: Spot,
    pub(crate) links: Vec<(Line, Spot)>,
}

/// What every part may say about its element.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spot {
    pub(crate) part: Part,
    pub(crate) named: bool,
    pub(crate) types: Vec<&'static str>,
    pub(crate) equals: Vec<(&'static str, Term)>,
}

/// An edge, or a path if it has a length.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) spot: Spot,
    pub(crate) way: Way,
    pub(crate) length: Option<(usize, Option<usize>)>,
}

/// Which way an edge is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Right,
    Left,
    Either,
}

/// Something with a value.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    Const(Value),
    Property(Part, &'static str),
    Id(Part),
    Type(Part),
    Size(Part),
    Parameter,
    Payload(&'static str),
    Sum(Box<Term>, Box<Term>),
    Coalesce(Box<Term>, Box<Term>),
}

/// Something that is true, false or null.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Xor(Box<Test>, Box<Test>),
    Not(Box<Test>),
    Compare(Term, Vec<(&'static str, Term)>),
    In(Term, Vec<Term>),
    Text(Term, &'static str, Term),
    IsNull(Term),
    IsNotNull(Term),
    HasType(Part, &'static str),
    Same(Part, &'static str, Part),
    Exists(Box<Shape>),
}

fn list<T: Display>(f: &mut Formatter<'_>, items: &[T], between: &str) -> fmt::Result {
    for (place, item) in items.iter().enumerate() {
        write!(f, "{}{item}", if place == 0 { "" } else { between })?;
    }
    Ok(())
}

impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        list(f, &self.chains, ", ")?;
        self.test.as_ref().map_or(Ok(()), |test| write!(f, " WHERE {test}"))
    }
}

impl Display for Chain {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "({})", self.first)?;
        for (line, end) in &self.links {
            let (left, right) = match line.way {
                Way::Right => ("-", "->"),
                Way::Left => ("<-", "-"),
                Way::Either => ("-", "-"),
            };
            write!(f, "{left}[{line}]{right}({end})")?;
        }
        Ok(())
    }
}

impl Spot {
    fn head(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.named {
            write!(f, "v{}", self.part)?;
        }
        if !self.types.is_empty() {
            write!(f, ":")?;
            list(f, &self.types, "|")?;
        }
        Ok(())
    }

    fn braces(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (place, (name, term)) in self.equals.iter().enumerate() {
            write!(f, "{}{name}: {term}", if place == 0 { " {" } else { ", " })?;
        }
        if self.equals.is_empty() { Ok(()) } else { write!(f, "}}") }
    }
}

impl Display for Spot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        self.braces(f)
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.spot.head(f)?;
        match self.length {
            None => {}
            Some((least, None)) => write!(f, "*{least}..")?,
            Some((least, Some(most))) if least == most => write!(f, "*{least}")?,
            Some((least, Some(most))) => write!(f, "*{least}..{most}")?,
        }
        self.spot.braces(f)
    }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Term::Const(Value::String(text)) => write!(f, "'{text}'"),
            Term::Const(value) => write!(f, "{value}"),
            Term::Property(part, name) => write!(f, "v{part}.{name}"),
            Term::Id(part) => write!(f, "id(v{part})"),
            Term::Type(part) => write!(f, "type(v{part})"),
            Term::Size(part) => write!(f, "size(v{part})"),
            Term::Parameter => write!(f, "$m"),
            Term::Payload(name) => write!(f, "event.payload.{name}"),
            Term::Sum(a, b) => write!(f, "({a} + {b})"),
            Term::Coalesce(a, b) => write!(f, "coalesce({a}, {b})"),
        }
    }
}

impl Display for Test {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Test::And(a, b) => write!(f, "({a}) AND ({b})"),
            Test::Or(a, b) => write!(f, "({a}) OR ({b})"),
            Test::Xor(a, b) => write!(f, "({a}) XOR ({b})"),
            Test::Not(a) => match **a {
                Test::Exists(_) => write!(f, "NOT {a}"),
                _ => write!(f, "NOT ({a})"),
            },
            Test::Compare(first, rest) => {
                write!(f, "{first}")?;
                rest.iter().try_for_each(|(operator, term)| write!(f, " {operator} {term}"))
            }
            Test::In(term, items) => {
                write!(f, "{term} IN [")?;
                list(f, items, ", ")?;
                write!(f, "]")
            }
            Test::Text(a, operator, b) => write!(f, "{a} {operator} {b}"),
            Test::IsNull(term) => write!(f, "{term} IS NULL"),
            Test::IsNotNull(term) => write!(f, "{term} IS NOT NULL"),
            Test::HasType(part, name) => write!(f, "v{part}:{name}"),
            Test::Same(a, operator, b) => write!(f, "v{a} {operator} v{b}"),
            Test::Exists(shape) => write!(f, "EXISTS {{ {shape} }}"),
        }
    }
}
