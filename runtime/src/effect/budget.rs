//! Budgets: what is set aside before an attempt leaves and charged after it ended, in the whole
//! flock's account and in that of every narrower grant on its chain of causes.
//!
//! Children share what their parent has: an attempt fits only if it fits every account above it.
//! Costs are whole millionths, so that sums are exact.

use effect::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What something costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Charge {
    pub(crate) effects: u64,
    pub(crate) tokens: u64,
    pub(crate) cost_micro: u64,
}

/// How much may be used; what is not said is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ceiling {
    pub(crate) effects: Option<u64>,
    pub(crate) tokens: Option<u64>,
    pub(crate) cost_micro: Option<u64>,
}

/// What is used and set aside under one ceiling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) used: Charge,
    pub(crate) reserved: Charge,
}

const MICRO: f64 = 1_000_000.0;

impl Charge {
    fn parts(self) -> [(&'static str, u64); 3] {
        [("effects", self.effects), ("tokens", self.tokens), ("cost", self.cost_micro)]
    }

    fn plus(self, other: Charge) -> Charge {
        Charge {
            effects: self.effects.saturating_add(other.effects),
            tokens: self.tokens.saturating_add(other.tokens),
            cost_micro: self.cost_micro.saturating_add(other.cost_micro),
        }
    }

    fn minus(self, other: Charge) -> Charge {
        assert!(
            self.effects >= other.effects
                && self.tokens >= other.tokens
                && self.cost_micro >= other.cost_micro,
            "only what was set aside is given back"
        );
        Charge {
            effects: self.effects - other.effects,
            tokens: self.tokens - other.tokens,
            cost_micro: self.cost_micro - other.cost_micro,
        }
    }

    /// Reads `tokens` and `cost` of an object, such as a result's `usage`.
    pub(crate) fn of_usage(usage: Option<&Value>) -> Charge {
        let number = |name: &str| usage.and_then(|usage| usage.get(name)?.as_f64());
        Charge {
            effects: 1,
            tokens: number("tokens").map_or(0, |tokens| tokens.max(0.0) as u64),
            cost_micro: micro(number("cost")).unwrap_or(0),
        }
    }

    /// What an executor says that one call may use.
    pub(crate) fn of_reserve(usage: Usage) -> Charge {
        let cost_micro = micro(Some(usage.cost)).unwrap_or(0);
        Charge { effects: 1, tokens: usage.tokens, cost_micro }
    }

    /// As an event holds it.
    pub(crate) fn to_json(self) -> Value {
        let mut map = Map::new();
        if self.tokens > 0 {
            map.insert("tokens".to_owned(), json!(self.tokens));
        }
        if self.cost_micro > 0 {
            map.insert("cost".to_owned(), json!(self.cost_micro as f64 / MICRO));
        }
        Value::Object(map)
    }
}

fn micro(cost: Option<f64>) -> Option<u64> {
    cost.filter(|cost| cost.is_finite() && *cost >= 0.0).map(|cost| (cost * MICRO).round() as u64)
}

impl Ceiling {
    /// Reads `effects`, `tokens` and `cost`.
    pub(crate) fn of_json(json: Option<&Value>) -> Ceiling {
        let number = |name: &str| json.and_then(|json| json.get(name)?.as_f64());
        Ceiling {
            effects: number("effects").map(|n| n.max(0.0) as u64),
            tokens: number("tokens").map(|n| n.max(0.0) as u64),
            cost_micro: micro(number("cost")),
        }
    }
}

impl Account {
    /// Which bound would be passed by so much more, and what it is.
    pub(crate) fn over(&self, ceiling: &Ceiling, more: Charge) -> Option<(&'static str, u64)> {
        let total = self.used.plus(self.reserved).plus(more);
        let limits = [ceiling.effects, ceiling.tokens, ceiling.cost_micro];
        let parts = total.parts().into_iter().zip(more.parts()).zip(limits);
        // A use of nothing passes no bound, even one that was lowered meanwhile.
        let mut over = parts.filter_map(|(((name, total), (_, more)), limit)| {
            limit.filter(|limit| more > 0 && total > *limit).map(|limit| (name, limit))
        });
        over.next()
    }

    pub(crate) fn reserve(&mut self, charge: Charge) {
        self.reserved = self.reserved.plus(charge);
    }

    /// Gives back what was set aside and charges what was used.
    pub(crate) fn commit(&mut self, reserved: Charge, used: Charge) {
        self.reserved = self.reserved.minus(reserved);
        self.used = self.used.plus(used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(cost: f64) -> Charge {
        Charge::of_usage(Some(&json!({"cost": cost})))
    }

    /// Five children once each saw 9.90 of 10.00 and all ran.
    #[test]
    fn what_is_set_aside_is_not_there_for_others() {
        let ceiling = Ceiling::of_json(Some(&json!({"cost": 10.0})));
        let mut account = Account::default();
        account.reserve(cost(9.9));
        account.commit(cost(9.9), cost(9.9));
        let mut ran = 0;
        for _ in 0..5 {
            if account.over(&ceiling, cost(0.1)).is_none() {
                account.reserve(cost(0.1));
                ran += 1;
            }
        }
        assert_eq!(ran, 1);
        assert_eq!(account.over(&ceiling, cost(0.000_001)), Some(("cost", 10_000_000)));
    }

    #[test]
    fn ten_cents_a_hundred_times_are_ten_to_the_cent() {
        let mut account = Account::default();
        for _ in 0..100 {
            account.reserve(cost(0.1));
            account.commit(cost(0.1), cost(0.1));
        }
        assert_eq!(account.used.cost_micro, 10_000_000);
        assert_eq!(account.reserved, Charge::default());
    }
}
