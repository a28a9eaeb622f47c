//! What a text is read as, a pattern or a whole query, and the bounds of each.

/// What a text is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// A pattern: no clause follows it, and no path has a name.
    Pattern,
    /// A query, of which patterns are a part.
    Query,
}

impl Reading {
    /// What it is called.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Reading::Pattern => "pattern",
            Reading::Query => "query",
        }
    }

    /// The longest text, in bytes.
    pub(super) fn text_max(self) -> usize {
        match self {
            Reading::Pattern => 1 << 16,
            Reading::Query => 1 << 20,
        }
    }

    /// How deep brackets and operators may nest.
    pub(super) fn depth_max(self) -> usize {
        match self {
            Reading::Pattern => 64,
            Reading::Query => 128,
        }
    }

    /// How many terms the expressions may hold together.
    pub(super) fn terms_max(self) -> usize {
        match self {
            Reading::Pattern => 1000,
            Reading::Query => 100_000,
        }
    }
}
