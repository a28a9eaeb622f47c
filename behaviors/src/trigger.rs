//! What decides when a behavior fires, and nothing else.
//!
//! Two versions of a behavior have the same trigger exactly when their `Trigger`s are equal; then a
//! replacement keeps what is due.

use std::collections::BTreeMap;

use log::{Event, MapRef, ValueRef};
use serde_json::{Number, Value};

use crate::kind::KindPattern;

/// What decides when a behavior fires.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trigger {
    /// The kinds of event that it hears.
    pub on: Option<KindPattern>,
    /// Payload paths (`a.b`), each with the values that are accepted there.
    pub filter: BTreeMap<String, Vec<Value>>,
    /// The graph pattern: alone it is what fires, with `on` it is a condition.
    pub condition: Option<Condition>,
    /// With `on` and a pattern: every standing match, not only those that the event names.
    pub each: bool,
    /// How many events later it is due.
    pub after: u64,
    /// How many milliseconds later, by the recorded clock, it is due.
    pub after_ms: Option<u64>,
    /// Whether its own writes wake it.
    pub wakes_self: bool,
}

/// A graph pattern, and which of its edges in time counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A match appears; with `on`: a match stands.
    Matches(String),
    /// A match is gone.
    Vanishes(String),
}

impl Condition {
    /// The pattern, in its canonical form.
    #[must_use]
    pub fn pattern(&self) -> &str {
        let (Condition::Matches(pattern) | Condition::Vanishes(pattern)) = self;
        pattern
    }
}

impl Trigger {
    /// Whether `on` and `where` let this event through. False without `on`.
    #[must_use]
    pub fn hears(&self, event: &Event) -> bool {
        self.hears_kind(event.kind()) && self.accepts(event.payload())
    }

    /// Whether `on` fits this kind.
    #[must_use]
    pub fn hears_kind(&self, kind: &str) -> bool {
        self.on.as_ref().is_some_and(|on| on.fits(kind))
    }

    /// Whether `where` accepts this payload. A missing value is null.
    #[must_use]
    pub fn accepts(&self, payload: MapRef<'_>) -> bool {
        self.filter.iter().all(|(path, accepted)| {
            let value = at_path(payload, path).unwrap_or(ValueRef::Null);
            accepted.iter().any(|literal| is_equal(value, literal))
        })
    }

    /// Whether a guard with this trigger has to speak about a request. A value that `where` asks
    /// for and the request lacks counts as matching: what cannot be told apart is guarded.
    #[must_use]
    pub fn guards(&self, payload: MapRef<'_>) -> bool {
        self.filter.iter().all(|(path, accepted)| match at_path(payload, path) {
            None => true,
            Some(value) => accepted.iter().any(|literal| is_equal(value, literal)),
        })
    }

    /// Whether it fires when a match appears, and on nothing else.
    #[must_use]
    pub fn is_match(&self) -> bool {
        self.on.is_none() && matches!(self.condition, Some(Condition::Matches(_)))
    }

    /// Whether it fires when a match is gone.
    #[must_use]
    pub fn is_vanishes(&self) -> bool {
        matches!(self.condition, Some(Condition::Vanishes(_)))
    }
}

fn at_path<'a>(map: MapRef<'a>, path: &str) -> Option<ValueRef<'a>> {
    match path.split_once('.') {
        None => map.get(path),
        Some((first, rest)) => at_path(map.get(first)?.as_map()?, rest),
    }
}

/// Whether a stored value is this literal; `1` and `1.0` are equal numbers.
fn is_equal(value: ValueRef<'_>, literal: &Value) -> bool {
    match (value, literal) {
        (ValueRef::Null, Value::Null) => true,
        (ValueRef::Bool(left), Value::Bool(right)) => left == *right,
        (ValueRef::String(left), Value::String(right)) => left == right,
        (ValueRef::Int(left), Value::Number(right)) => is_integer(i128::from(left), right),
        (ValueRef::UInt(left), Value::Number(right)) => is_integer(i128::from(left), right),
        (ValueRef::Float(left), Value::Number(right)) => match integer_of(right) {
            Some(right) => left == right as f64 && left as i128 == right,
            None => right.as_f64() == Some(left),
        },
        _ => false,
    }
}

fn is_integer(left: i128, right: &Number) -> bool {
    match (integer_of(right), right.as_f64()) {
        (Some(right), _) => left == right,
        // A float of 2^63 is equal to no integer that it was rounded from.
        (None, Some(right)) => left as f64 == right && right as i128 == left,
        (None, None) => false,
    }
}

fn integer_of(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

#[cfg(test)]
mod tests {
    use log::{Draft, EventId, Offset};
    use serde_json::json;

    use crate::metadata::Metadata;

    fn hears(trigger: Value, kind: &str, payload: Value) -> bool {
        let mut fields = trigger;
        fields["name"] = json!("b");
        let fields = fields.as_object().expect("an object");
        let metadata = Metadata::from_json(fields, "test").expect("metadata");
        let mut draft = Draft::new(EventId::ZERO, kind, "user:ann");
        draft.payload = payload.as_object().expect("an object").clone();
        let (event, _) = Event::encode(&draft, Offset::ZERO).expect("an event");
        metadata.trigger.hears(&event)
    }

    use super::*;

    #[test]
    fn where_compares_the_value_at_a_path_with_literals() {
        let on = |filter: Value| json!({"on": "a.*", "where": filter});
        let payload = || json!({"x": {"y": 1}, "s": "text", "n": null, "big": u64::MAX});
        assert!(hears(on(json!({})), "a.b", payload()));
        assert!(!hears(on(json!({})), "b", payload()));
        assert!(hears(on(json!({"x.y": 1})), "a.b", payload()));
        assert!(hears(on(json!({"x.y": 1.0})), "a.b", payload()), "1 and 1.0 are equal");
        assert!(hears(on(json!({"x.y": [3, 1]})), "a.b", payload()));
        assert!(!hears(on(json!({"x.y": [3, "1", true]})), "a.b", payload()));
        assert!(hears(on(json!({"s": "text", "x.y": 1})), "a.b", payload()));
        assert!(!hears(on(json!({"s": "text", "x.y": 2})), "a.b", payload()));
        assert!(hears(on(json!({"n": null, "gone": null})), "a.b", payload()), "missing is null");
        assert!(!hears(on(json!({"x.y.z": 1})), "a.b", payload()));
        assert!(hears(on(json!({"big": u64::MAX})), "a.b", payload()));
        assert!(!hears(on(json!({"big": 18446744073709551615.0})), "a.b", payload()));
    }

    #[test]
    fn a_trigger_without_on_hears_nothing() {
        assert!(!hears(json!({"match": "(a:A)"}), "a.b", json!({})));
    }
}
