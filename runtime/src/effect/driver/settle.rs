//! What follows from what came back: the events that end, retry, doubt or settle an action.

use std::sync::Arc;
use std::time::Duration;

use behaviors::Texts;
use effect::{Answer, Blame, Call, Cancel, EffectError, Limits, Seen};
use log::{Draft, EventId, Log, Time};
use serde_json::{Value, json};

use super::Driver;
use super::flight::{self, Report};
use crate::effect::action::{Action, Doubt, Facts, Running, Stage, idempotency_key};
use crate::effect::approve;
use crate::effect::events::{self, After, Ending, Leaving, at};
use crate::effect::reconcile::{LOOKS_MAX, Remedy, look_again_ms, remedy};
use crate::effect::retry::{ATTEMPTS_MAX, limit_of, wait_ms};
use crate::effect::timer::Timer;
use crate::engine::{Engine, text_of};

/// The error of an attempt whose process ended while it was out.
pub(super) fn lost() -> EffectError {
    let what = "the process that waited for it ended";
    let action = "wait until it is reconciled, or settle it";
    EffectError::new("runtime.lost", Blame::Machine, what, action)
}

/// How an effect ends that the runtime itself answers, at its time.
pub(super) fn inner_ending(action: &Action, executor: &str, now: Time) -> Ending {
    let args = action.args();
    if executor == "clock" {
        let timer = Timer::read(&args, action.facts.time);
        let result = timer.map_or(Value::Null, |timer| timer.answer(now.ms()));
        return Ending::succeeded(result);
    }
    if action.facts.effect == "human.approve" {
        return Ending::succeeded(json!({"approved": false, "expired": true}));
    }
    let what = "nobody answered in time";
    let action = "ask again, and answer with starling approve ID ANSWER";
    Ending::with("failed", EffectError::new("person.expired", Blame::Policy, what, action))
}

fn ending_of(answer: Answer) -> Ending {
    match answer {
        Answer::Succeeded { result, fingerprint } => {
            Ending { fingerprint, ..Ending::succeeded(result) }
        }
        Answer::Failed(error) => Ending::with("failed", error),
        Answer::Cancelled => crate::effect::next::cancelled("it was ended before it took effect"),
        Answer::Unknown(error) => Ending::with("unknown", error),
    }
}

impl Driver {
    /// The events that follow from a report.
    pub(super) fn report(&mut self, engine: &Engine, report: Report, now: Time) -> Vec<Draft> {
        match report {
            Report::Ended { action, attempt, answer } => {
                let facts = self.over(action, attempt);
                self.ended(engine, action, attempt, answer, facts, now)
            }
            Report::Late { action, attempt, answer } => {
                let flight = self.flights.remove(&(action, attempt));
                let facts = flight.map(|flight| flight.facts);
                self.late(engine, action, attempt, ending_of(answer), facts, now)
            }
            Report::Seen { action, attempt, seen } => {
                self.looking.remove(&action);
                let Some(action) = engine.effects().get(&action).cloned() else {
                    return Vec::new();
                };
                self.free(&action.facts.effect);
                self.seen(engine, &action, attempt, seen, now)
            }
        }
    }

    fn free(&mut self, effect: &str) {
        if let Some(busy) = self.busy.get_mut(effect) {
            *busy = busy.saturating_sub(1);
        }
    }

    /// An attempt is over: its room is free. One that was given up may still give a receipt.
    fn over(&mut self, action: EventId, attempt: u32) -> Option<Facts> {
        let flight = self.flights.get(&(action, attempt))?;
        let facts = flight.facts.clone();
        self.free(&facts.effect);
        Some(facts)
    }

    fn ended(
        &mut self,
        engine: &Engine,
        id: EventId,
        attempt: u32,
        answer: Answer,
        facts: Option<Facts>,
        now: Time,
    ) -> Vec<Draft> {
        // Only what was given up while it ran may still give a receipt.
        let given_up = matches!(&answer, Answer::Unknown(error) if error.kind.starts_with("runtime.")
            && error.kind != "runtime.panic");
        if !given_up {
            self.flights.remove(&(id, attempt));
        }
        let Some(action) = engine.effects().get(&id).cloned() else {
            return self.late(engine, id, attempt, ending_of(answer), facts, now);
        };
        let running = match &action.facts.stage {
            Stage::Running(running) if running.attempt == attempt => running.clone(),
            _ => return self.late(engine, id, attempt, ending_of(answer), facts, now),
        };
        match answer {
            Answer::Unknown(error) => self.in_doubt(engine, &action, error, now),
            Answer::Cancelled if running.doubt.is_some() => {
                // This attempt did nothing, so the one before it is still in doubt.
                self.in_doubt(engine, &action, lost(), now)
            }
            Answer::Cancelled if self.stopping && !action.facts.cancelled => {
                // Nobody cancelled the action: the run stops, and the next one offers it again.
                let retry = Some(("stop".to_owned(), 0, now.ms()));
                let ending = ending_of(Answer::Cancelled);
                let after = After { retry, doubt: None };
                vec![at(events::attempt_ended(&action.facts, attempt, &ending, &after), now)]
            }
            Answer::Failed(error) if running.doubt.is_none() => {
                self.failed(engine, &action, &running, error, now)
            }
            answer => {
                let ending = ending_of(answer);
                if running.doubt.is_none() {
                    return approve::answered(engine.effects(), &action, attempt, ending, now);
                }
                let facts = &action.facts;
                let after = After::default();
                let mut drafts =
                    vec![at(events::attempt_ended(facts, attempt, &ending, &after), now)];
                let effects = engine.effects();
                drafts.extend(approve::reconciled(effects, &action, &ending, "again", now));
                drafts
            }
        }
    }

