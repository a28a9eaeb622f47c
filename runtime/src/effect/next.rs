//! What happens next to an action that waits to leave: a function of what is known.
//!
//! The order is fixed: cancellation, broken guards, budgets of its behavior, grants, verdicts,
//! the executor's check, guards that have not spoken, bans, approval, the same intent under way,
//! recorded answers, budgets, and then it leaves.

use std::collections::BTreeMap;

use effect::{Blame, Class, EffectError};
use log::{EventId, Hash};
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::action::{Action, Stage, intent_of, question_of};
use super::budget::Charge;
use super::events::Ending;
use super::executors::Executors;
use super::grant::{Ungranted, fits};
use super::guard::{Checked, Missing, REVISIONS_MAX, Verdicts, absent};
use super::policy::Policy;
use super::recorded::{Recorded, Served, Serving};
use super::state::Effects;
use super::timer::Timer;

/// What is known when a step is taken.
pub(crate) struct View<'v> {
    pub(crate) effects: &'v Effects,
    pub(crate) policy: &'v Policy,
    pub(crate) guards: Verdicts<'v>,
    /// How many effects the action's behavior may request.
    pub(crate) limit: Option<u64>,
    pub(crate) executors: &'v Executors,
    pub(crate) serving: Serving,
    pub(crate) recorded: &'v Recorded,
    /// Whether its behavior asks it for an answer: what runs of a flock its person has confirmed.
    pub(crate) own: bool,
    /// Models whose answers are recorded.
    pub(crate) models: &'v BTreeMap<String, Recorded>,
    /// Whether an action was asked for on this branch.
    pub(crate) asked: &'v dyn Fn(&EventId) -> bool,
    pub(crate) now: i64,
}

/// What happens next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Move {
    /// It ends without an attempt.
    End(Ending),
    /// Its executor understands other arguments.
    Rewrite(Value),
    /// This guard is to be asked.
    Ask(SmolStr),
    /// A person is asked, until then.
    Hold { expires: i64 },
    /// The same is under way.
    Link(EventId),
    /// The answer is recorded.
    Serve { intent: Hash, served: Box<Served> },
    /// An attempt leaves; the clock and people answer without an executor.
    Leave {
        intent: Hash,
        class: Class,
        executor: SmolStr,
        /// When it is due, where the runtime itself answers.
        deadline: Option<i64>,
        reserves: Charge,
    },
    /// A budget of the flock is used up: `budget`, `limit`.
    Exhausted(String, u64),
    /// Nothing, because of this.
    Wait(&'static str),
}

fn rejected(kind: &str, message: String, action: &str) -> Move {
    let error = EffectError::new(kind, Blame::Policy, message, action);
    Move::End(Ending::with("rejected", error))
}

/// The error of an action that ended because its cause was cancelled.
pub(crate) fn cancelled(why: &str) -> Ending {
    let action = "ask again if it is still wanted";
    Ending::with("cancelled", EffectError::new("runtime.cancelled", Blame::Caller, why, action))
}

/// What happens next to an action that waits to leave. `checked` remembers what executors said.
pub(crate) fn next(action: &Action, view: &View<'_>, checked: &mut Checked) -> Move {
    let facts = &action.facts;
    if facts.cancelled || view.effects.ledger.cancelled.contains(&facts.goal) {
        return Move::End(cancelled("what caused it was cancelled"));
    }
    if let Some(end) = refused(action, view) {
        return end;
    }
    let effect = facts.effect.as_str();
    let inner = is_inner_effect(effect) && view.executors.get(effect).is_none();
    if !inner && !checked.has(action) {
        match check(action, view) {
            Ok(None) => checked.note(action),
            Ok(Some(args)) if facts.revision < REVISIONS_MAX => return Move::Rewrite(args),
            Ok(Some(_)) => return too_often(),
            Err(error) => return Move::End(Ending::with("rejected", error)),
        }
    }
    match view.guards.missing(action) {
        Some(Missing::Word) => return Move::Wait("a guard has not spoken yet"),
        Some(Missing::Question(guard)) => return Move::Ask(guard.clone()),
        None => {}
    }
    if facts.revision > REVISIONS_MAX {
        return too_often();
    }
    let intent = intent(action, view.effects, view.policy);
    if let Some(banned) = banned(view, &intent) {
        return banned;
    }
    if fits(&view.policy.ask, effect) && !facts.approved {
        return approval(action, view);
    }
    leave(action, view, intent, inner)
}

