//! A pattern as the matcher runs it: names resolved to slots, conditions split into filters.
//!
//! Every node, edge and path of the pattern has a *slot*, those inside `EXISTS` included, so one
//! frame of 64 places holds any state of a search and a set of slots is a `u64`. A *scope* is the
//! pattern itself (number 0) or one `EXISTS`. No order of search is fixed here: the search chooses
//! it by what it has bound and by how many edges it finds there.

use regex::Regex;
use smol_str::SmolStr;

use crate::pattern::syntax::{
    Arithmetic, Comparison, EachAim, EventField, Function, Length, Literal, TextTest,
};

/// How many nodes, edges and paths a pattern may have.
pub(crate) const SLOTS_MAX: usize = 64;

/// A set of slots.
pub(crate) type SlotSet = u64;

/// The set of one slot.
pub(crate) const fn bit(slot: usize) -> SlotSet {
    1 << slot
}

/// The slots of a set, lowest first.
pub(crate) fn slots_of(set: SlotSet) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let slot = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        Some(slot)
    })
}

/// What a part of a pattern is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// One node.
    Node,
    /// One edge.
    Edge,
    /// The edges of a path of variable length.
    Path,
}

/// A pattern, ready to be searched for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) slots: Vec<Slot>,
    pub(crate) scopes: Vec<Scope>,
    /// The names of all types mentioned, each once. A `TypeNumber` counts in here.
    pub(crate) types: Vec<SmolStr>,
    pub(crate) parameters: Vec<SmolStr>,
    pub(crate) uses_event: bool,
}

/// The place of a name in `Program::types`.
pub(crate) type TypeNumber = usize;

/// A node, edge or path of the pattern.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) name: Option<SmolStr>,
    pub(crate) kind: Kind,
    pub(crate) scope: usize,
    /// The types it may have; `None` is any.
    pub(crate) types: Option<Vec<TypeNumber>>,
    /// The properties of it that any condition reads.
    pub(crate) read: Vec<SmolStr>,
    /// Whether a condition may read any of its properties.
    pub(crate) reads_any: bool,
    /// Whether an edge of its scope ends at it, so that it cannot appear without one.
    pub(crate) has_edge: bool,
}

/// What must be found together: the pattern itself, or the inside of one `EXISTS`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) parent: Option<usize>,
    /// Its own nodes.
    pub(crate) nodes: SlotSet,
    /// Everything it binds itself.
    pub(crate) own: SlotSet,
    /// Slots of surrounding scopes that it mentions.
    pub(crate) imports: SlotSet,
    pub(crate) edges: Vec<EdgeStep>,
    pub(crate) filters: Vec<Filter>,
    pub(crate) anchors: Vec<Anchor>,
    /// Own slots that are bound to a value from outside of the pattern before it is searched for;
    /// only a query has any.
    pub(crate) given: Vec<(usize, Code)>,
}

/// An edge between two nodes of a scope, or a path.
#[derive(Clone, Debug)]
pub(crate) struct EdgeStep {
    pub(crate) slot: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) ways: Ways,
    pub(crate) length: Option<Length>,
    /// What each edge of a path must have.
    pub(crate) each: Vec<(SmolStr, Code)>,
}

/// Which way the edges of a step point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ways {
    /// From `from` to `to`.
    Forward,
    /// From `to` to `from`.
    Backward,
    /// Either.
    Both,
}

/// A condition that must be true.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) needs: SlotSet,
    pub(crate) code: Code,
    /// Whether it holds an `EXISTS`, which is looked at last.
    pub(crate) late: bool,
}

/// A way to find the element of a slot without looking through its type.
#[derive(Clone, Debug)]
pub(crate) struct Anchor {
    pub(crate) slot: usize,
    /// What must be bound before.
    pub(crate) needs: SlotSet,
    pub(crate) key: AnchorKey,
    pub(crate) value: Code,
}

/// What an anchor looks an element up by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnchorKey {
    /// Its id.
    Id,
    /// The value of a property, through an index.
    Property(SmolStr),
}

