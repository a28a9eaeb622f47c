//! Lines of standard input as drafts, read on a thread of their own.

use std::io::{BufRead, Read};
use std::sync::mpsc::SyncSender;

use log::{Draft, LINE_MAX, parse_object};
use serde_json::{Map, Value};

use super::outside::{self, Outside, draft};
use crate::cli::failure::{Failure, words};

/// A line that was read.
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) draft: Result<Draft, Failure>,
}

/// Reads lines until the end, the first that is wrong, or nobody wants more.
pub(super) fn read(mut input: Box<dyn BufRead + Send>, actor: &str, to: &SyncSender<Line>) {
    let mut text = String::new();
    for number in 1.. {
        text.clear();
        let mut limited = (&mut input).take(LINE_MAX as u64);
        let draft = match limited.read_line(&mut text) {
            Ok(0) => return,
            Ok(_) if text.trim().is_empty() => continue,
            Ok(_) => read_line(&text, actor),
            Err(error) => Err(Failure::Failed(format!("it cannot be read: {error}"))),
        };
        let draft =
            draft.map_err(|failure| failure.reworded(|words| format!("line {number}: {words}")));
        let ends = draft.is_err();
        if to.send(Line { number, draft }).is_err() || ends {
            return;
        }
    }
}

fn read_line(text: &str, actor: &str) -> Result<Draft, Failure> {
    // The parser counts lines too, but knows only this one.
    let bad = |error| words(&error).replace("line 1 column", "column");
    let mut map = parse_object(text).map_err(|error| Failure::Usage(bad(error)))?;
    let kind = match map.remove("kind") {
        Some(Value::String(kind)) => kind,
        _ => return Err(Failure::Usage("kind: every event has one, a text".to_owned())),
    };
    let payload = match map.remove("payload") {
        None => Map::new(),
        Some(Value::Object(payload)) => payload,
        Some(_) => return Err(Failure::Usage("payload: expected an object".to_owned())),
    };
    let changes = outside::read_changes(map.remove("changes").as_ref())?;
    let key = text_of(&mut map, "key")?;
    let actor = match text_of(&mut map, "actor")? {
        Some(given) => outside::actor(Some(&given))?,
        None => actor.to_owned(),
    };
    if let Some(name) = map.keys().next() {
        return Err(Failure::Usage(format!(
            "{name}: unknown here; a line has kind, payload, changes, key and actor"
        )));
    }
    draft(Outside { kind, payload, changes, key, actor })
}

fn text_of(map: &mut Map<String, Value>, field: &str) -> Result<Option<String>, Failure> {
    match map.remove(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Failure::Usage(format!("{field}: expected a text"))),
    }
}
