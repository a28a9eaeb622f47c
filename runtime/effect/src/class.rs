//! What may be done about an attempt whose outcome is not known: a property of the tool.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a tool promises about being called again. Whatever declares nothing is `Opaque`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It changes nothing: call it again.
    ReadOnly,
    /// It changes one thing from a base to a result, both known by hash: compare, then decide.
    CompareAndSet,
    /// The provider honours an idempotency key within a window: send the same again.
    Keyed,
    /// The provider can be asked what became of it: look before deciding.
    Queryable,
    /// Nothing can be known from here: a person decides.
    #[default]
    Opaque,
}

impl Class {
    /// The word for it in events and files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Class::ReadOnly => "read_only",
            Class::CompareAndSet => "compare_and_set",
            Class::Keyed => "keyed",
            Class::Queryable => "queryable",
            Class::Opaque => "opaque",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
