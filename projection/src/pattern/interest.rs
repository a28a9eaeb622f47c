//! What must change for a pattern to wake, so that an event asks only those it can matter to.

use log::ValueRef;
use smol_str::SmolStr;

use crate::pattern::program::{Code, Kind, Program};
use crate::pattern::syntax::{Comparison, Literal};

/// One kind of change that can make a match true or false.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watch {
    /// Whether a node or an edge changes; never `Path`, whose edges are watched one by one.
    pub kind: Kind,
    /// Its type; `None` is any.
    pub type_name: Option<SmolStr>,
    /// What changes about it.
    pub aspect: Aspect,
    /// A property and the value that it must have, before the event or after it.
    pub fixed: Option<(SmolStr, Fixed)>,
}

/// A value written in a pattern that a property must be equal to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fixed {
    /// True or false.
    Bool(bool),
    /// A whole number, whatever it is stored as.
    Whole(i64),
    /// A text.
    Text(SmolStr),
}

/// What changes about an element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Aspect {
    /// It is created or removed.
    Existence,
    /// The value of this property.
    Property(SmolStr),
    /// The value of any property.
    AnyProperty,
}

/// Every change that can matter to a pattern, each once, in order.
pub(super) fn interest(program: &Program) -> Vec<Watch> {
    let mut watches = Vec::new();
    for (number, slot) in program.slots.iter().enumerate() {
        let kind = if slot.kind == Kind::Node { Kind::Node } else { Kind::Edge };
        let types = match program.type_names(number) {
            None => vec![None],
            Some(names) => names.into_iter().map(Some).collect(),
        };
        let mut aspects: Vec<Aspect> = slot.read.iter().cloned().map(Aspect::Property).collect();
        if slot.reads_any {
            aspects.push(Aspect::AnyProperty);
        }
        // A node that comes or goes with an edge is seen by that edge.
        if !slot.has_edge {
            aspects.push(Aspect::Existence);
        }
        let fixed = fixed(program, number);
        for type_name in types {
            watches.extend(aspects.iter().map(|aspect| Watch {
                kind,
                type_name: type_name.clone(),
                aspect: aspect.clone(),
                fixed: fixed.clone(),
            }));
        }
    }
    watches.sort_unstable();
    watches.dedup();
    watches
}

/// The longest text that is looked up; a longer one may be stored as a reference.
const TEXT_MAX: usize = 256;

impl Fixed {
    /// What a stored value is equal to, if it can be one of these.
    #[must_use]
    pub fn of(value: ValueRef<'_>) -> Option<Fixed> {
        Some(match value {
            ValueRef::Bool(truth) => Fixed::Bool(truth),
            ValueRef::Int(number) => Fixed::Whole(number),
            ValueRef::UInt(number) => Fixed::Whole(i64::try_from(number).ok()?),
            // Below 2^53 every whole number has a float of its own.
            ValueRef::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
                Fixed::Whole(number as i64)
            }
            ValueRef::String(text) if text.len() <= TEXT_MAX => Fixed::Text(text.into()),
            _ => return None,
        })
    }
}

/// The value that a condition of its scope fixes a property of a slot to. An element without it is
/// in no match there.
fn fixed(program: &Program, number: usize) -> Option<(SmolStr, Fixed)> {
    let filters = &program.scopes[program.slots[number].scope].filters;
    filters.iter().find_map(|filter| {
        let Code::Compare(left, rest) = &filter.code else { return None };
        let [(Comparison::Equal, right)] = rest.as_slice() else { return None };
        let (name, literal) = match (&**left, right) {
            (Code::Read(slot, name), Code::Constant(literal))
            | (Code::Constant(literal), Code::Read(slot, name))
                if *slot == number =>
            {
                (name, literal)
            }
            _ => return None,
        };
        let fixed = match literal {
            Literal::Bool(truth) => Fixed::Bool(*truth),
            Literal::Int(whole) if whole.unsigned_abs() < 1 << 53 => Fixed::Whole(*whole),
            Literal::Text(text) if text.len() <= TEXT_MAX => Fixed::Text(text.clone()),
            _ => return None,
        };
        Some((name.clone(), fixed))
    })
}
