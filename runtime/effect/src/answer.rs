//! What an attempt came to.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