    /// A failure that is settled: tried again if that may help and is allowed, else the end.
    fn failed(
        &self,
        engine: &Engine,
        action: &Action,
        running: &Running,
        error: EffectError,
        now: Time,
    ) -> Vec<Draft> {
        let facts = &action.facts;
        let domain = error.domain().to_owned();
        let ledger = &engine.effects().ledger;
        let used = ledger.retries.get(&facts.goal).and_then(|all| all.get(domain.as_str()));
        let again = error.retryable
            && running.attempt < ATTEMPTS_MAX
            && !facts.cancelled
            && !ledger.cancelled.contains(&facts.goal)
            && used.copied().unwrap_or(0) < limit_of(engine.policy(), &domain);
        let ending = Ending::with("failed", error);
        if !again {
            return approve::answered(engine.effects(), action, running.attempt, ending, now);
        }
        let wait = wait_ms(engine.seed(), facts.id, running.attempt);
        let until = now.ms().saturating_add_unsigned(wait);
        let after = After { retry: Some((domain, wait, until)), doubt: None };
        vec![at(events::attempt_ended(facts, running.attempt, &ending, &after), now)]
    }

    /// An attempt of which nobody knows what became of it.
    pub(super) fn in_doubt(
        &self,
        engine: &Engine,
        action: &Action,
        error: EffectError,
        now: Time,
    ) -> Vec<Draft> {
        let facts = &action.facts;
        let Stage::Running(running) = &facts.stage else { return Vec::new() };
        let before = running.doubt.as_deref();
        let looks = before.map_or(0, |doubt| doubt.looks + 1);
        let doubt = Doubt {
            attempt: running.attempt,
            class: running.class,
            executor: running.executor.clone(),
            looks,
            next: 0,
            person: None,
            absent: false,
            fingerprint: None,
        };
        // The first remedy is tried at once, a further one after a while; to drop it asks nobody.
        let (person, wait) = match self.remedy(action, &doubt, now) {
            Remedy::Person(why) => (Some(why), 0),
            Remedy::Drop => (None, 0),
            _ if looks == 0 => (None, 0),
            _ => (None, look_again_ms(looks)),
        };
        let next = now.ms() + wait;
        let after = After { retry: None, doubt: Some((looks, next, person)) };
        let ending = Ending::with("unknown", error);
        let mut drafts =
            vec![at(events::attempt_ended(facts, running.attempt, &ending, &after), now)];
        if before.is_none() {
            drafts.extend(approve::ended(engine.effects(), action, &ending, now));
        }
        drafts
    }

    /// What may be done about a doubt. Where its executor is missing it waits for that.
    pub(super) fn remedy(&self, action: &Action, doubt: &Doubt, now: Time) -> Remedy {
        let executor = self.executors.get(&action.facts.effect);
        let limits = executor.map_or_else(Limits::default, |executor| executor.limits());
        remedy(&action.facts, doubt, limits.key_window, now.ms())
    }

    /// A receipt that came after the decision. It settles what is unknown, and overwrites nothing.
    fn late(
        &self,
        engine: &Engine,
        id: EventId,
        attempt: u32,
        ending: Ending,
        facts: Option<Facts>,
        now: Time,
    ) -> Vec<Draft> {
        let Some(facts) = facts else { return Vec::new() };
        if let Some(action) = engine.effects().get(&id)
            && let Stage::Unknown(doubt) = &action.facts.stage
            && doubt.attempt == attempt
            && ending.status != "unknown"
        {
            let late = at(events::late(&facts, attempt, &ending, "unknown"), now);
            let mut drafts = vec![late];
            drafts.extend(approve::reconciled(engine.effects(), action, &ending, "late", now));
            return drafts;
        }
        let node = engine.graph().element(&facts.node);
        let status = node.and_then(|node| node.property("status"));
        let decided = status.and_then(|status| status.as_str()).unwrap_or("unknown");
        vec![at(events::late(&facts, attempt, &ending, decided), now)]
    }