/// What the arguments of an action intend here.
pub(super) fn intent(action: &Action, effects: &Effects, policy: &Policy) -> Hash {
    let workspace = effects.ledger.workspace.as_ref();
    let (facts, scope) = (&action.facts, policy.scope.as_str());
    intent_of(&facts.effect, &action.args(), scope, facts.key.as_deref(), workspace)
}

fn too_often() -> Move {
    let message = format!("its arguments were rewritten more than {REVISIONS_MAX} times");
    rejected("policy.rewritten", message, "let the guards agree on what they rewrite")
}

/// Why it may not leave whatever else is so.
fn refused(action: &Action, view: &View<'_>) -> Option<Move> {
    let facts = &action.facts;
    let effect = facts.effect.as_str();
    if let Some((path, error)) = view.effects.ledger.broken_guards.first_key_value() {
        let first = error.lines().next().unwrap_or_default();
        let message = format!("{path} may hold a guard and is broken: {first}");
        return Some(rejected("policy.guard", message, "mend the file or delete it"));
    }
    if let Some(name) = absent(&view.policy.guards, &view.guards) {
        let message = format!("the guard `{name}` that flock.toml names is not loaded");
        return Some(rejected("policy.guard", message, "put it back, or change `guards`"));
    }
    if let Some(guard) = view.guards.costly {
        let message = format!("whether `{guard}` is to be asked costs too many steps to find out");
        return Some(rejected("policy.guard", message, "bound the guard's pattern"));
    }
    if let Some(limit) = view.limit.filter(|limit| facts.nth > *limit) {
        let message = format!("{} may request {limit} effects", facts.behavior);
        return Some(rejected("budget.effects", message, "raise its budget, or stop asking"));
    }
    let granted = view.effects.ledger.granted.check(&view.policy.grants, &facts.scopes, effect);
    match granted {
        // A program that answers for its behavior acts no more than a script does.
        _ if view.own && effect.starts_with("exec:") => {}
        Err(Ungranted::Nobody) => {
            let action = format!("add it to [grants] effects, or starling grant '{effect}'");
            let message = format!("nobody grants `{effect}`");
            return Some(rejected("policy.grant", message, &action));
        }
        Err(Ungranted::Narrowed(scope)) => {
            let scope = &scope.to_string()[..8];
            let message = format!("`{effect}` is not in the narrower grant {scope} of its cause");
            return Some(rejected("policy.grant", message, "ask from a cause that may"));
        }
        Ok(()) => {}
    }
    let (guard, reason) = facts.denied.as_ref()?;
    let message = format!("{guard} denies: {reason}");
    Some(rejected("policy.denied", message, "ask for something that its guards allow"))
}

fn check(action: &Action, view: &View<'_>) -> Result<Option<Value>, EffectError> {
    let effect = action.facts.effect.as_str();
    let Some(executor) = view.executors.get(effect) else {
        // What is recorded needs nobody who could do it.
        if view.serving != Serving::Live || view.models.contains_key(effect) {
            return Ok(None);
        }
        let hint = behaviors::did_you_mean(effect, view.executors.names());
        let message = format!("there is no effect `{effect}`{hint}");
        let action = "name one that the flock has, or add a tool file";
        return Err(EffectError::new("effect.unknown", Blame::Caller, message, action));
    };
    let args = action.args();
    let normal = executor.check(&args)?;
    Ok((normal != args).then_some(normal))
}

fn banned(view: &View<'_>, intent: &Hash) -> Option<Move> {
    let failures = view.effects.ledger.failures.get(intent)?;
    let (signature, times) = failures.iter().max_by_key(|(_, times)| **times)?;
    (*times >= view.policy.ban_after).then(|| {
        let message = format!("it failed {times} times with `{signature}`");
        rejected("policy.banned", message, "try another way, or hand over to a person")
    })
}

fn approval(action: &Action, view: &View<'_>) -> Move {
    match action.facts.stage {
        Stage::Held { expires } if view.now >= expires => {
            let message = "nobody approved it in time".to_owned();
            rejected("policy.approval", message, "ask again, and answer with starling approve")
        }
        Stage::Held { .. } => Move::Wait("a person is to approve it"),
        _ => {
            let wait = i64::try_from(view.policy.approval_ms).unwrap_or(i64::MAX);
            Move::Hold { expires: view.now.saturating_add(wait) }
        }
    }
}

