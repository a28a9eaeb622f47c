//! Proposals as JSON, as people and programs write them: `{"emit": KIND, …}`, `{"request": …}` and
//! the words of guards. What is not known is refused: what is understood in part is no proposal.

use log::Change;
use serde_json::{Map, Value};
use smol_str::{SmolStr, format_smolstr};

use crate::error::ReactError;
use crate::proposal::{Proposal, Proposals};
use crate::suggest::did_you_mean;
use crate::word::Word;

/// The words, each with the other fields that it has.
const WORDS: [(&str, &[&str]); 6] = [
    ("emit", &["payload", "changes", "key"]),
    ("request", &["args", "key"]),
    ("allow", &[]),
    ("deny", &[]),
    ("rewrite", &[]),
    ("narrow", &[]),
];

impl Proposals<'_> {
    /// Proposes what a program said: `{"emit": KIND, "payload": {…}, "changes": […], "key": …}`,
    /// `{"request": EFFECT, "args": {…}, "key": …}`, `{"allow": true}`, `{"deny": REASON}`,
    /// `{"rewrite": ARGS}` or `{"narrow": {…}}`. In changes `#j` is what change j of this event
    /// makes, `@i#j` what change j of proposal i makes. `at` names the place in messages.
    ///
    /// # Errors
    /// It is none of these, or it breaks a rule.
    pub fn say_json(&mut self, said: &Value, at: &str) -> Result<(), ReactError> {
        let bad = |what: String| ReactError::new(format!("{at}: {what}"));
        let proposal = read(said, self.count()).map_err(bad)?;
        self.push(proposal).map(drop).map_err(|error| bad(error.message))
    }
}

fn read(said: &Value, number: usize) -> Result<Proposal, String> {
    let known = || WORDS.map(|(word, _)| word).join(", ");
    let map = said.as_object().ok_or_else(|| {
        format!("a proposal is an object with one of {}, found {}", known(), short(said))
    })?;
    let mut words = WORDS.iter().filter(|(word, _)| map.contains_key(*word));
    let Some((word, fields)) = words.next() else {
        let hint = map.keys().find_map(|key| {
            let hint = did_you_mean(key, WORDS.map(|(word, _)| word));
            (!hint.is_empty()).then_some(hint)
        });
        return Err(format!("it says none of {}{}", known(), hint.unwrap_or_default()));
    };
    if let Some((other, _)) = words.next() {
        return Err(format!("it says both `{word}` and `{other}`; make them two lines"));
    }
    if let Some(key) = map.keys().find(|key| *key != word && !fields.contains(&key.as_str())) {
        let hint = did_you_mean(key, fields.iter().copied());
        return Err(format!("`{word}` has no `{key}`{hint}"));
    }
    built(word, map, number)
}

fn built(word: &str, map: &Map<String, Value>, number: usize) -> Result<Proposal, String> {
    let value = &map[word];
    let object = |value: Option<&Value>, name: &str| match value {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map.clone()),
        Some(other) => Err(format!("`{name}` is an object, found {}", short(other))),
    };
    let named = || match value.as_str() {
        Some(text) if !text.trim().is_empty() => Ok(SmolStr::from(text)),
        _ => Err(format!("`{word}` is a text that is not empty, found {}", short(value))),
    };
    let key = match map.get("key") {
        None | Some(Value::Null) => None,
        Some(Value::String(key)) => Some(SmolStr::from(key.as_str())),
        Some(other) => return Err(format!("`key` is a text, found {}", short(other))),
    };
    let plain = |word: Word, payload: Map<String, Value>| {
        let (kind, changes) = (word.as_str().into(), Vec::new());
        Proposal { kind, payload, changes, key: None, word }
    };
    Ok(match word {
        "emit" => {
            let payload = object(map.get("payload"), "payload")?;
            let changes = changes(map.get("changes"), number)?;
            Proposal { kind: named()?, payload, changes, key, word: Word::Event }
        }
        "request" => {
            let payload = object(map.get("args"), "args")?;
            Proposal { kind: named()?, payload, changes: Vec::new(), key, word: Word::Request }
        }
        "allow" if *value == Value::Bool(true) => plain(Word::Allow, Map::new()),
        "allow" => return Err(format!("`allow` is true, found {}", short(value))),
        "deny" => {
            let mut payload = Map::new();
            payload.insert("reason".to_owned(), Value::from(named()?.as_str()));
            plain(Word::Deny, payload)
        }
        "rewrite" => plain(Word::Rewrite, object(Some(value), "rewrite")?),
        _ => plain(Word::Narrow, object(Some(value), "narrow")?),
    })
}

