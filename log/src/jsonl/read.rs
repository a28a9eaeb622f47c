//! One line back into an event, or the line and column at which it is malformed.

use serde_json::{Map, Value};
use smol_str::SmolStr;

use crate::change::Change;
use crate::error::EventError;
use crate::event::{Bound, Cause, Draft};
use crate::id::{EventId, Offset, Time};
use crate::value::parse_object;

/// Where a line is malformed, and how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct LineError {
    /// The line, from 1.
    pub line: u64,
    /// The byte of the line, from 1.
    pub column: usize,
    /// What is wrong there.
    pub what: String,
}

/// Reads a line that `write_line` wrote, or one with at least `offset`, `id`, `kind`, `actor` and
/// `time`. Fields that this version does not know become the draft's `extra`.
///
/// # Errors
/// Where the line is malformed; `number` is its number in the file, from 1.
pub fn read_line(text: &str, number: u64) -> Result<(Offset, Draft), LineError> {
    let map = parse_object(text).map_err(|error| syntax(text, number, &error))?;
    let mut fields = Fields { map, text, line: number };
    let offset = Offset::new(fields.number("offset")?);
    let draft = Draft {
        id: fields.parsed("id")?,
        kind: fields.text("kind")?,
        payload: fields.payload()?,
        changes: fields.changes()?,
        actor: fields.text("actor")?,
        cause: fields.cause()?,
        taken: if fields.map.contains_key("taken") { fields.number("taken")? } else { 0 },
        key: fields.key()?,
        time: fields.parsed::<Time>("time")?,
        salt: fields.salt()?,
        extra: fields.map,
    };
    Ok((offset, draft))
}

/// The error of an event that was read from `text`, with its place in the file.
pub(crate) fn place(text: &str, line: u64, error: &EventError) -> LineError {
    let what = error.to_string();
    let field = match error {
        EventError::NotFinite { at, .. }
        | EventError::IntegerRange { at, .. }
        | EventError::TooDeep { at, .. }
        | EventError::DuplicateKey { at, .. }
        | EventError::Shape { at, .. } => at.split(['.', '[']).next().unwrap_or(at),
        EventError::FieldLength { field, .. } => field,
        _ => "",
    };
    LineError { line, column: column_of(text, field), what }
}

/// `parse_object` knows one line only; this says which it was.
fn syntax(text: &str, line: u64, error: &EventError) -> LineError {
    let message = error.to_string();
    let message = message.strip_prefix("not JSON: ").map_or(message.clone(), str::to_owned);
    if let Some((before, place)) = message.split_once("line 1 column ") {
        let digits: String = place.chars().take_while(char::is_ascii_digit).collect();
        let after = place[digits.len()..].trim_start_matches(':').trim_start();
        let what = format!("{}{after}", before.trim_end().trim_end_matches(" at"));
        let column = digits.parse::<usize>().unwrap_or(1).max(1);
        let lone = what.contains("hex escape") || what.contains("surrogate");
        let what = if lone { "half of a surrogate pair stands alone".to_owned() } else { what };
        return LineError { line, column, what };
    }
    if let Some(place) = message.strip_prefix("byte ")
        && let Some((byte, what)) = place.split_once(": ")
    {
        let column = byte.parse::<usize>().unwrap_or(0) + 1;
        return LineError { line, column, what: what.to_owned() };
    }
    let column = text.len() - text.trim_start().len() + 1;
    LineError { line, column, what: message }
}

/// The column of the name of a field of the line's object, or that of the object.
fn column_of(text: &str, field: &str) -> usize {
    let bytes = text.as_bytes();
    let name = format!("\"{field}\"");
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let start = at;
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                let ends = text[(at + 1).min(text.len())..].trim_start().starts_with(':');
                if depth == 1 && ends && text[start..].starts_with(&name) {
                    return start + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    text.len() - text.trim_start().len() + 1
}

/// The fields of a line; what was read is taken out.
struct Fields<'a> {
    map: Map<String, Value>,
    text: &'a str,
    line: u64,
}

