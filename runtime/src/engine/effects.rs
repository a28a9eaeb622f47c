//! The engine's side of effects: what the driver may see, and what it and people may land.
//!
//! All of it are events from outside: they are checked against what is known of their action and
//! stamped here, between firings and between rounds.

use behaviors::is_runtime_kind;
use log::{Change, Derivation, Draft, EventId, Time};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use super::bounds::Reached;
use super::state::State;
use super::{Engine, EngineError};
use crate::effect::{Action, Answered, Effects, OpenEffect, Policy, Scope, Stage, Verdicts};
use crate::effect::{answered, cancelled, ended, is_inner};

impl Engine {
    /// The effects that are open, in the order in which they were requested.
    #[must_use]
    pub fn open_effects(&self) -> Vec<OpenEffect> {
        self.state.open_effects()
    }

    /// What is known of effects.
    pub(crate) fn effects(&self) -> &Effects {
        &self.state.effects
    }

    /// What the flock allows.
    pub(crate) fn policy(&self) -> &Policy {
        &self.state.settings.policy
    }

    /// The seed of the branch.
    pub(crate) fn seed(&self) -> i64 {
        self.state.settings.seed
    }

    /// The epoch under which the engine writes.
    pub(crate) fn epoch(&self) -> u64 {
        self.claim.epoch.get()
    }

