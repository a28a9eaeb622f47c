//! The names of types and the elements that have each of them.

/// All types that the graph has met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    names: Vec<smol_str::SmolStr>,
}

impl Types {
    pub(crate) fn name(&self, id: super::TypeId) -> &str {
        &self.names[id.0 as usize]
    }
}
