//! JSON text into values, refusing by name what JSON readers usually let pass: a key that stands
//! twice, an integer that would be rounded, and nesting without end.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::DEPTH_MAX;
use crate::error::EventError;

/// Reads a JSON object from text.
///
/// # Errors
/// Not JSON (a lone surrogate escape, too, and NaN or infinity), not an object, a key twice, an
/// integer that fits neither `i64` nor `u64`, or nested more than 64 deep.
pub fn parse_object(text: &str) -> Result<Map<String, Value>, EventError> {
    refuse_wide_integers(text)?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let json = |error: serde_json::Error| name_the_fault(text, &error);
    let value = Seed { depth: DEPTH_MAX + 2 }.deserialize(&mut reader).map_err(json)?;
    reader.end().map_err(json)?;
    match value {
        Value::Object(map) => Ok(map),
        other => Err(EventError::Json { message: format!("expected an object, found {other}") }),
    }
}

/// Says which word it was where JSON has no word for a number.
fn name_the_fault(text: &str, error: &serde_json::Error) -> EventError {
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or("");
    let at = format!("line {} column {}", error.line(), error.column());
    let from = error.column().saturating_sub(2);
    let rest = line.get(from..).unwrap_or("").trim_start_matches('-');
    for (word, number) in [("NaN", "NaN"), ("nan", "NaN"), ("Inf", "infinity"), ("inf", "infinity")]
    {
        if rest.starts_with(word) || rest.get(1..).is_some_and(|rest| rest.starts_with(word)) {
            return EventError::NotFinite { at, number };
        }
    }
    let message = error.to_string();
    if message.starts_with("number out of range") {
        return EventError::NotFinite { at, number: "infinity" };
    }
    if let Some((_, key)) = message.split_once(TWICE) {
        let key = key.rsplit_once(" at line").map_or(key, |(key, _)| key);
        return EventError::DuplicateKey { at, key: key.to_owned() };
    }
    if message.contains(DEEP) || message.contains("recursion limit") {
        return EventError::TooDeep { at, limit: DEPTH_MAX };
    }
    EventError::Json { message }
}

/// `serde_json` rounds an integer over 64 bits to a float. Here it is refused.
fn refuse_wide_integers(text: &str) -> Result<(), EventError> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let start = at;
                at += 1;
                while at < bytes.len()
                    && matches!(bytes[at], b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')
                {
                    at += 1;
                }
                let digits = &text[start..at];
                let whole = !digits.contains(['.', 'e', 'E']);
                let wide = whole && digits.len() > 18;
                if wide && digits.parse::<i64>().is_err() && digits.parse::<u64>().is_err() {
                    let at = format!("byte {start}");
                    return Err(EventError::IntegerRange { at, digits: digits.to_owned() });
                }
            }
            _ => at += 1,
        }
    }
    Ok(())
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

const TWICE: &str = "key twice: ";
const DEEP: &str = "nested too deep";

/// Builds a value, counting how deep it may still go.
#[derive(Clone, Copy)]
struct Seed {
    depth: usize,
}

impl Seed {
    fn deeper<E: Error>(self) -> Result<Seed, E> {
        let depth = self.depth.checked_sub(1).ok_or_else(|| E::custom(DEEP))?;
        Ok(Seed { depth })
    }
}

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(inner)?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("{TWICE}{key}")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
