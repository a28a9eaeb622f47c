//! What must change for a pattern to wake, so that an event asks only those it can matter to.

use smol_str::SmolStr;

use crate::pattern::program::{Kind, Program};

/// One kind of change that can make a match true or false.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watch {
    /// Whether a node or an edge changes; never `Path`, whose edges are watched one by one.
    pub kind: Kind,
    /// Its type; `None` is any.
    pub type_name: Option<SmolStr>,
    /// What changes about it.
    pub aspect: Aspect,
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
        for type_name in types {
            watches.extend(aspects.iter().map(|aspect| Watch {
                kind,
                type_name: type_name.clone(),
                aspect: aspect.clone(),
            }));
        }
    }
    watches.sort_unstable();
    watches.dedup();
    watches
}
