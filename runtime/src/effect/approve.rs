//! What people say about effects: approvals, refusals, answers and settlements, each about one
//! action by its id and each checked against what is waited for.

use effect::{Blame, EffectError};
use log::{Draft, Time};
use serde_json::{Value, json};

use super::action::{Action, Stage};
use super::events::{self, Ending, at};
use super::state::Effects;

/// What a person says about an action.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answered {
    /// It may leave; or the question is answered with yes, or with this.
    Approve(Option<Value>),
    /// It may not leave; or the question is answered with no.
    Deny(String),
    /// What became of it, where only a person can know.
    Settle { succeeded: bool, result: Value },
}

impl Answered {
    /// Reads the payload of an offered event.
    pub(crate) fn of_json(json: &Value) -> Option<Answered> {
        Some(match json["say"].as_str()? {
            "approve" => {
                Answered::Approve(json.get("answer").filter(|answer| !answer.is_null()).cloned())
            }
            "deny" => Answered::Deny(json["reason"].as_str().unwrap_or_default().to_owned()),
            "settle" => Answered::Settle {
                succeeded: json["succeeded"].as_bool()?,
                result: json["result"].clone(),
            },
            _ => return None,
        })
    }

    /// The events that follow when `who` says so.
    ///
    /// # Errors
    /// Nobody waits for that; says what is the case.
    pub(crate) fn drafts(
        &self,
        effects: &Effects,
        action: &Action,
        who: &str,
        now: Time,
    ) -> Result<Vec<Draft>, String> {
        let facts = &action.facts;
        let by = |mut draft: Draft| {
            draft.actor = who.into();
            draft.payload.insert("by".to_owned(), json!(who));
            at(draft, now)
        };
        match (self, &facts.stage) {
            (Answered::Approve(_), Stage::Held { .. }) => {
                let payload = super::action::object([("revision", Some(json!(facts.revision)))]);
                let number = facts.revision.into();
                let mut draft = events::about(facts, "effect.approved", number, payload);
                draft.changes.push(events::set(&facts.node, json!({"status": "requested"})));
                Ok(vec![by(draft)])
            }
            (Answered::Deny(reason), Stage::Held { .. }) => {
                let reason = if reason.is_empty() { "no reason was given" } else { reason };
                let message = format!("{who} denies: {reason}");
                let advice = "ask for something else";
                let error = EffectError::new("policy.denied", Blame::Policy, message, advice);
                let ending = Ending::with("rejected", error);
                Ok(ended(effects, action, &ending, now).into_iter().map(by).collect())
            }
            (Answered::Approve(_) | Answered::Deny(_), Stage::Running(running))
                if running.executor == "person" =>
            {
                let result = self.result(&facts.effect, who);
                Ok(answered(effects, action, running.attempt, Ending::succeeded(result), now))
            }
            (Answered::Settle { succeeded, result }, Stage::Unknown(_)) => {
                let ending = if *succeeded {
                    Ending::succeeded(result.clone())
                } else {
                    let message = format!("{who} found that it was not done");
                    let advice = "ask again if it is still wanted";
                    let error = EffectError::new("person.failed", Blame::Tool, message, advice);
                    Ending { result: Some(result.clone()), ..Ending::with("failed", error) }
                };
                let drafts = reconciled(effects, action, &ending, "person", now);
                Ok(drafts.into_iter().map(by).collect())
            }
            (_, stage) => Err(format!("it {}", nobody_waits(stage, self))),
        }
    }

    /// The result of a question to people.
    fn result(&self, effect: &str, who: &str) -> Value {
        match (self, effect) {
            (Answered::Approve(answer), "human.approve") => {
                json!({"approved": true, "by": who, "answer": answer})
            }
            (Answered::Deny(reason), "human.approve") => {
                json!({"approved": false, "by": who, "reason": reason})
            }
            (Answered::Approve(answer), _) => json!({"answer": answer, "by": who}),
            (Answered::Deny(reason), _) => json!({"answer": null, "by": who, "reason": reason}),
            (Answered::Settle { .. }, _) => Value::Null,
        }
    }
}

