//! What an attempt came to.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::error::EffectError;

/// How an attempt ended, as far as its executor can say.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It was done.
    Succeeded {
        /// What it gave.
        result: Value,
        /// What it changed, by hash, if it can say.
        fingerprint: Option<Fingerprint>,
    },
    /// It was not done, or it was done and says that it failed; either way it is settled.
    Failed(EffectError),
    /// It was ended before it took effect, for certain.
    Cancelled,
    /// It may have taken effect, or may still.
    Unknown(EffectError),
}

/// How deep a result may nest: an event holds 64 levels, some of which are its own.
pub(crate) const RESULT_DEPTH_MAX: usize = 60;

/// Whether an event can hold a value that nests no deeper than `depth`.
///
/// # Errors
/// What of it cannot be stored, as the end of a sentence.
pub(crate) fn storable(value: &Value, depth: usize) -> Result<(), String> {
    within(value, depth, depth)
}

fn within(value: &Value, left: usize, depth: usize) -> Result<(), String> {
    let Some(left) = left.checked_sub(1) else {
        return Err(format!("is nested more than {depth} deep"));
    };
    match value {
        Value::Number(number) => is_stored(number).then_some(()).ok_or_else(|| {
            format!("has the number {number}, which fits neither 64 bits nor a float")
        }),
        Value::Array(items) => items.iter().try_for_each(|item| within(item, left, depth)),
        Value::Object(map) => map.values().try_for_each(|inner| within(inner, left, depth)),
        _ => Ok(()),
    }
}

fn is_stored(number: &Number) -> bool {
    let text = number.to_string();
    let whole = !text.contains(['.', 'e', 'E']);
    match whole {
        true => number.as_i64().is_some() || number.as_u64().is_some(),
        false => number.as_f64().is_some_and(f64::is_finite),
    }
}

/// What an attempt changes, so that it can be recognised later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// What is changed: a path in the workspace, a provider's record.
    pub what: String,
    /// The hash it had before; none if it was not there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<String>,
    /// The hash it has after, or the provider's id of the record.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<String>,
}

/// What a look at the world found about an attempt whose outcome is not known.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// It took effect: with this result.
    Found(Value),
    /// It did not take effect and no longer can.
    Absent,
    /// It is still under way: look again later.
    Pending,
    /// The world is in neither of the two states: a person decides.
    Conflict(EffectError),
    /// It could not be looked at.
    Unreachable(EffectError),
}
