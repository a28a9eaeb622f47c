//! Whether a step of an effect that is recorded elsewhere would be taken here as well.
//!
//! What a person or the world said is heard wherever somebody waits for it. What the runtime
//! decided, such as a refusal, is only taken over where it would decide the same here: a fork
//! without a guard is not bound by what that guard said.

use std::collections::{BTreeMap, HashSet};

use log::{Event, EventId, Hash, Time};

use super::Driver;
use crate::effect::action::{Action, Stage};
use crate::effect::guard::Checked;
use crate::effect::next::{Move, View, next};
use crate::effect::recorded::{Recorded, Serving};
use crate::effect::state::{action_of, number, text};
use crate::engine::{Engine, EngineError};

impl Driver {
    /// Leaves these actions to what is recorded of them.
    pub(crate) fn expect_recorded(&mut self, actions: HashSet<EventId>) {
        self.expected = actions;
    }

    /// Nothing more is fed: what is still open is asked for here, or ends here.
    pub(crate) fn expect_nothing_recorded(&mut self) {
        if !self.expected.is_empty() {
            self.expected.clear();
            self.begun = false;
        }
    }

    /// Ends what a fork has open of its parent and nothing is recorded of.
    pub(crate) fn begin(&mut self, engine: &mut Engine, now: Time) -> Result<usize, EngineError> {
        if self.begun {
            return Ok(0);
        }
        self.begun = true;
        let mut landed = self.begin_fork(engine, now)?;
        let doubts = self.doubts(engine, now);
        landed += super::land(engine, doubts)?;
        Ok(landed)
    }

    /// Serves an answer to an action now, if it may leave. Tells whether it did.
    pub(crate) fn serve_now(
        &mut self,
        engine: &mut Engine,
        action: EventId,
    ) -> Result<bool, EngineError> {
        let now = engine.recorded_now();
        let mut calls = Vec::new();
        let landed = self.step(engine, action, now, &mut calls)?;
        assert!(calls.is_empty(), "an answer that is given is not asked for");
        Ok(landed > 0)
    }

    /// Whether a recorded event about an action has its place here.
    pub(crate) fn agrees(&self, engine: &Engine, event: &Event) -> bool {
        let Some(action) = action_of(event).and_then(|id| engine.effects().get(&id)) else {
            return event.is_kind("attempt.late")
                && text(event, "node").is_some_and(|node| engine.graph().element(&node).is_some());
        };
        let (facts, stage) = (&action.facts, &action.facts.stage);
        let attempt = number(event, "attempt") == Some(i64::from(facts.attempts));
        match event.kind() {
            "effect.dispatched" => self.would_leave(engine, action, event),
            "effect.held" => matches!(would(engine, self, action), Move::Hold { .. }),
            "effect.linked" => matches!(would(engine, self, action), Move::Link(_)),
            "effect.asked" => matches!(would(engine, self, action), Move::Ask(_)),
            "effect.rewritten" => {
                action.is_waiting_to_leave() && self.would_rewrite(engine, action, event)
            }
            "effect.judged" => {
                let revision = number(event, "revision") == Some(i64::from(facts.revision));
                action.is_waiting_to_leave() && revision
            }
            "effect.approved" => matches!(stage, Stage::Held { .. }),
            "attempt.ended" => matches!(stage, Stage::Running(_)) && attempt,
            "effect.looked" | "effect.reconciled" => matches!(stage, Stage::Unknown(_)),
            "effect.ended" => self.would_end(engine, action, event),
            _ => true,
        }
    }

    fn would_leave(&self, engine: &Engine, action: &Action, event: &Event) -> bool {
        let intent: Option<Hash> = text(event, "intent").and_then(|intent| intent.parse().ok());
        let facts = &action.facts;
        let next_attempt = number(event, "attempt") == Some(i64::from(facts.attempts) + 1);
        match &facts.stage {
            Stage::Requested | Stage::Held { .. } => match would(engine, self, action) {
                Move::Leave { intent: here, .. } | Move::Serve { intent: here, .. } => {
                    Some(here) == intent
                }
                // Nobody here could do it, which what is recorded does not need.
                Move::Wait("nobody here can do it") => Some(intent_here(engine, action)) == intent,
                _ => false,
            },
            Stage::Waiting { .. } | Stage::Unknown(_) => next_attempt && facts.intent == intent,
            _ => false,
        }
    }

    fn would_rewrite(&self, engine: &Engine, action: &Action, event: &Event) -> bool {
        let args = event.payload().get("args").map(|args| args.to_json());
        match would(engine, self, action) {
            Move::Rewrite(here) => Some(here) == args,
            _ => self.executors.get(&action.facts.effect).is_none(),
        }
    }

    fn would_end(&self, engine: &Engine, action: &Action, event: &Event) -> bool {
        let facts = &action.facts;
        let attempts = number(event, "attempts") == Some(i64::from(facts.attempts));
        let status = text(event, "status").unwrap_or_default();
        let by_user = text(event, "by").is_some_and(|by| by.starts_with("user:"));
        match &facts.stage {
            Stage::Linked { to } => text(event, "linked") == Some(to.to_string()),
            Stage::Running(_) => attempts,
            Stage::Unknown(_) => attempts && status == "unknown",
            Stage::Held { .. } if by_user => true,
            _ => match would(engine, self, action) {
                Move::End(ending) => ending.status == status,
                _ => facts.cancelled && status == "cancelled",
            },
        }
    }
}

/// What would happen next to an action here, if the world could be asked.
fn would(engine: &Engine, driver: &Driver, action: &Action) -> Move {
    let (nothing, nobody) = (Recorded::default(), BTreeMap::new());
    let view = View {
        effects: engine.effects(),
        policy: engine.policy(),
        guards: engine.guards(action),
        limit: engine.request_limit(&action.facts.behavior),
        executors: &driver.executors,
        serving: Serving::RecordedThenLive,
        recorded: &nothing,
        own: engine.asks(&action.facts.behavior) == Some(action.facts.effect.as_str()),
        models: &nobody,
        asked: &|_| true,
        now: engine.recorded_now().ms(),
    };
    next(action, &view, &mut Checked::default())
}

/// What the arguments of an action intend here.
pub(super) fn intent_here(engine: &Engine, action: &Action) -> Hash {
    crate::effect::next::intent(action, engine.effects(), engine.policy())
}
