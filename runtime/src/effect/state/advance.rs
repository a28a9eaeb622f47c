//! What an event about one action changes of it: verdicts, attempts, doubts and its end.

use log::{Event, EventId, Hash};
use serde_json::Value;
use smol_str::SmolStr;

use super::{Effects, number, text};
use crate::effect::action::{Doubt, Running, Stage, is_inner};
use crate::effect::budget::{Account, Charge};
use crate::effect::guard::voice;

impl Effects {
    /// What an event about one action changes.
    pub(super) fn advance(&mut self, id: &EventId, event: &Event) {
        match event.kind() {
            "effect.judged" => self.note_verdict(id, event),
            "effect.rewritten" => self.change(id, |action| {
                action.asked = event.clone();
                let facts = &mut action.facts;
                facts.revision += 1;
                facts.allowed.clear();
                (facts.denied, facts.approved, facts.stage) = (None, false, Stage::Requested);
            }),
            "effect.held" => {
                let expires = number(event, "expires").unwrap_or(i64::MAX);
                self.change(id, |action| action.facts.stage = Stage::Held { expires });
            }
            "effect.approved" => self.change(id, |action| {
                action.facts.approved = true;
                action.facts.stage = Stage::Requested;
            }),
            "effect.linked" => {
                if let Some(to) = text(event, "to").and_then(|to| to.parse().ok()) {
                    self.change(id, |action| action.facts.stage = Stage::Linked { to });
                }
            }
            "effect.dispatched" => self.note_dispatch(id, event),
            "attempt.ended" => self.note_attempt(id, event),
            "effect.looked" => self.change(id, |action| {
                if let Stage::Unknown(doubt) = &mut action.facts.stage {
                    update_doubt(doubt, event);
                }
            }),
            "effect.ended" | "effect.reconciled" => self.note_end(id, event),
            _ => {}
        }
    }

    fn note_verdict(&mut self, id: &EventId, event: &Event) {
        let said = text(event, "guard");
        let guard = event.author().map(str::to_owned).or(said).unwrap_or_default();
        let actor = text(event, "guard_actor").unwrap_or_else(|| event.actor().to_owned());
        let current = self.open.get(id).is_some_and(|action| {
            number(event, "revision") == Some(i64::from(action.facts.revision))
                && action.is_waiting_to_leave()
        });
        if !current {
            return;
        }
        let reason = text(event, "reason").unwrap_or_default();
        let allows = text(event, "verdict").as_deref() == Some("allow");
        let voice = voice(&guard, text(event, "question").as_deref());
        self.change(id, |action| {
            if allows {
                action.facts.allowed.insert(voice, actor.into());
            } else {
                action.facts.denied.get_or_insert((guard.into(), reason));
            }
        });
    }

    /// A guard failed on a request: nothing that it was to judge leaves.
    pub(crate) fn note_guard_failure(&mut self, id: &EventId, guard: &str, error: &str) {
        let reason = format!("it failed: {error}");
        self.change(id, |action| {
            if action.is_waiting_to_leave() {
                action.facts.denied.get_or_insert((guard.into(), reason));
            }
        });
    }

    fn note_dispatch(&mut self, id: &EventId, event: &Event) {
        let payload = Value::Object(event.payload().to_json());
        let word = |name: &str| payload[name].as_str().unwrap_or_default();
        let ms = |name: &str| payload[name].as_i64().unwrap_or(0);
        let executor: SmolStr = word("executor").into();
        let reserved = if is_inner(&executor) {
            Charge::default()
        } else {
            Charge::of_usage(payload.get("reserves"))
        };
        let intent: Option<Hash> = word("intent").parse().ok();
        if let Some(sequence) = payload["sequence"].as_u64()
            && let Some(intent) = intent
        {
            self.ledger.served.insert(intent, sequence + 1);
        }
        let Some(mut action) = self.remove(id) else { return };
        let facts = &mut action.facts;
        let doubt = match &facts.stage {
            Stage::Unknown(doubt) => Some(Box::new(doubt.clone())),
            _ => None,
        };
        facts.attempts = payload["attempt"].as_u64().unwrap_or(1) as u32;
        facts.intent = intent;
        facts.reserved = reserved;
        if facts.attempts == 1 {
            facts.first = event.time().ms();
        }
        facts.stage = Stage::Running(Running {
            attempt: facts.attempts,
            executor,
            class: serde_json::from_value(payload["class"].clone()).unwrap_or_default(),
            epoch: payload["epoch"].as_u64().unwrap_or(0),
            deadline: ms("deadline"),
            doubt,
        });
        self.accounts(&action.facts.scopes.clone(), |account| account.reserve(reserved));
        self.insert(action);
    }

