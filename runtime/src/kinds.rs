//! Which kinds of event may come from outside the runtime.

use behaviors::is_runtime_kind;

/// Checks the kind of an event that a person or a flock appends.
///
/// # Errors
/// Not dotted lower-case words, or a kind that only the runtime writes.
pub fn check_outside_kind(kind: &str) -> Result<&str, String> {
    let word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    if kind.is_empty() || kind.len() > 200 || !kind.split('.').all(word) {
        return Err(format!(
            "`{kind}` is no kind; write dotted lower-case words, such as note.added"
        ));
    }
    if is_runtime_kind(kind) {
        return Err(format!("`{kind}` is written by the runtime only; choose another first word"));
    }
    Ok(kind)
}
