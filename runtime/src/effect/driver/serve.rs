//! A recorded answer, told as if the world had said it just now.

use effect::Class;
use log::{Draft, Hash, Time};
use serde_json::json;

use super::settle::whole;
use crate::effect::events::{self, Ending, Leaving, at};
use crate::effect::recorded::Served;
use crate::effect::{Action, approve};
use crate::engine::Engine;

/// A recorded answer: it leaves, ends and is the outcome in one batch, and nobody outside hears.
pub(super) fn drafts(
    engine: &Engine,
    action: &Action,
    intent: Hash,
    served: &Served,
    now: Time,
) -> Vec<Draft> {
    let leaving = Leaving {
        attempt: action.facts.attempts + 1,
        executor: served.by.into(),
        class: Class::ReadOnly,
        epoch: engine.epoch(),
        deadline: now.ms(),
        intent,
        reserves: json!({}),
        sequence: served.sequence,
        again: None,
    };
    let mut drafts = vec![at(events::dispatched(&action.facts, &leaving), now)];
    let mut left = action.clone();
    left.facts.attempts = leaving.attempt;
    let mut ending: Ending = served.ending.clone();
    // Long texts in place, so that the answer is told as it was the first time.
    ending.result = ending.result.map(|result| whole(engine.log(), result));
    drafts.extend(approve::answered(engine.effects(), &left, leaving.attempt, ending, now));
    drafts
}