fn nobody_waits(stage: &Stage, said: &Answered) -> &'static str {
    match (stage, said) {
        (Stage::Unknown(_), _) => {
            "may have taken effect: say what became of it with starling settle"
        }
        (Stage::Requested, _) => "waits for its guards or its turn, not for a person",
        (Stage::Linked { .. }, _) => "ends as another does; answer that one",
        (Stage::Waiting { .. }, _) => "waits before it is tried again, not for a person",
        (Stage::Held { .. }, _) => "waits for starling approve or starling deny",
        (Stage::Running(_), _) => "is under way; starling cancel ends it",
    }
}

/// An attempt that ends with the action, and those that end with it.
pub(crate) fn answered(
    effects: &Effects,
    action: &Action,
    attempt: u32,
    ending: Ending,
    now: Time,
) -> Vec<Draft> {
    let after = events::After::default();
    let mut drafts = vec![at(events::attempt_ended(&action.facts, attempt, &ending, &after), now)];
    drafts.extend(ended(effects, action, &ending, now));
    drafts
}

/// The end of an action, and of those that end as it does.
pub(crate) fn ended(effects: &Effects, action: &Action, ending: &Ending, now: Time) -> Vec<Draft> {
    let mut drafts = vec![at(events::outcome(&action.facts, "effect.ended", ending, []), now)];
    drafts.extend(judged(effects, action, ending, now));
    let as_who = json!(action.facts.id.to_string());
    for id in effects.linked_to(&action.facts.id) {
        if let Some(linked) = effects.get(&id) {
            let more = [("linked", as_who.clone())];
            drafts.push(at(events::outcome(&linked.facts, "effect.ended", ending, more), now));
        }
    }
    drafts
}

/// The verdict of a guard that asked an effect for it: what its result says, and no in doubt.
fn judged(effects: &Effects, action: &Action, ending: &Ending, now: Time) -> Option<Draft> {
    let judges = action.facts.judges.as_ref()?;
    if judges.hears && ending.status == "succeeded" {
        return None;
    }
    let target = effects.get(&judges.action).filter(|target| {
        target.is_waiting_to_leave() && target.facts.revision == judges.revision
    })?;
    let result = ending.result.as_ref().filter(|_| ending.status == "succeeded");
    let said = |name: &str| result.and_then(|result| result.get(name)?.as_str());
    let allows = said("verdict") == Some("allow");
    let guard = action.facts.behavior.as_str();
    let error = ending.error.as_ref().map(|error| error.message.as_str());
    let reason = said("reason").or(error).unwrap_or("it gave no verdict");
    let payload = super::action::object([
        ("revision", Some(json!(judges.revision))),
        ("question", judges.question.as_deref().map(Value::from)),
        ("verdict", Some(json!(if allows { "allow" } else { "deny" }))),
        ("reason", (!allows).then(|| json!(reason))),
        ("guard", Some(json!(guard))),
        ("guard_actor", Some(json!(judges.actor.as_str()))),
        ("asked", Some(json!(action.facts.id.to_string()))),
    ]);
    let mut draft = events::about(&target.facts, "effect.judged", action.facts.offset, payload);
    let (name, value) = if allows {
        ("allowed", json!(guard))
    } else {
        ("denied", json!(format!("{guard}: {reason}")))
    };
    draft.changes.push(events::append(&target.facts.node, json!({name: value})));
    Some(at(draft, now))
}

/// What settles an unknown action, and those that end as it does.
pub(crate) fn reconciled(
    effects: &Effects,
    action: &Action,
    ending: &Ending,
    by: &str,
    now: Time,
) -> Vec<Draft> {
    let how = |linked: Option<Value>| {
        [("how", Some(json!(by))), ("linked", linked)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
    };
    let first = events::outcome(&action.facts, "effect.reconciled", ending, how(None));
    let mut drafts = vec![at(first, now)];
    let as_who = json!(action.facts.id.to_string());
    for id in effects.linked_to(&action.facts.id) {
        if let Some(linked) = effects.get(&id) {
            let more = how(Some(as_who.clone()));
            let draft = events::outcome(&linked.facts, "effect.reconciled", ending, more);
            drafts.push(at(draft, now));
        }
    }
    drafts
}