/// An expression with its names resolved.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Constant(Literal),
    Slot(usize),
    Event(EventField),
    Parameter(SmolStr),
    /// A property of the element in a slot.
    Read(usize, SmolStr),
    /// A field of another value.
    Field(Box<Code>, SmolStr),
    Index(Box<Code>, Box<Code>),
    Slice(Box<Code>, Option<Box<Code>>, Option<Box<Code>>),
    HasType(usize, Vec<TypeNumber>),
    List(Vec<Code>),
    Map(Vec<(SmolStr, Code)>),
    Not(Box<Code>),
    Negate(Box<Code>),
    And(Vec<Code>),
    Or(Vec<Code>),
    Xor(Box<Code>, Box<Code>),
    Compare(Box<Code>, Vec<(Comparison, Code)>),
    In(Box<Code>, Box<Code>),
    Text(TextTest, Box<Code>, Box<Code>),
    /// A text against an expression that was written in the pattern.
    Matches(Box<Code>, Regex),
    IsNull(Box<Code>),
    Arithmetic(Arithmetic, Box<Code>, Box<Code>),
    Call(Function, Vec<Code>),
    /// Whether a scope has a match.
    Exists(usize),
    Case(Box<CaseCode>),
    Each(Box<EachCode>),
    /// The item of an enclosing `Each`, by its depth.
    Item(usize),
    /// A value of the row that a query is at.
    Column(usize),
    /// The type of a value that is no slot.
    IsType(Box<Code>, Vec<SmolStr>),
    /// The value of each match of a scope.
    Collect(usize, Box<Code>),
    /// A node, then edges or paths each with a further node, as a path.
    Path(Vec<usize>),
}

/// `CASE` with its names resolved.
#[derive(Clone, Debug)]
pub(crate) struct CaseCode {
    pub(crate) subject: Option<Code>,
    pub(crate) branches: Vec<(Code, Code)>,
    pub(crate) otherwise: Option<Code>,
}

/// A list comprehension, or a question about all items, with its names resolved.
#[derive(Clone, Debug)]
pub(crate) struct EachCode {
    pub(crate) aim: EachAim,
    pub(crate) list: Code,
    pub(crate) condition: Option<Code>,
    pub(crate) value: Option<Code>,
}

impl Program {
    /// Every slot that `code` reads.
    pub(crate) fn needs(&self, code: &Code) -> SlotSet {
        let (mut set, mut own) = (0, 0);
        code.visit(&mut |part| match part {
            Code::Slot(slot) | Code::Read(slot, _) | Code::HasType(slot, _) => set |= bit(*slot),
            Code::Exists(scope) => set |= self.scopes[*scope].imports,
            // What stands for each match may read what only the scope binds.
            Code::Collect(scope, _) => {
                set |= self.scopes[*scope].imports;
                own |= self.scopes[*scope].own;
            }
            Code::Path(slots) => slots.iter().for_each(|slot| set |= bit(*slot)),
            _ => {}
        });
        set & !own
    }

    /// Whether an element of this type can stand in a slot.
    pub(crate) fn fits_type(&self, slot: usize, type_name: &str) -> bool {
        match &self.slots[slot].types {
            None => true,
            Some(types) => types.iter().any(|number| self.types[*number] == type_name),
        }
    }

    /// The type names of a slot; `None` is any.
    pub(crate) fn type_names(&self, slot: usize) -> Option<Vec<SmolStr>> {
        let types = self.slots[slot].types.as_ref()?;
        Some(types.iter().map(|number| self.types[*number].clone()).collect())
    }
}

impl Code {
    /// Calls `seen` with this code and everything inside it.
    pub(crate) fn visit<'c>(&'c self, seen: &mut dyn FnMut(&'c Code)) {
        seen(self);
        match self {
            Code::Constant(_)
            | Code::Slot(_)
            | Code::Event(_)
            | Code::Parameter(_)
            | Code::Read(..)
            | Code::HasType(..)
            | Code::Item(_)
            | Code::Column(_)
            | Code::Path(_)
            | Code::Exists(_) => {}
            Code::Field(a, _)
            | Code::IsType(a, _)
            | Code::Collect(_, a)
            | Code::Not(a)
            | Code::Negate(a)
            | Code::Matches(a, _)
            | Code::IsNull(a) => a.visit(seen),
            Code::Index(a, b)
            | Code::Xor(a, b)
            | Code::In(a, b)
            | Code::Text(_, a, b)
            | Code::Arithmetic(_, a, b) => {
                a.visit(seen);
                b.visit(seen);
            }
            Code::Slice(base, from, to) => {
                base.visit(seen);
                from.iter().chain(to).for_each(|part| part.visit(seen));
            }
            Code::Case(case) => {
                case.subject.iter().for_each(|part| part.visit(seen));
                for (test, value) in &case.branches {
                    test.visit(seen);
                    value.visit(seen);
                }
                case.otherwise.iter().for_each(|part| part.visit(seen));
            }
            Code::Each(each) => {
                each.list.visit(seen);
                each.condition.iter().chain(&each.value).for_each(|part| part.visit(seen));
            }
            Code::List(parts) | Code::And(parts) | Code::Or(parts) | Code::Call(_, parts) => {
                parts.iter().for_each(|part| part.visit(seen));
            }
            Code::Map(entries) => entries.iter().for_each(|(_, part)| part.visit(seen)),
            Code::Compare(first, rest) => {
                first.visit(seen);
                rest.iter().for_each(|(_, part)| part.visit(seen));
            }
        }
    }
}
