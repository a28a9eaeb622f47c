//! Whether the canonical form of a pattern can itself be read.

use super::{Reading, parse};
use crate::pattern::error::PatternError;
use crate::pattern::syntax::Span;

/// Checks that what a pattern is printed as is a pattern: brackets that are printed where none were
/// written may nest deeper than is read.
///
/// # Errors
/// It nests deeper or is longer than a pattern may.
pub(crate) fn readable(text: &str, canonical: &str) -> Result<(), PatternError> {
    parse(canonical).map(drop).map_err(|_| {
        let message = format!(
            "with all its brackets, it is nested deeper than {} levels or longer than {} KiB",
            Reading::Pattern.depth_max(),
            Reading::Pattern.text_max() >> 10
        );
        PatternError::at(text, start(text), message).fix("write it with fewer operators in a row")
    })
}

/// The first character of a text.
pub(super) fn start(text: &str) -> Span {
    Span { start: 0, end: text.chars().next().map_or(0, char::len_utf8) }
}
