//! Bounds: how much a run, a chain of causes and a behavior may do. What is reached first is named
//! in an event, what was due stays due, and raising the bound lets the run go on.

use std::collections::BTreeMap;
use std::fmt;

use log::{Cause, Derivation, Draft, Event, EventId, Offset, read};
use serde_json::{Map, json};
use smol_str::{SmolStr, format_smolstr};

use super::state::State;
use super::{Engine, EngineError};

/// How far back the cascade guard looks for the cycle that it names.
const LOOK_BACK: u64 = 4096;

/// A bound that was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Which: `events`, `firings`, `depth`, or one of those of a behavior, such as
    /// `walk_ant.firings`.
    pub budget: SmolStr,
    /// How much it allows.
    pub limit: u64,
    /// The behavior whose turn it was.
    pub behavior: SmolStr,
    /// The shortest cycle that the last causes repeat, if they repeat one: `a -> b -> a`.
    pub cycle: Option<String>,
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reached { budget, limit, behavior, cycle } = self;
        write!(f, "the bound {budget} = {limit} was reached when `{behavior}` was due")?;
        match cycle {
            Some(cycle) => write!(f, "; its causes repeat {cycle}"),
            None => Ok(()),
        }
    }
}

impl State {
    /// Whether the next activation may be taken; `None` at rest.
    pub(crate) fn next_bound(&mut self) -> Option<Option<Reached>> {
        let next = self.peek()?;
        let (behavior, depth) = (next.behavior.clone(), next.depth);
        let own = self.subscriptions.get(&behavior).map(|s| s.metadata.budget).unwrap_or_default();
        let count = self.counts.get(&behavior).copied().unwrap_or_default();
        let bounds = self.settings.bounds;
        let named = |what: &str| format_smolstr!("{behavior}.{what}");
        let checks = [
            ("events".into(), self.head.count(), bounds.events),
            ("firings".into(), self.taken, bounds.firings),
            ("depth".into(), depth, Some(bounds.depth)),
        ];
        let reached = checks.into_iter().find(|(_, used, limit)| limit.is_some_and(|l| *used >= l));
        let reached = reached.or_else(|| {
            let checks = [
                ("firings", count.firings, own.firings),
                ("events", count.events, own.events),
                ("depth", depth, own.depth),
            ];
            let found =
                checks.into_iter().find(|(_, used, limit)| limit.is_some_and(|l| *used >= l));
            found.map(|(what, used, limit)| (named(what), used, limit))
        });
        Some(reached.map(|(budget, _, limit)| Reached {
            budget,
            limit: limit.expect("a bound that was reached is set"),
            behavior,
            cycle: None,
        }))
    }
}

impl Engine {
    /// Says in the log which bound was reached, once for each.
    pub(super) fn announce_bound(&mut self, reached: &Reached) -> Result<(), EngineError> {
        let known = (reached.budget.clone(), reached.limit);
        if self.state.exhausted.contains(&known) {
            return Ok(());
        }
        self.commit()?;
        tracing::info!(budget = %reached.budget, limit = reached.limit, "a bound was reached");
        let seed = self.state.settings.seed;
        let id = Derivation::new().json(&json!(seed)).text("exhausted").text(&reached.budget);
        let id = id.integer(reached.limit).finish();
        let mut payload = Map::new();
        payload.insert("budget".to_owned(), json!(reached.budget.as_str()));
        payload.insert("limit".to_owned(), json!(reached.limit));
        payload.insert("behavior".to_owned(), json!(reached.behavior.as_str()));
        let deep = reached.budget.ends_with("depth");
        if let Some(cycle) = if deep { self.repeated_cycle()? } else { None } {
            payload.insert("cycle".to_owned(), json!(cycle));
        }
        let waiting = self.state.peek().map(|next| next.event.time()).unwrap_or_default();
        let draft =
            Draft { payload, time: waiting, ..Draft::new(id, "flock.exhausted", "runtime") };
        self.outside(draft)?;
        self.commit()?;
        Ok(())
    }

    /// The shortest cycle of behaviors that the causes of the next activation repeat at their end.
    fn repeated_cycle(&mut self) -> Result<Option<String>, EngineError> {
        let Some(next) = self.state.peek() else { return Ok(None) };
        let (mut at, mut names) = (next.event.clone(), vec![next.behavior.to_string()]);
        let head = self.state.head.count();
        let from = Offset::new(head.saturating_sub(LOOK_BACK));
        let mut known: BTreeMap<EventId, Event> = BTreeMap::new();
        for event in read(&*self.log, self.branch, from..Offset::new(head))? {
            let event = event?;
            known.insert(event.id(), event);
        }
        while let Some(Cause::Firing { event, behavior, .. }) = at.cause() {
            names.push(behavior.to_string());
            match known.get(&event) {
                Some(cause) => at = cause.clone(),
                None => break,
            }
        }
        names.reverse();
        Ok(shortest_cycle(&names))
    }
}

/// The shortest period that the end of `names` shows three times, or twice when there is no more.
fn shortest_cycle(names: &[String]) -> Option<String> {
    let repeats = |period: usize, times: usize| {
        let span = period * times;
        span <= names.len() && {
            let end = &names[names.len() - span..];
            end.iter().zip(&end[period..]).all(|(a, b)| a == b)
        }
    };
    let longest = names.len() / 2;
    let found = (1..=longest).find(|&period| repeats(period, 3));
    let period = found.or_else(|| (1..=longest).find(|&period| repeats(period, 2)))?;
    let mut cycle: Vec<&str> = names[names.len() - period..].iter().map(String::as_str).collect();
    // Told from its least name, so that the same cycle always reads the same.
    let least = (0..period).min_by_key(|&start| cycle[start])?;
    cycle.rotate_left(least);
    cycle.push(cycle[0]);
    Some(cycle.join(" -> "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &str, expected: Option<&str>) {
        let names: Vec<String> = names.split(' ').map(str::to_owned).collect();
        assert_eq!(shortest_cycle(&names).as_deref(), expected);
    }

    #[test]
    fn the_shortest_cycle_is_named() {
        check("x a b a b a b", Some("a -> b -> a"));
        check("x b a b a b a", Some("a -> b -> a"));
        check("a a a a", Some("a -> a"));
        check("c a b c a b c a b", Some("a -> b -> c -> a"));
        check("a b c d", None);
    }
}
