//! What kind of value an expression gives, as far as its text tells.

use smol_str::SmolStr;

use crate::pattern::program::{Code, Kind, Program};
use crate::pattern::syntax::{EachAim, Function, Literal};

/// A kind of value. Each may also be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing is known.
    Any,
    Null,
    Bool,
    Number,
    Text,
    List,
    Map,
    Node,
    Edge,
    Path,
}

/// A name that a query knows, and what it stands for.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: SmolStr,
    pub(crate) shape: Shape,
}

impl Shape {
    /// Whether a value of this kind may be one of these.
    pub(crate) fn may_be(self, wanted: &[Shape]) -> bool {
        matches!(self, Shape::Any | Shape::Null) || wanted.contains(&self)
    }

    /// What it is called in messages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Shape::Any => "a value",
            Shape::Null => "null",
            Shape::Bool => "a truth",
            Shape::Number => "a number",
            Shape::Text => "a text",
            Shape::List => "a list",
            Shape::Map => "a map",
            Shape::Node => "a node",
            Shape::Edge => "an edge",
            Shape::Path => "a path",
        }
    }

    /// What a part of a pattern is when it is used as a value.
    pub(crate) fn of_kind(kind: Kind) -> Shape {
        match kind {
            Kind::Node => Shape::Node,
            Kind::Edge => Shape::Edge,
            Kind::Path => Shape::List,
        }
    }

    /// What an expression gives.
    pub(crate) fn of(code: &Code, program: &Program, columns: &[Column]) -> Shape {
        match code {
            Code::Constant(literal) => match literal {
                Literal::Null => Shape::Null,
                Literal::Bool(_) => Shape::Bool,
                Literal::Int(_) | Literal::UInt(_) | Literal::Float(_) => Shape::Number,
                Literal::Text(_) => Shape::Text,
            },
            Code::Slot(slot) => Shape::of_kind(program.slots[*slot].kind),
            Code::Column(place) => columns.get(*place).map_or(Shape::Any, |column| column.shape),
            Code::Path(_) => Shape::Path,
            Code::List(_) | Code::Collect(..) | Code::Slice(..) => Shape::List,
            Code::Each(each) if each.aim == EachAim::List => Shape::List,
            Code::Map(_) => Shape::Map,
            Code::Negate(_) => Shape::Number,
            Code::Call(function, _) => Shape::of_call(*function),
            Code::HasType(..)
            | Code::IsType(..)
            | Code::Not(_)
            | Code::And(_)
            | Code::Or(_)
            | Code::Xor(..)
            | Code::Compare(..)
            | Code::In(..)
            | Code::Text(..)
            | Code::Matches(..)
            | Code::IsNull(_)
            | Code::Each(_)
            | Code::Exists(_) => Shape::Bool,
            Code::Event(_)
            | Code::Parameter(_)
            | Code::Read(..)
            | Code::Field(..)
            | Code::Index(..)
            | Code::Arithmetic(..)
            | Code::Case(_)
            | Code::Item(_) => Shape::Any,
        }
    }

    /// What a function gives.
    fn of_call(function: Function) -> Shape {
        match function {
            Function::Abs
            | Function::Ceil
            | Function::Floor
            | Function::Length
            | Function::Round
            | Function::Sign
            | Function::Size
            | Function::Sqrt
            | Function::ToFloat
            | Function::ToInteger => Shape::Number,
            Function::Id
            | Function::LTrim
            | Function::Left
            | Function::RTrim
            | Function::Replace
            | Function::Right
            | Function::Substring
            | Function::ToLower
            | Function::ToString
            | Function::ToUpper
            | Function::Trim
            | Function::Type => Shape::Text,
            Function::Keys
            | Function::Labels
            | Function::Nodes
            | Function::Range
            | Function::Relationships
            | Function::Split
            | Function::Tail => Shape::List,
            Function::ToBoolean => Shape::Bool,
            Function::Properties => Shape::Map,
            Function::StartNode | Function::EndNode => Shape::Node,
            Function::Coalesce | Function::Head | Function::Last | Function::Reverse => Shape::Any,
        }
    }

    /// What the first argument of a function may be; `None` is anything.
    pub(crate) fn asked_by(function: Function) -> Option<&'static [Shape]> {
        Some(match function {
            Function::Id | Function::Type => &[Shape::Node, Shape::Edge],
            Function::Labels => &[Shape::Node],
            Function::StartNode | Function::EndNode => &[Shape::Edge],
            Function::Length | Function::Nodes | Function::Relationships => &[Shape::Path],
            Function::Keys | Function::Properties => &[Shape::Node, Shape::Edge, Shape::Map],
            Function::Size => &[Shape::Text, Shape::List, Shape::Map],
            Function::Head | Function::Last | Function::Tail => &[Shape::List],
            _ => return None,
        })
    }
}
