//! Who can trigger whom, as far as behaviors declare what they write, emit and request.
//!
//! It tells what may be and proves nothing: a behavior that declares nothing may do anything, and
//! is listed as such.

use std::collections::{BTreeMap, BTreeSet};

use behaviors::{Condition, KindPattern, Metadata};
use projection::{Aspect, Pattern, Watch};

/// One behavior may wake another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    /// By what: a kind of event, or what is written.
    pub(crate) by: String,
}

/// Who can trigger whom.
#[derive(Clone, Debug, Default)]
pub(crate) struct Triggers {
    pub(crate) names: Vec<String>,
    pub(crate) edges: BTreeSet<Edge>,
    /// Behaviors that do not declare what they emit or write.
    pub(crate) undeclared: Vec<String>,
}

/// The name of whoever is no behavior: a person, the flock's start, the world.
pub(crate) const OUTSIDE: &str = "outside";

impl Triggers {
    /// The graph of these behaviors. `outside` are kinds that come from outside.
    pub(crate) fn of<'m>(all: impl IntoIterator<Item = &'m Metadata>, outside: &[&str]) -> Self {
        let all: Vec<&Metadata> = all.into_iter().collect();
        let mut triggers = Triggers::default();
        for to in &all {
            triggers.names.push(to.name.clone());
            let watches = watches(to);
            let on = to.trigger.on.as_ref();
            for kind in outside.iter().filter(|kind| on.is_some_and(|on| on.fits(kind))) {
                triggers.add(OUTSIDE, to, (*kind).to_owned());
            }
            for from in &all {
                if from.name == to.name && !to.trigger.wakes_self {
                    continue;
                }
                let by = match on {
                    Some(on) => by_event(from, to, on),
                    None => by_write(from, &watches),
                };
                by.into_iter().for_each(|by| triggers.add(&from.name, to, by));
            }
        }
        let silent = all.iter().filter(|m| m.emits.is_none() || m.writes.is_none());
        triggers.undeclared = silent.map(|metadata| metadata.name.clone()).collect();
        triggers
    }

    fn add(&mut self, from: &str, to: &Metadata, by: String) {
        self.edges.insert(Edge { from: from.to_owned(), to: to.name.clone(), by });
    }

    /// Loops: for each behavior on one the shortest through it, each once, from its first name.
    pub(crate) fn loops(&self) -> Vec<Vec<String>> {
        let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for edge in self.edges.iter().filter(|edge| edge.from != OUTSIDE) {
            next.entry(&edge.from).or_default().insert(&edge.to);
        }
        let mut loops = BTreeSet::new();
        for name in &self.names {
            if let Some(mut found) = shortest_loop(&next, name) {
                let least = found.iter().enumerate().min_by_key(|(_, name)| **name);
                let least = least.map_or(0, |(at, _)| at);
                found.rotate_left(least);
                loops.insert(found.into_iter().map(str::to_owned).collect::<Vec<_>>());
            }
        }
        loops.into_iter().collect()
    }
}

fn shortest_loop<'a>(
    next: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    start: &'a str,
) -> Option<Vec<&'a str>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut front = vec![start];
    while !front.is_empty() {
        let mut further = Vec::new();
        for at in front {
            for to in next.get(at).into_iter().flatten() {
                if *to == start {
                    let mut path = vec![at];
                    while let Some(earlier) = path.last().and_then(|last| before.get(last)) {
                        path.push(earlier);
                    }
                    path.reverse();
                    return Some(path);
                }
                if !before.contains_key(to) {
                    before.insert(to, at);
                    further.push(*to);
                }
            }
        }
        front = further;
    }
    None
}

