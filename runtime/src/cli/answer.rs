//! What a person says about effects, told to whoever runs the branch; if nobody does, it is checked
//! and landed here.

use std::path::Path;
use std::sync::Arc;

use log::{BranchName, Derivation, Draft, Log, LogError, Missing, Offer};
use serde_json::{Value, json};

use super::append::actor;
use super::failure::Failure;
use super::shell::Shell;
use crate::clock::now;
use crate::engine::{Engine, EngineError};
use crate::flock::library_of;
use crate::snapshot::Snapshots;

/// A command that answers an effect, with the store and branch that it is about.
pub(super) fn command_line(command: &str, store: Option<&Path>, branch: &BranchName) -> String {
    let mut line = format!("starling {command}");
    if let Some(store) = store {
        line += &format!(" --store {}", store.display());
    }
    if *branch != BranchName::main() {
        line += &format!(" --branch {branch}");
    }
    line
}

/// Says something about effects, and tells what was said.
pub(super) fn say(
    kind: &str,
    payload: Value,
    by: Option<&str>,
    told: &str,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let name = shell.branch_name();
    let branch = shell.branch(&*store, &name)?;
    let Value::Object(payload) = payload else { unreachable!("a payload is an object") };
    let now = now();
    let nonce = getrandom::u64();
    let nonce = nonce
        .map_err(|error| Failure::Failed(format!("the system gives no random number: {error}")))?;
    let id = Derivation::new().text("person").integer(nonce).text(kind);
    let id = id.json(&Value::Object(payload.clone())).finish();
    let draft = Draft { payload, time: now, ..Draft::new(id, kind, actor(by)?) };
    let log: Arc<dyn Log> = Arc::clone(&store) as Arc<dyn Log>;
    let snapshots = Snapshots::beside(store.path());
    let library = library_of(&log);
    match Engine::open_with(Arc::clone(&log), branch.id, library, &shell.me(), snapshots) {
        Ok(mut engine) => {
            engine.people_say(draft)?;
            engine.commit()?;
        }
        Err(EngineError::Log(LogError::Claimed { .. })) => {
            let offer = Offer { drafts: vec![draft], expected: None };
            let answer = log.offer(branch.id, offer).wait();
            let gone =
                || Failure::Failed(format!("the engine that runs {name} let go; say it again"));
            answer.ok_or_else(gone)??;
        }
        Err(error) => return Err(error.into()),
    }
    shell.either(|| json!({"said": kind, "branch": name.as_str()}), || told.to_owned())
}

/// Reads what was given as JSON; what is none is a text.
pub(super) fn value(text: &str) -> Value {
    let wrapped = log::parse_object(&format!("{{\"v\":{text}}}"));
    wrapped.ok().and_then(|mut map| map.remove("v")).unwrap_or_else(|| json!(text))
}
