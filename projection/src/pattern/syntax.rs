//! A pattern as a tree: what the parser makes, and what everything else reads.
//!
//! The tree says what was written, nothing more: no name is resolved here, nothing is planned. A
//! `Body` is what stands after `MATCH`; clauses that follow it will be siblings of it. An
//! `EXISTS { … }` holds a body of its own.

use smol_str::SmolStr;

/// A range of bytes of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    /// From the start of one to the end of another.
    pub(crate) fn to(self, end: Span) -> Span {
        Span { start: self.start, end: end.end }
    }
}

/// A name and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: SmolStr,
    pub(crate) span: Span,
}

/// Comma-separated chains and the condition on them.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) chains: Vec<Chain>,
    pub(crate) condition: Option<Expr>,
}

/// A node, then edges each with a further node.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) first: NodePart,
    pub(crate) links: Vec<(EdgePart, NodePart)>,
}

/// `(name:A|B {property: value})`
#[derive(Clone, Debug)]
pub(crate) struct NodePart {
    pub(crate) name: Option<Name>,
    pub(crate) types: Vec<Name>,
    pub(crate) properties: Vec<(Name, Expr)>,
    pub(crate) span: Span,
}

/// `-[name:A|B*1..4 {property: value}]->`
#[derive(Clone, Debug)]
pub(crate) struct EdgePart {
    pub(crate) name: Option<Name>,
    pub(crate) types: Vec<Name>,
    pub(crate) properties: Vec<(Name, Expr)>,
    pub(crate) direction: Direction,
    /// Present for a path of variable length.
    pub(crate) length: Option<Length>,
    pub(crate) span: Span,
}

/// Which way an edge is written, read from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// `-->`
    Out,
    /// `<--`
    In,
    /// `--`, either way.
    Both,
}

/// How many edges a path may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length {
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
}

/// An expression and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Literal(Literal),
    List(Vec<Expr>),
    Map(Vec<(Name, Expr)>),
    Parameter(SmolStr),
    Variable(SmolStr),
    Event(EventField),
    /// `base.name`
    Property(Box<Expr>, SmolStr),
    /// `base[index]`
    Index(Box<Expr>, Box<Expr>),
    /// `base:A|B`
    HasType(Box<Expr>, Vec<Name>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    /// All are true; at least two parts.
    And(Vec<Expr>),
    /// One is true; at least two parts.
    Or(Vec<Expr>),
    Xor(Box<Expr>, Box<Expr>),
    /// `first < second <= third`: every neighbouring pair compares so.
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    In(Box<Expr>, Box<Expr>),
    Text(TextTest, Box<Expr>, Box<Expr>),
    IsNull(Box<Expr>),
    IsNotNull(Box<Expr>),
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    Call(Function, Vec<Expr>),
    Exists(Box<Body>),
}

/// A value written in the pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(SmolStr),
}

/// What `event.` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventField {
    Kind,
    Actor,
    Id,
    Payload(Vec<SmolStr>),
}

/// An operator between two values of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A test of one text by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextTest {
    StartsWith,
    EndsWith,
    Contains,
    Matches,
}

/// An operator on numbers; `+` also joins texts and lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

/// A function that a pattern may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// The id of an element.
    Id,
    /// The type of an element.
    Type,
    /// The number of characters of a text, or of items of a list.
    Size,
    /// The first argument that is not null.
    Coalesce,
}

impl Function {
    /// Every function with its name, in the order of the names.
    pub(crate) const ALL: [(&'static str, Function); 4] = [
        ("coalesce", Function::Coalesce),
        ("id", Function::Id),
        ("size", Function::Size),
        ("type", Function::Type),
    ];

    /// Its name as written.
    pub(crate) fn name(self) -> &'static str {
        let found = Function::ALL.iter().find(|(_, function)| *function == self);
        found.expect("every function is listed").0
    }
}

impl Comparison {
    /// The operator as written.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "<>",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

impl TextTest {
    /// The operator as written.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            TextTest::StartsWith => "STARTS WITH",
            TextTest::EndsWith => "ENDS WITH",
            TextTest::Contains => "CONTAINS",
            TextTest::Matches => "=~",
        }
    }
}

impl Arithmetic {
    /// The operator as written.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::Remainder => "%",
            Arithmetic::Power => "^",
        }
    }
}
