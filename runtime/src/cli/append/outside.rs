//! What comes from outside, made into a draft: checked, and given its id at this edge.

use log::{Change, Derivation, Draft, parse_object};
use serde_json::{Map, Value};

use crate::cli::failure::{Failure, words};
use crate::clock;
use crate::kinds::check_outside_change;

/// Kinds that only the runtime writes.
const RESERVED: [&str; 6] = ["behavior", "effect", "attempt", "flock", "branch", "grant"];

/// What somebody says has happened.
pub(super) struct Outside {
    pub(super) kind: String,
    pub(super) payload: Map<String, Value>,
    pub(super) changes: Vec<Change>,
    pub(super) key: Option<String>,
    pub(super) actor: String,
}

/// Makes the draft. Its id is derived from its key or, without one, from a nonce that is minted
/// here, and from its content.
pub(super) fn draft(said: Outside) -> Result<Draft, Failure> {
    check_kind(&said.kind)?;
    let nonce = match &said.key {
        Some(key) => key.clone(),
        None => nonce()?,
    };
    let changes = Value::Array(said.changes.iter().map(Change::to_json).collect());
    let id = Derivation::new().text("outside").text(&nonce).text(&said.kind);
    let payload = Value::Object(said.payload);
    let id = id.json(&payload).json(&changes).finish();
    let mut draft = Draft::new(id, said.kind, said.actor);
    let Value::Object(payload) = payload else { unreachable!("it was made an object above") };
    draft.payload = payload;
    draft.changes = said.changes;
    draft.key = said.key.map(Into::into);
    draft.time = clock::now();
    Ok(draft)
}

fn nonce() -> Result<String, Failure> {
    let failed = |error| Failure::Failed(format!("the system gives no random number: {error}"));
    let number = getrandom::u64().map_err(failed)?;
    let more = getrandom::u64().map_err(failed)?;
    Ok(format!("{number:016x}{more:016x}"))
}

fn check_kind(kind: &str) -> Result<(), Failure> {
    let word = |word: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(plain)
    };
    if !kind.split('.').all(word) {
        return Err(Failure::Usage(format!(
            "`{kind}` is not a kind: write lower-case words with dots between, such as note.added"
        )));
    }
    let first = kind.split('.').next().unwrap_or(kind);
    if RESERVED.contains(&first) {
        return Err(Failure::Usage(format!(
            "only the runtime writes events of the kind `{first}.*`; choose a word of your own, such as \
             my_{kind}"
        )));
    }
    Ok(())
}

/// The actor that was given, or the user of this process.
pub(in crate::cli) fn actor(given: Option<&str>) -> Result<String, Failure> {
    let actor = match given {
        Some(actor) => actor.to_owned(),
        None => {
            let set = |name| std::env::var(name).ok().filter(|user| !user.is_empty());
            let user = set("USER").or_else(|| set("LOGNAME"));
            format!("user:{}", user.as_deref().unwrap_or("unknown"))
        }
    };
    let name = actor.strip_prefix("user:").unwrap_or("");
    let plain = |c: char| !c.is_control() && !c.is_whitespace();
    if name.is_empty() || !name.chars().all(plain) {
        return Err(Failure::Usage(format!(
            "`{actor}` is no actor from outside: write user:NAME, such as user:ann"
        )));
    }
    Ok(actor)
}

/// Reads a payload.
pub(super) fn payload(text: &str) -> Result<Map<String, Value>, Failure> {
    parse_object(text).map_err(|error| {
        Failure::Usage(format!("the payload is no JSON object: {}", words(&error)))
    })
}

/// Reads a list of changes, given as text.
pub(super) fn changes(text: &str) -> Result<Vec<Change>, Failure> {
    let wrapped = format!("{{\"changes\":{text}}}");
    let map = parse_object(&wrapped).map_err(|error| {
        Failure::Usage(format!("the changes are no JSON list: {}", words(&error)))
    })?;
    read_changes(map.get("changes"))
}

/// Reads a list of changes.
pub(super) fn read_changes(value: Option<&Value>) -> Result<Vec<Change>, Failure> {
    let list = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(Failure::Usage("changes: expected a list".to_owned())),
    };
    let read = |(nth, value)| {
        let change = Change::from_json(value, &format!("changes[{nth}]"));
        let change = change.map_err(|error| Failure::Usage(words(&error)))?;
        let bad = |what| Failure::Usage(format!("changes[{nth}]: {what}"));
        check_outside_change(&change).map_err(bad)?;
        Ok(change)
    };
    list.iter().enumerate().map(read).collect()
}