    /// Does something to the flock's account and to those of a chain.
    fn accounts(&mut self, scopes: &[EventId], change: impl Fn(&mut Account)) {
        change(&mut self.ledger.account);
        for scope in scopes {
            if let Some(narrowed) = self.ledger.granted.narrowed.get_mut(scope) {
                change(&mut narrowed.account);
            }
        }
    }

    fn note_attempt(&mut self, id: &EventId, event: &Event) {
        let payload = Value::Object(event.payload().to_json());
        let Some(mut action) = self.remove(id) else { return };
        let facts = &mut action.facts;
        let reserved = std::mem::take(&mut facts.reserved);
        let used = match payload.get("usage") {
            Some(usage) => Charge { effects: reserved.effects, ..Charge::of_usage(Some(usage)) },
            None => reserved,
        };
        let scopes = facts.scopes.clone();
        if let Some(retry) = payload["retry"].as_object() {
            let until = retry.get("until").and_then(Value::as_i64).unwrap_or(0);
            let domain: SmolStr =
                retry.get("domain").and_then(Value::as_str).unwrap_or_default().into();
            *self.ledger.retries.entry(facts.goal).or_default().entry(domain).or_default() += 1;
            facts.stage = Stage::Waiting { until };
        } else if let Stage::Running(running) = &facts.stage
            && payload["status"] == "unknown"
        {
            let mut doubt = running.doubt.as_deref().cloned().unwrap_or_else(|| Doubt {
                attempt: running.attempt,
                class: running.class,
                executor: running.executor.clone(),
                looks: 0,
                next: 0,
                person: None,
                absent: false,
                fingerprint: None,
            });
            doubt.attempt = running.attempt;
            update_doubt(&mut doubt, event);
            facts.stage = Stage::Unknown(doubt);
        }
        self.accounts(&scopes, |account| account.commit(reserved, used));
        self.insert(action);
    }

    fn note_end(&mut self, id: &EventId, event: &Event) {
        let payload = Value::Object(event.payload().to_json());
        let status = payload["status"].as_str().unwrap_or_default();
        if status == "unknown" {
            // It stays open until it is settled; what is known of it came with its attempt.
            return;
        }
        let Some(action) = self.remove(id) else { return };
        if status == "succeeded" && payload["fingerprint"].is_object() {
            self.ledger.workspace = Some(event.id());
            self.ledger.uncommitted += 1;
        }
        if status == "succeeded" && action.facts.effect == "git.commit" {
            self.ledger.commit = payload["result"]["commit"].as_str().map(str::to_owned);
            self.ledger.uncommitted = 0;
        }
        if let (true, Some(intent)) = (status == "failed", action.facts.intent) {
            let signature = payload["error"]["signature"].as_str().unwrap_or_default();
            let of = self.ledger.failures.entry(intent).or_default();
            *of.entry(signature.to_owned()).or_default() += 1;
        }
    }
}

fn update_doubt(doubt: &mut Doubt, event: &Event) {
    if let Some(looks) = number(event, "looks") {
        doubt.looks = u32::try_from(looks).unwrap_or(u32::MAX);
    }
    if let Some(next) = number(event, "next") {
        doubt.next = next;
    }
    doubt.person = text(event, "person");
    doubt.absent = text(event, "seen").as_deref() == Some("absent");
    if let Some(print) = event.payload().get("fingerprint") {
        doubt.fingerprint = Some(print.to_json().to_string());
    }
}