/// By which events one behavior may wake another that hears kinds.
fn by_event(from: &Metadata, to: &Metadata, on: &KindPattern) -> Vec<String> {
    let emits = from.emits.iter().flatten().filter(|emits| meet(emits, on));
    let mut by: Vec<String> = emits.map(|emits| emits.as_str().to_owned()).collect();
    let wanted = to.trigger.filter.get("effect");
    let asked = from.effects.iter().filter(|effect| {
        wanted.is_none_or(|all| {
            all.iter().filter_map(|value| value.as_str()).any(|name| effect.fits(name))
        })
    });
    let kinds = ["effect.requested", "effect.ended", "effect.reconciled", "attempt.ended"];
    for effect in asked {
        let kinds = kinds.iter().filter(|kind| on.fits(kind));
        by.extend(kinds.map(|kind| format!("{kind} of {effect}")));
    }
    by
}

/// Whether one kind may fit both.
fn meet(emits: &KindPattern, on: &KindPattern) -> bool {
    match (emits.exact(), on.exact()) {
        (Some(kind), _) => on.fits(kind),
        (None, Some(kind)) => emits.fits(kind),
        (None, None) => {
            // Two globs meet unless what stands before their stars differs.
            let head = |pattern: &KindPattern| {
                let text = pattern.as_str();
                if text.starts_with('~') {
                    return String::new();
                }
                text.split(['*', '?']).next().unwrap_or_default().to_owned()
            };
            let (a, b) = (head(emits), head(on));
            a.starts_with(&b) || b.starts_with(&a)
        }
    }
}

/// What must change for the pattern of a behavior without `on`.
fn watches(metadata: &Metadata) -> Vec<Watch> {
    let condition = metadata.trigger.condition.as_ref().map(Condition::pattern);
    let pattern = condition.and_then(|text| Pattern::parse(text).ok());
    pattern.map_or(Vec::new(), |pattern| pattern.interest())
}

/// By which writes one behavior may make a pattern true.
fn by_write(from: &Metadata, watches: &[Watch]) -> Vec<String> {
    let touches = |entry: &String, watch: &Watch| {
        let (of, property) = match entry.split_once('.') {
            Some((of, property)) => (of, Some(property)),
            None => (entry.as_str(), None),
        };
        let same = watch.type_name.as_ref().is_none_or(|type_name| type_name == of);
        same && match (&watch.aspect, property) {
            (Aspect::Existence, property) => property.is_none(),
            (Aspect::Property(read), Some(written)) => read == written || written == "*",
            (Aspect::Property(_) | Aspect::AnyProperty, _) => true,
        }
    };
    let writes = from.writes.iter().flatten();
    let woken = writes.filter(|entry| watches.iter().any(|watch| touches(entry, watch)));
    woken.cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn metadata(fields: Value) -> Metadata {
        Metadata::from_json(fields.as_object().expect("an object"), "b").expect("metadata")
    }

    #[test]
    fn events_writes_and_effects_wake_and_loops_are_found() {
        let all = [
            metadata(json!({"name": "a", "on": "x.*", "emits": ["y.done"], "writes": []})),
            metadata(json!({"name": "b", "on": "y.done", "writes": ["T.p"], "emits": []})),
            metadata(json!({"name": "c", "match": "(t:T {p: 1})", "writes": [], "emits": ["x.*"],
                "effects": ["tool:pay"]})),
            metadata(json!({"name": "d", "on": "effect.ended", "where": {"effect": "tool:pay"}})),
            metadata(json!({"name": "e", "match": "(t:T {q: 1})", "emits": [], "writes": ["T.q"]})),
        ];
        let triggers = Triggers::of(&all, &["x.begun"]);
        let edges: Vec<String> =
            triggers.edges.iter().map(|e| format!("{}>{} {}", e.from, e.to, e.by)).collect();
        let expected = [
            "a>b y.done",
            "b>c T.p",
            "c>a x.*",
            "c>d effect.ended of tool:pay",
            "outside>a x.begun",
        ];
        assert_eq!(edges, expected);
        assert_eq!(triggers.loops(), [["a", "b", "c"]]);
        assert_eq!(triggers.undeclared, ["d"]);
    }
}