    /// What the loaded guards have to say about a request.
    pub(crate) fn guards(&self, action: &Action) -> Verdicts<'_> {
        self.state.verdicts(action)
    }

    /// How many effects a behavior may request, if it says so.
    pub(crate) fn request_limit(&self, behavior: &str) -> Option<u64> {
        self.state.subscriptions.get(behavior)?.metadata.budget.effects
    }

    /// The effect that answers for a behavior, if it cannot answer by itself.
    pub(crate) fn asks(&self, behavior: &str) -> Option<&str> {
        self.state.subscriptions.get(behavior)?.asks.as_deref()
    }

    /// Lands events of the runtime about effects.
    pub(crate) fn land_effects(&mut self, drafts: Vec<Draft>) -> Result<(), EngineError> {
        self.land_outside(drafts).map(drop)
    }

    /// Says once in the log that a budget of effects is used up.
    pub(crate) fn announce_exhausted(
        &mut self,
        budget: &str,
        limit: u64,
        behavior: &SmolStr,
    ) -> Result<(), EngineError> {
        let behavior = behavior.clone();
        self.announce_bound(&Reached { budget: budget.into(), limit, behavior, cycle: None })
    }

    /// When something that waits for a time is due, in milliseconds.
    pub(crate) fn next_delayed(&self) -> Option<i64> {
        self.state.agenda.delayed().next().map(|(due, _)| due)
    }

    /// Says in the log that it is `now`, so that what waited for this time is due.
    ///
    /// # Errors
    /// The log refused or failed.
    pub fn tick(&mut self, now: Time) -> Result<(), EngineError> {
        let Some(due) = self.next_delayed().filter(|due| *due <= now.ms()) else { return Ok(()) };
        let id = Derivation::new().text("ticked").integer(self.state.head.count()).finish();
        let mut draft = Draft::new(id, "flock.ticked", "runtime");
        draft.payload.insert("due".to_owned(), json!(due));
        draft.time = now;
        self.outside(draft).map(drop)
    }

    /// Waits until somebody offers an event; it is taken with the next step.
    pub(crate) async fn offered(&mut self) {
        if self.offered.is_none() {
            match self.claim.inbox.recv().await {
                Some(delivery) => self.offered = Some(delivery),
                // Nobody can offer anything any more.
                None => std::future::pending().await,
            }
        }
    }

    /// The open action whose id begins so.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn find_action(&self, prefix: &str) -> Result<EventId, String> {
        let fits = |action: &&Action| action.facts.id.to_string().starts_with(prefix);
        let mut found = self.state.effects.iter().filter(fits).map(|action| action.facts.id);
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (Some(_), Some(_)) => Err(format!("several open effects begin with {prefix}")),
            (None, _) => Err(format!(
                "no open effect begins with {prefix}: it has ended, or never was; \
                 starling effects lists those that are open"
            )),
        }
    }

    /// The events that offered ones become: words of people about effects are checked against what
    /// waits for them; any other event of the runtime's kinds is refused.
    pub(super) fn dressed(&mut self, drafts: Vec<Draft>) -> Result<Vec<Draft>, EngineError> {
        let mut dressed = Vec::with_capacity(drafts.len());
        for draft in drafts {
            if is_runtime_kind(&draft.kind) {
                dressed.extend(self.words_of_people(draft).map_err(EngineError::Refused)?);
            } else {
                dressed.push(draft);
            }
        }
        Ok(dressed)
    }

    fn words_of_people(&mut self, mut draft: Draft) -> Result<Vec<Draft>, String> {
        if !draft.actor.starts_with("user:") {
            return Err(format!("{} is no person", draft.actor));
        }
        let payload = Value::Object(draft.payload.clone());
        match draft.kind.as_str() {
            "effect.answered" => {
                let id = self.find_action(payload["action"].as_str().unwrap_or("?"))?;
                let said = Answered::of_json(&payload).ok_or("the answer says nothing")?;
                let action = self.state.effects.get(&id).expect("it was just found");
                said.drafts(&self.state.effects, action, &draft.actor, draft.time)
            }
            "effect.cancelling" => {
                let prefix = payload["scope"]["effect"].as_str();
                let scope = match prefix {
                    Some(prefix) => Scope::Effect(self.find_action(prefix)?),
                    None => Scope::of_json(&payload["scope"]).ok_or("the scope is none")?,
                };
                draft.payload.insert("scope".to_owned(), scope.to_json());
                Ok(self.cancelling(draft, scope))
            }
            "grant.given" | "grant.revoked" => {
                let mut properties = Map::new();
                properties.insert("effects".to_owned(), payload["effects"].clone());
                properties.insert("by".to_owned(), json!(draft.actor.as_str()));
                let given = draft.kind == "grant.given";
                properties.insert("given".to_owned(), json!(given));
                let type_name = "_Grant".into();
                draft.changes = vec![Change::Create { id: None, type_name, properties }];
                Ok(vec![draft])
            }
            "behavior.disabled" | "behavior.enabled" => {
                let name = payload["name"].as_str().unwrap_or("?");
                if draft.kind == "behavior.enabled" {
                    self.check_enable(name)?;
                } else {
                    self.check_disable(name)?;
                }
                let waiting = self.waiting_of(name);
                if waiting > 0 {
                    draft.payload.insert("withdrawn".to_owned(), json!(waiting));
                }
                Ok(vec![draft])
            }
            kind => Err(format!("`{kind}` is written by the runtime only")),
        }
    }

    /// A cancellation, and the ends of all that has not left; what has left is told to end.
    fn cancelling(&self, draft: Draft, scope: Scope) -> Vec<Draft> {
        let now = draft.time;
        let effects = &self.state.effects;
        let mut drafts = vec![draft];
        for action in effects.iter().filter(|action| scope.holds(&action.facts)) {
            drafts.extend(self.end_of_cancelled(action, now));
        }
        drafts
    }

    /// The end of a cancelled action; nothing for one that is out, which is told to end.
    pub(crate) fn end_of_cancelled(&self, action: &Action, now: Time) -> Vec<Draft> {
        let effects = &self.state.effects;
        match &action.facts.stage {
            Stage::Running(running) if is_inner(&running.executor) => {
                let ending = cancelled("it was cancelled");
                answered(effects, action, running.attempt, ending, now)
            }
            Stage::Running(_) | Stage::Unknown(_) => Vec::new(),
            _ => ended(effects, action, &cancelled("it was cancelled before it left"), now),
        }
    }

    /// Cancels what is open in a scope, and for a goal also what follows.
    ///
    /// # Errors
    /// The log refused or failed.
    pub fn cancel(
        &mut self,
        scope: Scope,
        who: &str,
        reason: &str,
        now: Time,
    ) -> Result<(), EngineError> {
        let draft = cancelling_draft(scope, who, reason, now, self.state.head.count());
        let drafts = self.cancelling(draft, scope);
        self.land_effects(drafts)
    }

    /// Lands what people say about effects, as if it were offered; for who has the engine.
    ///
    /// # Errors
    /// Nobody waits for it, or the log failed.
    pub fn people_say(&mut self, draft: Draft) -> Result<(), EngineError> {
        let drafts = self.dressed(vec![draft])?;
        self.land_effects(drafts)
    }
}