    /// What follows from a look.
    fn seen(
        &mut self,
        engine: &Engine,
        action: &Action,
        attempt: u32,
        seen: Seen,
        now: Time,
    ) -> Vec<Draft> {
        let facts = &action.facts;
        let Stage::Unknown(doubt) = &facts.stage else { return Vec::new() };
        if doubt.attempt != attempt {
            return Vec::new();
        }
        let looks = doubt.looks + 1;
        let next = now.ms() + look_again_ms(looks);
        let effects = engine.effects();
        let too_many = (looks >= LOOKS_MAX).then(|| format!("{looks} looks did not settle it"));
        match seen {
            Seen::Found(result) => {
                approve::reconciled(effects, action, &Ending::succeeded(result), "look", now)
            }
            Seen::Absent if facts.cancelled => {
                let ending = crate::effect::next::cancelled("it was not done");
                approve::reconciled(effects, action, &ending, "look", now)
            }
            Seen::Absent if facts.attempts >= ATTEMPTS_MAX => {
                let what = format!("it was not done in {} attempts", facts.attempts);
                let error = EffectError::new("runtime.attempts", Blame::Tool, what, "find out why");
                let ending = Ending::with("failed", error);
                approve::reconciled(effects, action, &ending, "look", now)
            }
            // It never happened, so it is sent again: at the next turn, from what this says.
            Seen::Absent => vec![at(events::looked(facts, "absent", looks, now.ms(), None), now)],
            Seen::Pending => {
                let person = too_many.as_deref();
                vec![at(events::looked(facts, "pending", looks, next, person), now)]
            }
            Seen::Conflict(error) => {
                let why = error.to_string();
                vec![at(events::looked(facts, "conflict", looks, next, Some(&why)), now)]
            }
            Seen::Unreachable(error) => {
                let why = too_many.map(|why| format!("{why}: {error}"));
                let person = why.as_deref();
                vec![at(events::looked(facts, "unreachable", looks, next, person), now)]
            }
        }
    }

    /// Tells the attempts to end whose action is to be cancelled.
    pub(super) fn tell_cancelled(&self, engine: &Engine) {
        for ((id, _), flight) in &self.flights {
            let action = engine.effects().get(id);
            let running = |facts: &Facts| matches!(facts.stage, Stage::Running(_));
            if action.is_some_and(|action| action.facts.cancelled && running(&action.facts)) {
                flight.cancel();
            }
        }
    }

    /// Starts an attempt whose intent is durable.
    pub(super) fn start(&mut self, engine: &Engine, action: &Action, leaving: &Leaving) {
        let executor = self.executors.get(&action.facts.effect).cloned();
        let executor = executor.expect("only what has an executor leaves");
        let timeout = executor.limits().timeout;
        let mut facts = action.facts.clone();
        facts.attempts = leaving.attempt;
        let call = self.call(engine, action, leaving.attempt, timeout);
        let reports = self.sender.clone();
        let flight = flight::start(&self.runtime, executor, call, facts, reports);
        self.flights.insert((action.facts.id, leaving.attempt), flight);
    }

    /// Looks what became of an attempt.
    pub(super) fn look(&mut self, engine: &Engine, action: &Action) {
        let Stage::Unknown(doubt) = &action.facts.stage else { return };
        let Some(executor) = self.executors.get(&action.facts.effect).cloned() else { return };
        let timeout = executor.limits().timeout;
        let call = self.call(engine, action, doubt.attempt, timeout);
        let fingerprint = doubt.fingerprint.as_deref().map(serde_json::from_str::<Value>);
        let intent = json!({
            "attempt": doubt.attempt,
            "intent": action.facts.intent.map(|intent| intent.to_string()),
            "first": action.facts.first,
            "fingerprint": fingerprint.and_then(Result::ok),
        });
        let reports = self.sender.clone();
        self.looking.insert(action.facts.id);
        *self.busy.entry(action.facts.effect.clone()).or_default() += 1;
        flight::look(&self.runtime, executor, call, intent, action.facts.id, reports);
    }

    fn call(&self, engine: &Engine, action: &Action, attempt: u32, timeout: Duration) -> Call {
        Call {
            action: action.facts.id.to_string(),
            attempt,
            effect: action.facts.effect.to_string(),
            args: whole(engine.log(), action.args()),
            idempotency_key: idempotency_key(&action.facts.id, &self.branch),
            timeout,
            workspace: self.workspace.clone(),
            cancel: Cancel::new(),
        }
    }
}

/// A value with its long texts in place.
pub(super) fn whole(log: &Arc<dyn Log>, value: Value) -> Value {
    Texts::of(&|hash: &str| text_of(&**log, hash)).whole(value)
}
