//! What another runtime of this kind is held to by its own tests, in our terms: twenty behaviors,
//! each a test named by what it says. `peers.md` has them side by side, with what is deliberately
//! different and why.

mod asking;
mod keeping;
mod reacting;

use runtime::Overrides;
use serde_json::Value;

use crate::support::flock::{Running, scripts, start_folder};

/// The page names tests; a name that is no longer there would show nothing.
#[test]
fn every_test_that_the_page_names_is_there() {
    let sources = crate::tidy::sources();
    let page = include_str!("peers.md");
    let is_test = |word: &&str| word.matches('_').count() > 2 && !word.contains(['/', '.', ' ']);
    let names: Vec<&str> = page.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(names.len() > 30, "{} names", names.len());
    for name in names {
        let declared = format!("fn {name}(");
        assert!(sources.iter().any(|(_, text)| text.contains(&declared)), "{name}");
    }
}

/// A script with one behavior; each line of `body` is one of its function.
fn script(name: &str, fields: &str, parameters: &str, body: &str) -> (String, String) {
    let body: String = body.trim().lines().map(|line| format!("    {line}\n")).collect();
    let head = format!("behavior(name = \"{name}\", description = \"A test.\", {fields})");
    (format!("{name}.star"), format!("{head}\ndef {name}({parameters}):\n{body}"))
}

/// Starts a flock of such scripts.
fn flock(files: &[(String, String)]) -> Running {
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let folder = scripts("name = \"conformance\"\n[grants]\neffects = [\"*\"]\n", &files);
    start_folder(folder.path(), &Overrides::default())
}

/// The kinds of what happened, without what began it.
fn story(running: &Running) -> Vec<String> {
    let kinds = running.events().into_iter().map(|event| event.kind().to_owned());
    kinds.filter(|kind| kind != "flock.started" && kind != "behavior.loaded").collect()
}

/// The payloads of the events of one kind.
fn payloads(running: &Running, kind: &str) -> Vec<Value> {
    let events = running.of_kind(kind).into_iter();
    events.map(|event| Value::Object(event.payload().to_json())).collect()
}
