//! A pattern as a tree: what the parser makes, and what everything else reads.
//!
//! The tree says what was written, nothing more: no name is resolved here, nothing is planned. A
//! `Body` is what stands after `MATCH`; the clauses of a query are siblings of it. An
//! `EXISTS { … }` holds a body of its own.

mod function;

use smol_str::SmolStr;

pub(crate) use function::Function;

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
    /// Whether it is a chain that stands for `EXISTS` and so names nothing of its own.
    pub(crate) bare: bool,
}

/// A node, then edges each with a further node; in a query the whole may have a name.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) path: Option<Name>,
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
    /// `base[from..to]`, each end optional.
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
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
    Case(Box<Case>),
    Each(Box<Each>),
    /// `[(a)-->(b) WHERE condition | value]`: the value of each match.
    Collect(Box<Body>, Box<Expr>),
    /// `count(DISTINCT x)`; only a projection of a query has any.
    Aggregate(Box<Aggregated>),
    /// A column of the row by its place: never written, put where a query knows the value already.
    Column(usize),
}

/// `CASE [subject] WHEN test THEN value … [ELSE value] END`
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// What each test is compared with; without it each test is a condition.
    pub(crate) subject: Option<Expr>,
    pub(crate) branches: Vec<(Expr, Expr)>,
    pub(crate) otherwise: Option<Expr>,
}

/// `[x IN list WHERE condition | value]`, or `all(x IN list WHERE condition)` and its like.
#[derive(Clone, Debug)]
pub(crate) struct Each {
    pub(crate) aim: EachAim,
    pub(crate) name: Name,
    pub(crate) list: Expr,
    pub(crate) condition: Option<Expr>,
    pub(crate) value: Option<Expr>,
}

/// What is made of the items of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EachAim {
    /// A list of the values.
    List,
    /// Whether the condition is true of all.
    All,
    /// Of one or more.
    Any,
    /// Of none.
    None,
    /// Of exactly one.
    Single,
}

impl EachAim {
    /// Those that are written like a call.
    pub(crate) const CALLED: [(&'static str, EachAim); 4] = [
        ("all", EachAim::All),
        ("any", EachAim::Any),
        ("none", EachAim::None),
        ("single", EachAim::Single),
    ];
}

/// A call that makes one value of many rows.
#[derive(Clone, Debug)]
pub(crate) struct Aggregated {
    pub(crate) aggregate: Aggregate,
    pub(crate) distinct: bool,
    /// What is computed in each row; none for `count(*)`.
    pub(crate) argument: Option<Expr>,
    /// Which part of the values is asked for, of a percentile.
    pub(crate) share: Option<Expr>,
}

/// How many rows become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregate {
    Avg,
    Collect,
    Count,
    Max,
    Min,
    PercentileCont,
    PercentileDisc,
    Sum,
}

impl Aggregate {
    /// Every aggregate with its name.
    pub(crate) const ALL: [(&'static str, Aggregate); 8] = [
        ("avg", Aggregate::Avg),
        ("collect", Aggregate::Collect),
        ("count", Aggregate::Count),
        ("max", Aggregate::Max),
        ("min", Aggregate::Min),
        ("percentileCont", Aggregate::PercentileCont),
        ("percentileDisc", Aggregate::PercentileDisc),
        ("sum", Aggregate::Sum),
    ];

    /// Its name as written.
    pub(crate) fn name(self) -> &'static str {
        let found = Aggregate::ALL.iter().find(|(_, aggregate)| *aggregate == self);
        found.expect("every aggregate is listed").0
    }
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
