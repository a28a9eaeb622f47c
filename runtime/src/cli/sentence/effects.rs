//! What the events of effects and grants say, in words of their own.

use log::{Event, ValueRef};
use serde_json::Value;

use super::{plain, short_value};

/// The sentence of an event about effects; none if it is another one.
pub(super) fn words(event: &Event) -> Option<String> {
    let payload = event.payload();
    let text = |name: &str| payload.get(name).and_then(ValueRef::as_str).map(plain);
    let number = |name: &str| payload.get(name).and_then(ValueRef::as_i64).unwrap_or(0);
    let json = |name: &str| payload.get(name).map_or(Value::Null, ValueRef::to_json);
    let effect = text("effect").unwrap_or_default();
    let by = text("by").map_or(String::new(), |who| format!(" by {who}"));
    Some(match event.kind() {
        "effect.requested" => {
            let args = payload.get("args").map_or(String::new(), short_value);
            format!("asks for {effect} with {args}")
        }
        "effect.judged" => {
            let why = text("reason").map_or(String::new(), |reason| format!(": {reason}"));
            let verdict = match text("verdict").as_deref() {
                Some("allow") => "lets pass",
                Some("deny") => "refuses",
                _ => "judges too late",
            };
            format!("{verdict} {effect}{why}")
        }
        "effect.rewritten" => {
            let args = payload.get("args").map_or(String::new(), short_value);
            format!("{effect} has other arguments now, revision {}: {args}", number("revision"))
        }
        "effect.asked" => format!("{effect} is put to the guard {}", text("guard")?),
        "effect.held" => format!("{effect} waits for a person's approval"),
        "effect.approved" => format!("{effect} is approved{by}"),
        "effect.linked" => format!("{effect} is under way already and ends with that one"),
        "effect.dispatched" => {
            let again = match text("again").as_deref() {
                Some("read_only") => ", again: it changes nothing",
                Some("same_key") => ", again: with the same key",
                Some("absent") => ", again: it was not done",
                _ => "",
            };
            let from = match text("executor").as_deref() {
                Some("recorded") => " to what is recorded",
                Some("person") => " to a person",
                Some("clock") => " to the clock",
                _ => "",
            };
            format!("{effect} leaves{from}, attempt {}{again}", number("attempt"))
        }
        "attempt.ended" => {
            let after = match json("retry") {
                Value::Null => String::new(),
                retry => format!("; tried again in {} ms", retry["wait_ms"]),
            };
            let status = text("status")?;
            format!("attempt {} at {effect}: {status}{}{after}", number("attempt"), why(&json))
        }
        "effect.ended" => format!("{effect} {}{}", ending(&text("status")?), why(&json)),
        "effect.looked" => {
            let person = text("person").map_or(String::new(), |why| format!("; {why}"));
            format!("a look at {effect} sees that it is {}{person}", text("seen")?)
        }
        "effect.reconciled" => {
            format!("{effect} is settled{by}: it {}{}", ending(&text("status")?), why(&json))
        }
        "attempt.late" => {
            let conflict = if json("conflict") == true { ", against what was decided" } else { "" };
            format!("a late receipt for {effect}: {}{conflict}", text("status")?)
        }
        _ => return grant_words(event),
    })
}

/// The sentence of an event about grants, cancellation and time.
fn grant_words(event: &Event) -> Option<String> {
    let payload = event.payload();
    let json = |name: &str| payload.get(name).map_or(Value::Null, ValueRef::to_json);
    Some(match event.kind() {
        "effect.cancelling" => format!("cancels {}", json("scope")),
        "grant.given" => format!("grants {}", json("effects")),
        "grant.revoked" => format!("takes back {}", json("effects")),
        "grant.narrowed" => {
            format!("gives no more than {} to what follows", Value::Object(payload.to_json()))
        }
        "flock.ticked" => "it is time for what waited".to_owned(),
        "behavior.mended" => format!("{} is mended or gone", plain(json("path").as_str()?)),
        _ => return None,
    })
}

fn ending(status: &str) -> String {
    match status {
        "unknown" => "may have taken effect: nobody knows".to_owned(),
        "rejected" => "is refused".to_owned(),
        "cancelled" => "is cancelled".to_owned(),
        other => other.to_owned(),
    }
}

/// The error of an event, if it has one.
fn why(json: &dyn Fn(&str) -> Value) -> String {
    match json("error")["message"].as_str() {
        Some(message) => format!(": {}", plain(message.lines().next().unwrap_or_default())),
        None => String::new(),
    }
}
