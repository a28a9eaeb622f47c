//! Graph patterns as behaviors declare them: read when the behavior is loaded, kept in the one form
//! that all spellings of a pattern share, so that a new line or a space makes no other trigger.

use projection::{Aspect, Pattern};

use crate::trigger::Trigger;

/// Reads a pattern.
pub(crate) fn read(text: &str) -> Result<Pattern, String> {
    Pattern::parse(text).map_err(|error| error.to_string())
}

/// The names that a pattern binds, in pattern order.
pub(crate) fn names(pattern: &Pattern) -> Vec<String> {
    pattern
        .variables()
        .into_iter()
        .filter_map(|variable| Some(variable.name?.to_string()))
        .collect()
}

/// The name by which a guard's pattern binds the request that it is about.
const REQUEST: &str = "request";

/// Why a pattern cannot decide about which requests a guard speaks, if it cannot.
///
/// What a request says may be missing, and a missing value matches nothing, so that the guard would
/// be passed by. Only what every request has is compared.
pub(crate) fn refused_guard(pattern: &Pattern) -> Option<String> {
    let text = pattern.canonical();
    let typed = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let about = text.split_once("(request:_Effect").is_some_and(|(_, rest)| typed(rest));
    if !about {
        return Some(
            "a guard's pattern binds what it is about: write (request:_Effect)".to_owned(),
        );
    }
    let said = |what: &str| {
        format!(
            "{what} may be missing, and a missing value matches nothing, so the guard would not be \
             asked; compare it in the function"
        )
    };
    if pattern.uses_event() {
        return Some(said("what `event` says"));
    }
    let of_requests = |name: &Option<smol_str::SmolStr>| name.as_deref() == Some("_Effect");
    let read = pattern.interest().into_iter().filter(|watch| of_requests(&watch.type_name));
    for watch in read {
        match watch.aspect {
            Aspect::Property(name) if name != "effect" && name != "status" => {
                return Some(said(&format!("`{name}` of a request")));
            }
            Aspect::AnyProperty => return Some(said("a property of a request")),
            Aspect::Property(_) | Aspect::Existence => {}
        }
    }
    (!pattern.is_anchored(&[REQUEST])).then(|| {
        "the request does not lead to all of the pattern; put what stands apart into `reads`"
            .to_owned()
    })
}

/// Why a pattern cannot decide when this trigger fires, if it cannot.
pub(crate) fn refused(trigger: &Trigger, pattern: &Pattern) -> Option<String> {
    if trigger.on.is_none() {
        if pattern.uses_event() {
            return Some("`event` is bound only with `on`; add `on`, or drop `event`".to_owned());
        }
        return pattern.disconnected();
    }
    let found = trigger.each || pattern.is_anchored(&[]);
    (!found).then(|| {
        format!(
            "the event does not lead to the matches of `{pattern}`, so each one would be looked \
             through; name one by the event, such as {{id: event.trip}}, or say `each`"
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::Metadata;

    fn check(mut fields: Value, expected: &str) {
        fields["name"] = json!("b");
        let read = Metadata::from_json(fields.as_object().expect("an object"), "b");
        let found = read.map_or_else(|error| error.to_string(), |_| "fine".to_owned());
        assert!(found.starts_with(expected), "{found}");
    }

    #[test]
    fn a_pattern_must_be_one_and_lead_to_its_matches() {
        check(json!({"match": "(a:A)-[:T]->(b:B)"}), "fine");
        check(json!({"match": "(a:A"}), "b.match: pattern, line 1, column 5");
        check(json!({"match": "(a:A), (b:B)"}), "b.match: a change of");
        check(
            json!({"match": "(a:A {id: event.payload.x})"}),
            "b.match: `event` is bound only with `on`",
        );
        check(json!({"on": "k", "match": "(a:A)", "each": true}), "fine");
        check(json!({"on": "k", "match": "(a:A {id: event.payload.a})"}), "fine");
        check(json!({"on": "k", "match": "(a:A)"}), "b.match: the event does not lead to");
    }

    #[test]
    fn a_space_makes_no_other_trigger() {
        let trigger = |pattern: &str| {
            let fields = json!({"name": "b", "match": pattern});
            let fields = fields.as_object().expect("an object");
            Metadata::from_json(fields, "b").expect("metadata").trigger
        };
        assert_eq!(trigger("(a:A)-[:T]->(b)"), trigger("( a:A )\n  -[:T]-> (b)"));
        assert_ne!(trigger("(a:A)-[:T]->(b)"), trigger("(a:A)-[:U]->(b)"));
    }
}