impl State {
    /// Whether nothing is under way that could still change the workspace.
    pub(crate) fn is_still(&self) -> bool {
        !self.effects.iter().any(|action| action.facts.is_out())
    }

    /// The effects that are open, in the order in which they were requested.
    pub(crate) fn open_effects(&self) -> Vec<OpenEffect> {
        let mut open: Vec<&Action> = self.effects.iter().collect();
        open.sort_by_key(|action| action.facts.offset);
        open.into_iter().map(OpenEffect::of).collect()
    }
}

/// The event with which `who` cancels a scope. `nth` tells one from another.
pub(crate) fn cancelling_draft(
    scope: Scope,
    who: &str,
    reason: &str,
    now: Time,
    nth: u64,
) -> Draft {
    let id = Derivation::new().text("cancelling").json(&scope.to_json()).integer(nth);
    let mut draft = Draft::new(id.text(reason).finish(), "effect.cancelling", who);
    draft.payload.insert("scope".to_owned(), scope.to_json());
    draft.payload.insert("reason".to_owned(), json!(reason));
    draft.time = now;
    draft
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use behaviors::{Behavior, Loaded, RustBehavior};
    use log::{BranchName, Hash, Log, LogId, MemoryLog};

    use super::*;
    use crate::effect::{Driver, Executors};
    use crate::engine::{Library, Start, start_branch};

    fn object(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("{value} is no object") };
        map
    }

    /// An engine in which a timer runs, a person is asked and approval is waited for.
    fn waiting() -> Engine {
        let metadata = json!({"name": "ask", "on": "goal.stated", "effects": ["*"]});
        let behavior = RustBehavior::new(&metadata, |_, out| {
            out.narrow(json!({"effects": ["*"], "budget": {"cost": 1.5}}));
            out.request("timer", json!({"after": "1h"}), None);
            out.request("human.ask", json!({"question": "why?"}), Some("once"));
            out.request("tool:x", json!({"n": 1}), None);
            Ok(())
        });
        let behavior = behavior.expect("valid metadata");
        let whole = Value::Object(behavior.metadata().to_json());
        let hash = Hash::of(b"ask").to_string();
        let payload = json!({"name": "ask", "path": "", "hash": hash, "metadata": whole});
        let mut library = Library::new();
        library.insert(Loaded::new(Arc::new(behavior), "ask"));
        let start = Start {
            flock: object(json!({
                "name": "f", "seed": 7, "schedule": "fifo",
                "grants": {"effects": ["*"], "ask": ["tool:x"]},
            })),
            seed: 7,
            behaviors: vec![("ask".into(), object(payload))],
            events: vec![Draft::new(EventId::ZERO, "goal.stated", "user:ann")],
            ..Start::default()
        };
        let log: Arc<dyn Log> = Arc::new(MemoryLog::new(LogId::ZERO));
        let branch = start_branch(&log, &BranchName::main(), &start, "test").expect("it starts");
        let mut engine = Engine::open(log, branch.id, library, "test").expect("it opens");
        let mut driver = Driver::new("main", Executors::new()).expect("threads");
        driver.serve(crate::effect::Serving::Recorded, crate::effect::Recorded::default());
        for ms in 1..4 {
            engine.run(|_| true).expect("it runs");
            driver.turn(&mut engine, Time::from_ms(ms).expect("a time")).expect("it runs");
        }
        engine
    }

    #[test]
    fn a_snapshot_holds_all_that_is_known_of_effects() {
        let engine = waiting();
        let state = &engine.state;
        let standing: Vec<String> =
            state.open_effects().iter().map(|open| open.waits_for.clone()).collect();
        assert_eq!(standing, ["its time", "a person's answer", "a person's approval"]);
        let again = State::decode(&state.encode(), state.graph.clone()).expect("it is read");
        assert_eq!(again.effects.ledger, state.effects.ledger);
        assert_eq!(again.clock, state.clock);
        let told = |state: &State| -> Vec<Value> {
            state.open_effects().iter().map(OpenEffect::to_json).collect()
        };
        assert_eq!(told(&again), told(state));
        assert_eq!(again.encode(), state.encode());
    }
}