impl Fields<'_> {
    fn wrong(&self, field: &str, what: &str) -> LineError {
        let what = format!("{field}: {what}");
        LineError { line: self.line, column: column_of(self.text, field), what }
    }

    fn expected(&self, field: &str, expected: &str, found: &Value) -> LineError {
        let found: String = found.to_string().chars().take(60).collect();
        self.wrong(field, &format!("expected {expected}, found {found}"))
    }

    /// Takes a field out; null counts as absent.
    fn take(&mut self, field: &str) -> Option<Value> {
        self.map.remove(field).filter(|value| !value.is_null())
    }

    fn must(&mut self, field: &str) -> Result<Value, LineError> {
        self.take(field).ok_or_else(|| self.wrong(field, "is missing; every event has one"))
    }

    fn number(&mut self, field: &str) -> Result<u64, LineError> {
        let value = self.must(field)?;
        value.as_u64().ok_or_else(|| self.expected(field, "a whole number", &value))
    }

    fn string(&mut self, field: &str) -> Result<String, LineError> {
        match self.must(field)? {
            Value::String(text) => Ok(text),
            other => Err(self.expected(field, "a text", &other)),
        }
    }

    fn text(&mut self, field: &str) -> Result<SmolStr, LineError> {
        self.string(field).map(SmolStr::from)
    }

    fn parsed<T: std::str::FromStr<Err = crate::error::NameError>>(
        &mut self,
        field: &str,
    ) -> Result<T, LineError> {
        let text = self.string(field)?;
        text.parse().map_err(|error: T::Err| self.wrong(field, &error.to_string()))
    }

    fn payload(&mut self) -> Result<Map<String, Value>, LineError> {
        match self.take("payload") {
            None => Ok(Map::new()),
            Some(Value::Object(map)) => Ok(map),
            Some(other) => Err(self.expected("payload", "an object", &other)),
        }
    }

    fn changes(&mut self) -> Result<Vec<Change>, LineError> {
        let list = match self.take("changes") {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(other) => return Err(self.expected("changes", "a list", &other)),
        };
        let read = |(nth, value)| {
            let change = Change::from_json(value, &format!("changes[{nth}]"));
            change.map_err(|error| place(self.text, self.line, &error))
        };
        list.iter().enumerate().map(read).collect()
    }

    fn key(&mut self) -> Result<Option<SmolStr>, LineError> {
        match self.take("key") {
            None => Ok(None),
            Some(Value::String(key)) => Ok(Some(key.into())),
            Some(other) => Err(self.expected("key", "a text or null", &other)),
        }
    }

    fn salt(&mut self) -> Result<Option<[u8; 16]>, LineError> {
        let Some(salt) = self.take("salt") else { return Ok(None) };
        self.map.insert("salt".to_owned(), salt);
        // A salt has the length and the form of an id.
        self.parsed::<EventId>("salt").map(|salt| Some(*salt.as_bytes()))
    }

    fn cause(&mut self) -> Result<Option<Cause>, LineError> {
        let Some(value) = self.take("cause") else { return Ok(None) };
        const FORM: &str =
            "null, {\"action\": ID} or {\"event\": ID, \"behavior\": NAME, \"match\": [...]}";
        let cause = cause(&value).ok_or_else(|| self.expected("cause", FORM, &value))?;
        Ok(Some(cause))
    }
}

fn cause(value: &Value) -> Option<Cause> {
    let map = value.as_object()?;
    let id = |field: &str| map.get(field)?.as_str()?.parse::<EventId>().ok();
    if map.len() == 1 {
        return Some(Cause::Action { action: id("action")? });
    }
    let row = map.get("match")?.as_array()?.iter().map(bound).collect::<Option<_>>()?;
    let behavior = map.get("behavior")?.as_str()?.into();
    let firing = Cause::Firing { event: id("event")?, behavior, row };
    (map.len() == 3).then_some(firing)
}

fn bound(value: &Value) -> Option<Bound> {
    match value {
        Value::String(id) => Some(Bound::Element(id.as_str().into())),
        Value::Array(ids) => {
            let ids = ids.iter().map(|id| id.as_str().map(SmolStr::from));
            ids.collect::<Option<_>>().map(Bound::Path)
        }
        _ => None,
    }
}
