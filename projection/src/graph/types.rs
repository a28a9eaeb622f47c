//! The names of types, numbered as the graph first meets them.

use super::element::TypeId;
use super::hash::hash_bytes;

/// All types that the graph has met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    names: Vec<Box<str>>,
    /// Numbers by hash of the name, with `FREE` between them; a power of two, at most half full.
    table: Vec<u32>,
}

const FREE: u32 = u32::MAX;

impl Types {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The name of a type.
    pub(crate) fn name(&self, id: TypeId) -> &str {
        &self.names[id.0 as usize]
    }

    /// All names by number.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// The number of a name that was met.
    pub(crate) fn find(&self, name: &str) -> Option<TypeId> {
        let number = self.table.get(self.slot(name)?)?;
        if *number == FREE { None } else { Some(TypeId(*number)) }
    }

    /// Numbers a name that was not met before.
    pub(crate) fn add(&mut self, name: &str) -> TypeId {
        assert!(self.find(name).is_none(), "`{name}` is new");
        let number = u32::try_from(self.names.len()).expect("types are named in events");
        self.names.push(name.into());
        if self.names.len() * 2 > self.table.len() {
            self.rebuild();
        } else {
            let slot = self.slot(name).expect("the table is not empty");
            self.table[slot] = number;
        }
        TypeId(number)
    }

    /// Forgets the types met last.
    pub(crate) fn truncate(&mut self, len: usize) {
        assert!(len <= self.names.len(), "only what was met can be forgotten");
        self.names.truncate(len);
        self.rebuild();
    }

    /// Where a name stands or would stand in the table.
    fn slot(&self, name: &str) -> Option<usize> {
        let mask = self.table.len().checked_sub(1)?;
        let mut slot = hash_bytes(name.as_bytes()) as usize & mask;
        while self.table[slot] != FREE && *self.names[self.table[slot] as usize] != *name {
            slot = (slot + 1) & mask;
        }
        Some(slot)
    }

    fn rebuild(&mut self) {
        self.table = vec![FREE; (self.names.len() * 4).next_power_of_two()];
        for number in 0..self.names.len() {
            let slot = self.slot(&self.names[number]).expect("the table is not empty");
            self.table[slot] = number as u32;
        }
    }
}
