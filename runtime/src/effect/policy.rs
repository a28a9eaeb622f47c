//! What the flock's first event says about effects: grants, approvals, budgets, guards, retries.

use behaviors::duration_ms;
use serde_json::{Map, Value};

use super::budget::Ceiling;

/// How long an approval may take unless the flock says otherwise: a day.
const APPROVAL_MS: u64 = 24 * 3_600_000;
/// How many ended failures with one signature ban an intent.
const BAN_AFTER: u64 = 2;

/// What a flock allows to leave, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    /// The flock's name: what an intent is relative to.
    pub(crate) scope: String,
    pub(crate) grants: Vec<String>,
    /// The effects that a person has to approve.
    pub(crate) ask: Vec<String>,
    pub(crate) approval_ms: u64,
    /// How many attempts may be out at once, if the flock says so.
    pub(crate) at_once: Option<usize>,
    /// The guards without which nothing leaves.
    pub(crate) guards: Vec<String>,
    pub(crate) ceiling: Ceiling,
    pub(crate) ban_after: u64,
    /// How often each domain of errors is tried again on one goal, where the flock says.
    pub(crate) retries: Vec<(String, u64)>,
    /// The folder that the flock works in, relative to it.
    pub(crate) workspace: Option<String>,
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let all = value.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

impl Policy {
    /// Reads the payload of `flock.started` with its changes.
    pub(crate) fn of_flock(whole: &Map<String, Value>) -> Policy {
        let text = |name: &str| whole.get(name).and_then(Value::as_str).map(str::to_owned);
        let grants = whole.get("grants");
        let grant = |name: &str| grants.and_then(|grants| grants.get(name));
        let retry = whole.get("retry").and_then(Value::as_object);
        let retries = retry.into_iter().flatten();
        let approval = grant("approval").and_then(Value::as_str).and_then(duration_ms);
        let at_once = grant("at_once").and_then(Value::as_u64);
        let ban = retry.and_then(|retry| retry.get("ban_after")?.as_u64());
        Policy {
            scope: text("name").unwrap_or_default(),
            grants: texts(grant("effects")),
            ask: texts(grant("ask")),
            approval_ms: approval.unwrap_or(APPROVAL_MS),
            at_once: at_once.and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0),
            guards: texts(whole.get("guards")),
            ceiling: Ceiling::of_json(whole.get("budget")),
            ban_after: ban.unwrap_or(BAN_AFTER).max(1),
            retries: retries.filter_map(|(name, n)| Some((name.clone(), n.as_u64()?))).collect(),
            workspace: text("workspace"),
        }
    }
}
