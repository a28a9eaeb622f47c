//! Cancellation: an event with a scope. Nothing of the scope is dispatched after its offset; what
//! is out is told to end, and has ended or is reported unknown within its bound.

use log::EventId;
use serde_json::{Value, json};

use super::action::Facts;

/// What is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One action.
    Effect(EventId),
    /// All that one firing requested: the count of activations taken that its events carry.
    Firing(u64),
    /// All that followed from one event from outside, now and later.
    Goal(EventId),
    /// All that is open on the branch.
    Branch,
}

impl Scope {
    /// As an event holds it.
    #[must_use]
    pub fn to_json(self) -> Value {
        match self {
            Scope::Effect(id) => json!({"effect": id.to_string()}),
            Scope::Firing(taken) => json!({"firing": taken}),
            Scope::Goal(id) => json!({"goal": id.to_string()}),
            Scope::Branch => json!("branch"),
        }
    }

    pub(crate) fn of_json(json: &Value) -> Option<Scope> {
        let id = |name: &str| json.get(name)?.as_str()?.parse().ok();
        if json == "branch" {
            return Some(Scope::Branch);
        }
        let firing = || Some(Scope::Firing(json.get("firing")?.as_u64()?));
        id("effect").map(Scope::Effect).or_else(|| id("goal").map(Scope::Goal)).or_else(firing)
    }

    /// Whether an action is meant.
    pub(crate) fn holds(self, facts: &Facts) -> bool {
        match self {
            Scope::Effect(id) => facts.id == id,
            Scope::Firing(taken) => facts.firing == taken,
            Scope::Goal(goal) => facts.goal == goal,
            Scope::Branch => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_survives_the_way_through_its_event() {
        let id = EventId::from_bytes([7; 16]);
        for scope in [Scope::Effect(id), Scope::Firing(9), Scope::Goal(id), Scope::Branch] {
            assert_eq!(Scope::of_json(&scope.to_json()), Some(scope));
        }
        assert_eq!(Scope::of_json(&json!({"everything": true})), None);
    }
}