fn leave(action: &Action, view: &View<'_>, intent: Hash, inner: bool) -> Move {
    let facts = &action.facts;
    let executor = view.executors.get(&facts.effect);
    let class = match executor {
        Some(executor) => executor.class(),
        None if inner => Class::ReadOnly,
        None => Class::Opaque,
    };
    if !inner
        && class != Class::ReadOnly
        && let Some(to) = view.effects.holder(&intent).filter(|to| *to != facts.id)
    {
        return Move::Link(to);
    }
    let overridden = view.recorded.is_overridden(&facts.id);
    if view.serving != Serving::Live || overridden {
        if let Some(served) = recorded(view.recorded, action, view, &intent) {
            return Move::Serve { intent, served: Box::new(served) };
        }
        if view.serving == Serving::Recorded && !inner {
            return Move::Wait("no answer is recorded");
        }
    }
    if inner {
        return leave_inner(action, view, intent);
    }
    if let Some(model) = view.models.get(facts.effect.as_str()) {
        return said_before(model, action, view, intent);
    }
    let Some(executor) = executor else { return Move::Wait("nobody here can do it") };
    let reserves = Charge::of_reserve(executor.reserve(&action.args()));
    if let Some(stop) = over(action, view, reserves) {
        return stop;
    }
    let executor = SmolStr::from(facts.effect.as_str());
    Move::Leave { intent, class, executor, deadline: None, reserves }
}

/// The recorded answer to an action: its own, else the next of its intent that nobody owns who
/// has asked here.
fn recorded(all: &Recorded, action: &Action, view: &View<'_>, intent: &Hash) -> Option<Served> {
    let facts = &action.facts;
    let question = question_of(&facts.effect, &action.args());
    let served = view.effects.ledger.served.get(intent).copied().unwrap_or(0);
    all.find(&facts.id, intent, &question, (served, view.asked))
}

/// What a model whose answers are recorded says: what it said once, or that it never did.
fn said_before(model: &Recorded, action: &Action, view: &View<'_>, intent: Hash) -> Move {
    let facts = &action.facts;
    if let Some(served) = recorded(model, action, view, &intent) {
        return Move::Serve { intent, served: Box::new(served) };
    }
    let line =
        json!({"effect": facts.effect.as_str(), "args": action.args(), "result": {"answer": "…"}});
    let message = format!("no answer of {} is recorded for this, or not so many", facts.effect);
    let action = format!("add this line to its answers: {line}");
    Move::End(Ending::with(
        "failed",
        EffectError::new("model.unrecorded", Blame::Provider, message, &action),
    ))
}

fn over(action: &Action, view: &View<'_>, charge: Charge) -> Option<Move> {
    let ledger = &view.effects.ledger;
    if let Some((budget, limit)) = ledger.account.over(&view.policy.ceiling, charge) {
        let name = if budget == "cost" { "cost_millionths" } else { budget };
        return Some(Move::Exhausted(name.to_owned(), limit));
    }
    let (budget, limit) = view.effects.over(&view.policy.ceiling, &action.facts, charge)?;
    // A child's share does not grow, so waiting would be for ever.
    let message = format!("the budget of {budget} is {limit}, in micro-units if it is a cost");
    Some(rejected("budget.narrowed", message, "give the cause a larger share"))
}

/// Whether the runtime itself answers this effect.
pub(crate) fn is_inner_effect(effect: &str) -> bool {
    matches!(effect, "timer" | "human.ask" | "human.approve")
}

fn leave_inner(action: &Action, view: &View<'_>, intent: Hash) -> Move {
    let (facts, args) = (&action.facts, action.args());
    let (executor, deadline) = if facts.effect == "timer" {
        match Timer::read(&args, facts.time) {
            Ok(timer) => ("clock", timer.due),
            Err(error) => return Move::End(Ending::with("rejected", error)),
        }
    } else {
        let within = args.get("within").and_then(Value::as_str);
        let within = within.and_then(behaviors::duration_ms).unwrap_or(view.policy.approval_ms);
        let within = i64::try_from(within).unwrap_or(i64::MAX);
        ("person", view.now.saturating_add(within))
    };
    Move::Leave {
        intent,
        class: Class::ReadOnly,
        executor: executor.into(),
        deadline: Some(deadline),
        reserves: Charge::default(),
    }
}
