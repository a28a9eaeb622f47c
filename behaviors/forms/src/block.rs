//! The block of metadata in an executable: TOML in a comment, between two markers.
//!
//! ```text
//! # /// starling
//! # description = "Counts the words of a note."
//! # on = "note.added"
//! # ///
//! ```
//!
//! What stands before the first marker is the sign of a comment, whatever the language has:
//! `#`, `//`, `--`, `;`, `%`. Every line of the block begins with it.

use std::collections::BTreeMap;

use behaviors::ReactError;
use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::file::{Place, Said, error_at, place_of};

const OPENS: &str = "/// starling";
const CLOSES: &str = "///";

/// Whether a text has a block of metadata, well formed or not.
#[must_use]
pub fn has_block(text: &str) -> bool {
    text.lines().any(|line| sign(line).is_some())
}

/// The comment sign of a line that opens a block.
fn sign(line: &str) -> Option<&str> {
    let sign = line.trim().strip_suffix(OPENS)?.trim();
    let short = !sign.is_empty() && sign.len() <= 4;
    (short && !sign.contains(|c: char| c.is_alphanumeric() || c == '"')).then_some(sign)
}

/// Reads the block of a file.
///
/// # Errors
/// There is none, it does not end, or it is no TOML: with line and column.
pub(crate) fn read<'t>(path: &'t str, text: &'t str) -> Result<Said<'t>, ReactError> {
    let (toml, start) = cut(path, text)?;
    let bad = |error: &toml::de::Error| {
        let place = error.span().map_or(start, |span| place_of(&toml, span.start));
        error_at(path, text, place, error.message())
    };
    let table = DeTable::parse(&toml).map_err(|error| bad(&error))?;
    let mut places = BTreeMap::new();
    note_places(table.get_ref(), "", &toml, &mut places);
    let values: toml::Table = toml::from_str(&toml).map_err(|error| bad(&error))?;
    let fields = json_table(&values, "").map_err(|(field, what)| {
        let place = places.get(&field).copied().unwrap_or(start);
        error_at(path, text, place, format!("{field}: {what}"))
    })?;
    Ok(Said { path, text, fields, places, start })
}

/// The TOML of the block, each character at its line and column in the file.
fn cut(path: &str, text: &str) -> Result<(String, Place), ReactError> {
    let opens = text.lines().enumerate().find_map(|(at, line)| Some((at, sign(line)?)));
    let Some((first, sign)) = opens else {
        let what = "an executable in `behaviors` says what it is in a comment: a line `# /// starling`, \
                    lines such as `# description = \"…\"` and `# on = \"note.added\"`, and a line \
                    `# ///` (with the comment sign of its language)";
        return Err(error_at(path, text, (1, 1), what));
    };
    let mut toml = "\n".repeat(first + 1);
    for (at, line) in text.lines().enumerate().skip(first + 1) {
        let indent = line.len() - line.trim_start().len();
        let Some(rest) = line.trim_start().strip_prefix(sign) else {
            let what = format!("the block of metadata is not closed; write a line `{sign} ///`");
            return Err(error_at(path, text, (at + 1, 1), what));
        };
        if rest.trim() == CLOSES {
            return Ok((toml, (first + 1, 1)));
        }
        toml.push_str(&" ".repeat(indent + sign.chars().count()));
        toml.push_str(rest);
        toml.push('\n');
    }
    let what = format!("the block of metadata is not closed; write a line `{sign} ///`");
    Err(error_at(path, text, (first + 1, 1), what))
}

fn note_places(table: &DeTable<'_>, outer: &str, toml: &str, places: &mut BTreeMap<String, Place>) {
    for (key, value) in table {
        let key: &Spanned<_> = key;
        let path = match outer {
            "" => key.get_ref().to_string(),
            outer => format!("{outer}.{}", key.get_ref()),
        };
        places.insert(path.clone(), place_of(toml, key.span().start));
        if let DeValue::Table(inner) = value.get_ref() {
            note_places(inner, &path, toml, places);
        }
    }
}

type Wrong = (String, String);

fn json_table(table: &toml::Table, outer: &str) -> Result<Map<String, Value>, Wrong> {
    let entry = |(name, value): (&String, &toml::Value)| {
        let path = if outer.is_empty() { name.clone() } else { format!("{outer}.{name}") };
        Ok((name.clone(), json(value, &path)?))
    };
    table.iter().map(entry).collect()
}

fn json(value: &toml::Value, path: &str) -> Result<Value, Wrong> {
    Ok(match value {
        toml::Value::String(text) => Value::from(text.as_str()),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Float(number) => {
            Number::from_f64(*number).map(Value::Number).ok_or_else(|| {
                (path.to_owned(), format!("{number} is no number that can be stored"))
            })?
        }
        toml::Value::Boolean(truth) => Value::Bool(*truth),
        toml::Value::Datetime(date) => Value::from(date.to_string()),
        toml::Value::Array(items) => {
            Value::Array(items.iter().map(|item| json(item, path)).collect::<Result<_, _>>()?)
        }
        toml::Value::Table(table) => Value::Object(json_table(table, path)?),
    })
}
