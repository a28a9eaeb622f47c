//! What may come from outside the runtime: kinds of event, and what their changes may name.

use behaviors::is_runtime_kind;
use log::Change;
use projection::check_chosen_id;

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

/// Checks a change of an event that a person or a flock appends.
///
/// # Errors
/// It makes or changes what only the runtime writes, or chooses an id that nobody may choose.
pub(crate) fn check_outside_change(change: &Change) -> Result<(), String> {
    if let Some(what) = of_runtime(change) {
        return Err(format!(
            "`{what}` is written by the runtime only; a type of your own does not begin with `_`"
        ));
    }
    let chosen = match change {
        Change::Create { id, .. } | Change::Link { id, .. } => id.as_deref(),
        Change::Ensure { id, .. } => Some(id.as_str()),
        _ => None,
    };
    chosen.map_or(Ok(()), check_chosen_id).map_err(|refusal| refusal.to_string())
}

/// The type or the derived id that a change names and only the runtime may write.
fn of_runtime(change: &Change) -> Option<&str> {
    let named: &str = match change {
        Change::Create { type_name, .. }
        | Change::Ensure { type_name, .. }
        | Change::Link { type_name, .. }
        | Change::EnsureLink { type_name, .. } => type_name,
        Change::Write { id, .. } | Change::Unset { id, .. } | Change::Remove { id }
            if id.contains('#') =>
        {
            id
        }
        _ => return None,
    };
    named.starts_with('_').then_some(named)
}
