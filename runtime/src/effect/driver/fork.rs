//! A fork and the effects that were open at its cut: they stay with the parent. The fork is served
//! what the parent was answered, or has its own cancelled by the fork.

use log::{Draft, EventId, Time};
use serde_json::json;

use super::{Driver, land, serve};
use crate::effect::action::{Action, Stage, is_inner};
use crate::effect::approve;
use crate::effect::next::cancelled;
use crate::effect::recorded::{Served, Serving};
use crate::engine::{Engine, EngineError};

impl Driver {
    /// Ends what the fork has open of its parent, once.
    pub(super) fn begin_fork(
        &mut self,
        engine: &mut Engine,
        now: Time,
    ) -> Result<usize, EngineError> {
        let Some(fork) = engine.log().branch(engine.branch())?.fork else { return Ok(0) };
        let cut = fork.cut.count();
        let of_parent = |action: &&Action| action.facts.offset < cut;
        let open: Vec<Action> = engine.effects().iter().filter(of_parent).cloned().collect();
        let mut landed = 0;
        for action in open {
            let id = &action.facts.id;
            if self.expected.contains(id) {
                continue;
            }
            if engine.effects().get(id).is_some() && !self.is_own(engine, &action)? {
                let drafts = self.of_fork(engine, &action, now);
                landed += land(engine, drafts)?;
            }
        }
        Ok(landed)
    }

    /// Whether the fork itself has something to do with the action since its cut: then it is its
    /// own. An attempt of an epoch of the parent is not.
    fn is_own(&self, engine: &Engine, action: &Action) -> Result<bool, EngineError> {
        let node = engine.graph().element(&action.facts.node);
        let changed = node.map(|node| node.changed().get());
        let fork = engine.log().branch(engine.branch())?.fork;
        Ok(changed.zip(fork).is_some_and(|(at, fork)| at >= fork.cut.count()))
    }

    fn of_fork(&self, engine: &Engine, action: &Action, now: Time) -> Vec<Draft> {
        let facts = &action.facts;
        let recorded = facts.intent.and_then(|intent| {
            let question = crate::effect::action::question_of(&facts.effect, &action.args());
            let owned = |_: &EventId| true;
            let found = self.recorded.find(&facts.id, &intent, &question, (u64::MAX, &owned));
            found.map(|served| (intent, served))
        });
        let effects = engine.effects();
        let by_fork = || cancelled("its branch was forked while it was open");
        let by = |mut draft: Draft| {
            draft.payload.insert("by".to_owned(), json!("fork"));
            draft
        };
        let ended = |drafts: Vec<Draft>| drafts.into_iter().map(by).collect();
        match (&facts.stage, recorded) {
            // Nothing has left, so it is asked here if it may be.
            (Stage::Requested | Stage::Held { .. }, _) if self.serving != Serving::Recorded => {
                Vec::new()
            }
            (Stage::Requested | Stage::Held { .. }, _) if self.would_serve(action, engine) => {
                Vec::new()
            }
            (Stage::Running(running), _) if is_inner(&running.executor) => Vec::new(),
            (Stage::Unknown(_), Some((_, Served { ending, .. }))) => {
                approve::reconciled(effects, action, &ending, "recorded", now)
            }
            (Stage::Unknown(_), None) => {
                ended(approve::reconciled(effects, action, &by_fork(), "fork", now))
            }
            (Stage::Running(running), Some((_, Served { ending, .. }))) => {
                approve::answered(effects, action, running.attempt, ending, now)
            }
            (Stage::Running(running), None) => {
                ended(approve::answered(effects, action, running.attempt, by_fork(), now))
            }
            (Stage::Waiting { .. }, Some((intent, served))) => {
                serve::drafts(engine, action, intent, &served, now)
            }
            (Stage::Linked { .. }, _) => Vec::new(),
            _ => ended(approve::ended(effects, action, &by_fork(), now)),
        }
    }

    /// Whether an answer is recorded for what has not left.
    fn would_serve(&self, action: &Action, engine: &Engine) -> bool {
        let facts = &action.facts;
        let intent = super::feed::intent_here(engine, action);
        let question = crate::effect::action::question_of(&facts.effect, &action.args());
        let owned = |_: &EventId| false;
        self.recorded.find(&facts.id, &intent, &question, (0, &owned)).is_some()
    }
}
