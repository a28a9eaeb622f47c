//! One attempt, as it is handed to an executor.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::Cancel;

/// One attempt at an action. Its intent is durable before an executor sees it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The action: the id of the event that requested it, as 32 hex digits.
    pub action: String,
    /// The attempt at it, from 1.
    pub attempt: u32,
    /// What is asked for, as it was requested: `tool:pay_flight`, `fs.read`.
    pub effect: String,
    /// The normalised arguments, exactly those that the guards allowed.
    pub args: Value,
    /// Passed to providers that honour one: the same for every attempt at one action on one branch.
    pub idempotency_key: String,
    /// What the executor may take, from now.
    pub timeout: Duration,
    /// The folder that the flock works in, if it declared one.
    pub workspace: Option<PathBuf>,
    /// Ends the attempt. The executor then answers within `Limits::cancel_within`.
    pub cancel: Cancel,
}