fn changes(value: Option<&Value>, number: usize) -> Result<Vec<Change>, String> {
    let list = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(format!("`changes` is a list, found {}", short(other))),
    };
    let change = |(index, change): (usize, &Value)| {
        let read = Change::from_json(change, &format!("changes[{index}]"));
        let mut change = read.map_err(|error| error.to_string())?;
        name_own(&mut change, number);
        Ok(change)
    };
    list.iter().enumerate().map(change).collect()
}

/// `#j` becomes `@i#j`: what change j of this very proposal makes.
fn name_own(change: &mut Change, number: usize) {
    let name = |id: &mut SmolStr| {
        if id.starts_with('#') {
            *id = format_smolstr!("@{number}{id}");
        }
    };
    match change {
        Change::Create { .. } | Change::Ensure { .. } => {}
        Change::Link { from, to, .. } | Change::EnsureLink { from, to, .. } => {
            name(from);
            name(to);
        }
        Change::Write { id, .. } | Change::Unset { id, .. } | Change::Remove { id } => name(id),
    }
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Metadata;
    use crate::testing::{Scene, reply_text};

    fn check(said: &[Value], expected: &str) {
        let fields = json!({
            "name": "b", "on": "effect.requested", "guard": true, "effects": ["tool:*"],
        });
        let metadata = Metadata::from_json(fields.as_object().expect("an object"), "b");
        let metadata = metadata.expect("metadata");
        let scene = Scene::new(json!({}));
        let firing = scene.firing("b");
        let mut out = Proposals::new(&metadata, &firing);
        let said = said.iter().try_for_each(|said| out.say_json(said, "line 1"));
        let found = reply_text(&said.and_then(|()| out.finish()));
        assert_eq!(found.trim_end(), expected);
    }

    #[test]
    fn each_word_is_read_and_own_elements_are_named() {
        let stop = json!({"create": null, "type": "Stop", "properties": {"n": 1}});
        let link = json!({"link": "AT", "from": "t", "to": "#0"});
        check(
            &[
                json!({"emit": "trip.x", "payload": {"a": 1}, "changes": [stop, link]}),
                json!({"emit": "trip.y", "changes": [{"remove": "@0#1"}], "key": "once"}),
                json!({"request": "tool:pay", "args": {"n": 1}}),
                json!({"deny": "no"}),
            ],
            "trip.x {\"a\":1}\n  {\"create\":null,\"properties\":{\"n\":1},\"type\":\"Stop\"}\n  \
             {\"from\":\"t\",\"link\":\"AT\",\"to\":\"@0#0\"}\ntrip.y {} key once\n  \
             {\"remove\":\"@0#1\"}\nrequest tool:pay {\"n\":1}\ndeny  {\"reason\":\"no\"}",
        );
        check(&[json!({"rewrite": {"n": 2}})], "rewrite  {\"n\":2}");
        check(&[json!({"allow": true})], "allow  {}");
    }

    #[test]
    fn what_is_not_understood_whole_is_refused() {
        let words = "emit, request, allow, deny, rewrite, narrow";
        check(
            &[json!([])],
            &format!("error: line 1: a proposal is an object with one of {words}, found []"),
        );
        check(
            &[json!({"emitt": "k"})],
            &format!("error: line 1: it says none of {words}; did you mean `emit`?"),
        );
        check(
            &[json!({"emit": "k", "paylod": {}})],
            "error: line 1: `emit` has no `paylod`; did you mean `payload`?",
        );
        check(
            &[json!({"emit": "k", "deny": "x"})],
            "error: line 1: it says both `emit` and `deny`; make them two lines",
        );
        check(&[json!({"allow": "yes"})], "error: line 1: `allow` is true, found \"yes\"");
        check(
            &[json!({"emit": "k", "changes": [{"set": "x", "propertis": {}}]})],
            "error: line 1: changes[0].propertis: `set` has no such field; \
             it has set, properties, if_version",
        );
        check(
            &[json!({"request": "fs.write"})],
            "error: line 1: b does not declare the effect `fs.write`; \
             add \"fs.write\" to its `effects`",
        );
    }
}
