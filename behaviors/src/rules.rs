//! What a proposal may not say: what only the runtime says, and what its behavior did not declare.

use log::Change;
use serde_json::{Map, Value};

use crate::metadata::Metadata;
use crate::proposal::{Proposal, made_by};
use crate::view::Firing;
use crate::word::Word;

const RUNTIME_KINDS: [&str; 6] =
    ["behavior.", "effect.", "attempt.", "flock.", "branch.", "grant."];

/// Whether only the runtime may emit events of this kind.
#[must_use]
pub fn is_runtime_kind(kind: &str) -> bool {
    RUNTIME_KINDS.iter().any(|prefix| kind.starts_with(prefix))
}

/// Whether only the runtime may create or change elements of this type.
#[must_use]
pub fn is_runtime_type(type_name: &str) -> bool {
    type_name.starts_with('_')
}

/// The rules for one proposal of one firing.
pub(crate) struct Rules<'r> {
    pub(crate) metadata: &'r Metadata,
    pub(crate) firing: &'r Firing<'r>,
    /// The proposals before it, and it itself last.
    pub(crate) proposals: &'r [Proposal],
}

impl Rules<'_> {
    /// Checks the kind of the last proposal.
    pub(crate) fn check_kind(&self) -> Result<(), String> {
        let kind = self.last().kind.as_str();
        if self.last().word != Word::Event {
            return self.check_word();
        }
        if kind.is_empty() {
            return Err("an event has a kind, such as `trip.opened`".to_owned());
        }
        if is_runtime_kind(kind) {
            return Err(format!(
                "`{kind}` is written by the runtime only, so that nobody can forge it; \
                 emit an event of a kind of your own"
            ));
        }
        let emits = self.metadata.emits.as_ref();
        if emits.is_some_and(|emits| !emits.iter().any(|pattern| pattern.fits(kind))) {
            let name = &self.metadata.name;
            return Err(format!(
                "{name} does not declare that it emits `{kind}`; add \"{kind}\" to its `emits`"
            ));
        }
        Ok(())
    }

    /// Checks a proposal that is no event.
    fn check_word(&self) -> Result<(), String> {
        let Metadata { name, effects, guard, .. } = self.metadata;
        let Proposal { kind, payload, changes, word, .. } = self.last();
        if !changes.is_empty() {
            return Err(format!("`{}` has no changes; emit an event of your own", word.as_str()));
        }
        match word {
            Word::Request if kind.trim().is_empty() => {
                Err("an effect has a name, such as `tool:pay_flight`".to_owned())
            }
            Word::Request if !effects.iter().any(|pattern| pattern.fits(kind)) => Err(format!(
                "{name} does not declare the effect `{kind}`; add \"{kind}\" to its `effects`"
            )),
            Word::Narrow => check_narrow(payload),
            Word::Cancel => check_cancel(payload),
            word if word.is_verdict() && !guard => {
                Err(format!("`{}` is a guard's word; {name} says no guard = True", word.as_str()))
            }
            word if word.is_verdict() => {
                let said = self.proposals.iter().filter(|said| said.word.is_verdict()).count();
                if said > 1 { Err(format!("{name} gives two verdicts; give one")) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Checks one change of the last proposal.
    pub(crate) fn check_change(&self, index: usize) -> Result<(), String> {
        let change = &self.last().changes[index];
        self.check_references(change, index)?;
        match change {
            Change::Create { id, type_name, .. } | Change::Link { id, type_name, .. } => {
                id.as_ref().map_or(Ok(()), |id| check_chosen_id(id))?;
                self.check_write(type_name, None)
            }
            Change::Ensure { id, type_name, .. } => {
                check_chosen_id(id)?;
                self.check_write(type_name, None)
            }
            Change::EnsureLink { type_name, .. } => self.check_write(type_name, None),
            Change::Write { id, properties, .. } => {
                let mut names = properties.keys().map(String::as_str);
                names.try_for_each(|name| self.check_touch(id, Some(name)))
            }
            Change::Unset { id, names } => {
                names.iter().try_for_each(|name| self.check_touch(id, Some(name)))
            }
            Change::Remove { id } => self.check_touch(id, None),
        }
    }

    fn last(&self) -> &Proposal {
        self.proposals.last().expect("there is a proposal to check")
    }

    /// Checks a write to an element that is there already.
    fn check_touch(&self, id: &str, property: Option<&str>) -> Result<(), String> {
        match self.type_of(id) {
            Some(type_name) => self.check_write(type_name, property),
            // Without `writes` nothing is restricted, and the runtime refuses its own types.
            None if self.metadata.writes.is_none() => Ok(()),
            None => Err(format!(
                "`{id}` is written, but its type is not known here: neither the match nor a read \
                 binds it; bind it, or drop `writes` from {}",
                self.metadata.name
            )),
        }
    }

    fn check_write(&self, type_name: &str, property: Option<&str>) -> Result<(), String> {
        if is_runtime_type(type_name) {
            return Err(format!(
                "elements of type `{type_name}` are written by the runtime only; \
                 a type of your own does not begin with `_`"
            ));
        }
        let Some(writes) = &self.metadata.writes else { return Ok(()) };
        let declared = |entry: &String| match (entry.split_once('.'), property) {
            (None, None) => entry == type_name,
            (Some((of, name)), Some(property)) => {
                of == type_name && (name == property || name == "*")
            }
            _ => false,
        };
        if writes.iter().any(declared) {
            return Ok(());
        }
        let entry = property.map_or(type_name.to_owned(), |name| format!("{type_name}.{name}"));
        let name = &self.metadata.name;
        Err(format!(
            "{name} does not declare that it writes `{entry}`; add \"{entry}\" to its `writes`"
        ))
    }

    /// The type of what an id names, as far as the firing and its proposals tell.
    fn type_of(&self, id: &str) -> Option<&str> {
        let made = made_by(id).and_then(|(i, j)| self.proposals.get(i)?.changes.get(j));
        let chosen = || {
            let changes = self.proposals.iter().flat_map(|proposal| &proposal.changes);
            changes.into_iter().find(|change| chosen_id(change) == Some(id))
        };
        let requested = |(i, _)| {
            self.proposals.get(i).is_some_and(|proposal: &Proposal| proposal.word == Word::Request)
        };
        match made {
            Some(change) => made_type(change),
            None if made_by(id).is_some_and(requested) => Some("_Effect"),
            None => self.firing.type_of(id).or_else(|| made_type(chosen()?)),
        }
    }

    /// Refuses a reference to what is not made yet.
    fn check_references(&self, change: &Change, index: usize) -> Result<(), String> {
        let own = self.proposals.len() - 1;
        let ids: [Option<&str>; 2] = match change {
            Change::Link { from, to, .. } | Change::EnsureLink { from, to, .. } => {
                [Some(from), Some(to)]
            }
            Change::Write { id, .. } | Change::Unset { id, .. } | Change::Remove { id } => {
                [Some(id), None]
            }
            Change::Create { .. } | Change::Ensure { .. } => [None, None],
        };
        for id in ids.into_iter().flatten() {
            let Some((i, j)) = made_by(id) else { continue };
            let stands = self.proposals.get(i).is_some_and(|proposal| {
                j < proposal.changes.len() || (proposal.word == Word::Request && j == 0)
            });
            if !stands || (i, j) >= (own, index) {
                return Err(format!("`{id}` names what is not made yet; put what makes it before"));
            }
        }
        Ok(())
    }
}

/// Checks what a firing gives to what follows from it.
fn check_narrow(payload: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in payload {
        let fits = match name.as_str() {
            "effects" => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
            "budget" => value.as_object().is_some_and(|budget| {
                budget.iter().all(|(name, bound)| {
                    ["effects", "tokens", "cost"].contains(&name.as_str())
                        && bound.as_f64().is_some_and(|bound| bound >= 0.0)
                })
            }),
            _ => false,
        };
        if !fits {
            return Err(format!(
                "narrow has `effects`, a list of texts, and `budget`, an object of effects, tokens \
                 and cost; found `{name}`: {value}"
            ));
        }
    }
    Ok(())
}

fn check_cancel(payload: &Map<String, Value>) -> Result<(), String> {
    let fits = |(name, value): (&String, &Value)| match name.as_str() {
        "effect" | "goal" => value.is_string(),
        "firing" => value.is_u64(),
        _ => false,
    };
    if payload.len() <= 1 && payload.iter().all(fits) {
        return Ok(());
    }
    Err(format!(
        "cancel has one of `effect` and `goal`, the text of an id, and `firing`, a count; found {}",
        Value::Object(payload.clone())
    ))
}

fn made_type(change: &Change) -> Option<&str> {
    match change {
        Change::Create { type_name, .. }
        | Change::Ensure { type_name, .. }
        | Change::Link { type_name, .. }
        | Change::EnsureLink { type_name, .. } => Some(type_name),
        _ => None,
    }
}

fn chosen_id(change: &Change) -> Option<&str> {
    match change {
        Change::Create { id, .. } | Change::Link { id, .. } => id.as_deref(),
        Change::Ensure { id, .. } => Some(id),
        _ => None,
    }
}

fn check_chosen_id(id: &str) -> Result<(), String> {
    if id.is_empty() {
        return Err("a chosen id is not empty; leave it out to get a derived one".to_owned());
    }
    if id.contains('#') {
        return Err(format!(
            "`{id}` cannot be chosen as an id: `#` marks the ids that are derived"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Scene, reply_text};
    use crate::{Metadata, Proposals, ReactError};

    /// What becomes of a reaction of a behavior with these fields; it sees the trip `t`.
    fn check(
        fields: Value,
        reaction: fn(&mut Proposals<'_>) -> Result<(), ReactError>,
        expected: &str,
    ) {
        let mut whole = json!({"name": "b", "match": "(trip:Trip)"});
        for (name, value) in fields.as_object().expect("an object") {
            whole[name] = value.clone();
        }
        let metadata = Metadata::from_json(whole.as_object().expect("an object"), "b");
        let metadata = metadata.expect("metadata");
        let scene = Scene::new(json!({"bound": {"trip": {"id": "t", "type": "Trip"}}}));
        let firing = scene.firing("b");
        let mut out = Proposals::new(&metadata, &firing);
        let reply = reaction(&mut out).and_then(|()| out.finish());
        let found = reply_text(&reply);
        assert_eq!(found.trim_end(), expected);
    }

    #[test]
    fn what_is_declared_binds() {
        let both = || json!({"emits": ["trip.*"], "writes": ["Trip.status", "Stop", "Stop.*"]});
        check(
            both(),
            |out| {
                let mut event = out.emit("trip.planned", json!({"n": 1}));
                let stop = event.create("Stop", json!({}));
                event.set("t", json!({"status": "x"})).add(&stop, json!({"n": 1})).remove(&stop);
                Ok(())
            },
            "trip.planned {\"n\":1}\n  {\"create\":null,\"properties\":{},\"type\":\"Stop\"}\n  \
             {\"properties\":{\"status\":\"x\"},\"set\":\"t\"}\n  \
             {\"add\":\"@0#0\",\"properties\":{\"n\":1}}\n  {\"remove\":\"@0#0\"}",
        );
        check(
            both(),
            |out| {
                out.emit("flight.chosen", json!({}));
                Ok(())
            },
            "error: b does not declare that it emits `flight.chosen`; \
             add \"flight.chosen\" to its `emits`",
        );
        check(
            both(),
            |out| {
                out.emit("trip.x", json!({})).set("t", json!({"price": 1}));
                Ok(())
            },
            "error: b does not declare that it writes `Trip.price`; \
             add \"Trip.price\" to its `writes`",
        );
        check(
            both(),
            |out| {
                out.emit("trip.x", json!({})).remove("t");
                Ok(())
            },
            "error: b does not declare that it writes `Trip`; add \"Trip\" to its `writes`",
        );
        check(
            both(),
            |out| {
                out.emit("trip.x", json!({})).set("elsewhere", json!({"status": 1}));
                Ok(())
            },
            "error: `elsewhere` is written, but its type is not known here: neither the match nor \
             a read binds it; bind it, or drop `writes` from b",
        );
    }

    #[test]
    fn what_is_not_declared_is_free() {
        check(
            json!({}),
            |out| {
                out.emit("any.kind", json!({})).set("elsewhere", json!({"x": 1}));
                Ok(())
            },
            "any.kind {}\n  {\"properties\":{\"x\":1},\"set\":\"elsewhere\"}",
        );
        let nothing = json!({"emits": [], "writes": []});
        check(nothing, |_| Ok(()), "");
        check(
            json!({"emits": []}),
            |out| {
                out.emit("any.kind", json!({}));
                Ok(())
            },
            "error: b does not declare that it emits `any.kind`; add \"any.kind\" to its `emits`",
        );
    }

    #[test]
    fn nobody_forges_what_the_runtime_says() {
        for kind in RUNTIME_KINDS {
            assert!(is_runtime_kind(&format!("{kind}x")));
        }
        assert!(!is_runtime_kind("schema.declared") && !is_runtime_kind("effects.x"));
        check(
            json!({"emits": ["*"]}),
            |out| {
                out.emit("effect.ended", json!({"status": "succeeded"}));
                Ok(())
            },
            "error: `effect.ended` is written by the runtime only, so that nobody can forge it; \
             emit an event of a kind of your own",
        );
        check(
            json!({"writes": ["_Grant"]}),
            |out| {
                out.emit("trip.x", json!({})).create("_Grant", json!({}));
                Ok(())
            },
            "error: elements of type `_Grant` are written by the runtime only; \
             a type of your own does not begin with `_`",
        );
    }

    #[test]
    fn an_id_is_chosen_or_made_before() {
        check(
            json!({}),
            |out| {
                out.emit("trip.x", json!({})).ensure("Stop", "s#1", json!({}));
                Ok(())
            },
            "error: `s#1` cannot be chosen as an id: `#` marks the ids that are derived",
        );
        check(
            json!({}),
            |out| {
                out.emit("trip.x", json!({})).set("@0#1", json!({"n": 1}));
                Ok(())
            },
            "error: `@0#1` names what is not made yet; put what makes it before",
        );
        check(
            json!({}),
            |out| {
                let stop = out.emit("trip.x", json!({})).create("Stop", json!({}));
                out.emit("trip.y", json!({})).link("t", "AT", &stop, json!({}));
                Ok(())
            },
            "trip.x {}\n  {\"create\":null,\"properties\":{},\"type\":\"Stop\"}\ntrip.y {}\n  \
             {\"from\":\"t\",\"link\":\"AT\",\"to\":\"@0#0\"}",
        );
    }

    #[test]
    fn a_chosen_id_has_the_type_it_was_made_with() {
        check(
            json!({"writes": ["Stop"]}),
            |out| {
                out.emit("trip.x", json!({})).ensure("Stop", "s:1", json!({}));
                out.emit("trip.y", json!({})).set("s:1", json!({"n": 1}));
                Ok(())
            },
            "error: b does not declare that it writes `Stop.n`; add \"Stop.n\" to its `writes`",
        );
    }
}
