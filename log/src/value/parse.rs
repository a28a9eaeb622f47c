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
    if text.contains(NUMBER) {
        let message = format!("the key `{NUMBER}` has a meaning of its own and cannot be stored");
        return Err(EventError::Json { message });
    }
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
    if message.starts_with(INFINITE) {
        return EventError::NotFinite { at, number: "infinity" };
    }
    if let Some((_, digits)) = message.split_once(WIDE) {
        let digits = digits.rsplit_once(" at line").map_or(digits, |(digits, _)| digits);
        let start = (error.column() + 1).saturating_sub(digits.len());
        let at = format!("line {} column {start}", error.line());
        return EventError::IntegerRange { at, digits: digits.to_owned() };
    }
    if let Some((_, key)) = message.split_once(TWICE) {
        let key = key.rsplit_once(" at line").map_or(key, |(key, _)| key);
        return EventError::DuplicateKey { at, key: key.to_owned() };
    }
    if message.contains(DEEP) || message.contains("recursion limit") {
        return EventError::TooDeep { at, limit: DEPTH_MAX };
    }
    if message.contains("surrogate") || message.contains("end of hex escape") {
        let message = format!("{at}: a \\u escape that is half of a surrogate pair is no text");
        return EventError::Json { message };
    }
    EventError::Json { message }
}

const TWICE: &str = "key twice: ";
const DEEP: &str = "nested too deep";
const WIDE: &str = "integer too wide: ";
const INFINITE: &str = "number out of range";
/// How `serde_json`, when it keeps the digits of numbers, hands one over: an object with this key.
const NUMBER: &str = "$serde_json::private::Number";

/// The number that these digits are, exactly.
fn number<E: Error>(digits: &str) -> Result<Value, E> {
    if !digits.contains(['.', 'e', 'E']) && digits != "-0" {
        let small = digits.parse::<i64>().map(Number::from);
        let number = small.or_else(|_| digits.parse::<u64>().map(Number::from));
        return number.map(Value::Number).map_err(|_| E::custom(format!("{WIDE}{digits}")));
    }
    let float = digits.parse::<f64>().ok().and_then(Number::from_f64);
    float.map(Value::Number).ok_or_else(|| E::custom(INFINITE))
}

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
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom(INFINITE))
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
            if key == NUMBER {
                return number(&entries.next_value::<String>()?);
            }
            let value = entries.next_value_seed(inner)?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("{TWICE}{key}")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = parse_object(text).map(|map| Value::Object(map).to_string());
        assert_eq!(found.unwrap_or_else(|error| error.to_string()), expected, "{text}");
    }

    #[test]
    fn numbers_keep_their_value_and_their_kind() {
        check(
            r#"{"a":[1,1.0,-0.0,18446744073709551615]}"#,
            r#"{"a":[1,1.0,-0.0,18446744073709551615]}"#,
        );
        check(r#"{"a":0.1e1}"#, r#"{"a":1.0}"#);
        check(r#"{"a":-9223372036854775808}"#, r#"{"a":-9223372036854775808}"#);
    }

    #[test]
    fn what_would_be_changed_silently_is_refused_by_name() {
        let refused = |text: &str, expected: &str| {
            let error = parse_object(text).expect_err("it is refused").to_string();
            assert!(error.starts_with("line 1 column ") && error.contains(expected), "{error}");
        };
        refused(r#"{"a":18446744073709551616}"#, "18446744073709551616 fits neither i64 nor u64");
        refused(r#"{"a":1e400}"#, "infinity is not a JSON number");
        refused(r#"{"a":NaN}"#, "NaN is not a JSON number");
        refused(r#"{"a":-Infinity}"#, "infinity is not a JSON number");
        refused(r#"{"a":1,"a":2}"#, "the key `a` stands twice; keep one of them");
        for lone in [r#"{"a":"\ud800"}"#, r#"{"a":"\ud800x"}"#, r#"{"a":"\udc00\ud800"}"#] {
            let error = parse_object(lone).expect_err("it is refused").to_string();
            assert!(error.contains("half of a surrogate pair"), "{error}");
        }
    }

    #[test]
    fn nesting_ends_at_sixty_four() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse_object(&nested(63)).is_ok());
        for depth in [66, 100, 100_000] {
            let error = parse_object(&nested(depth)).expect_err("too deep");
            assert!(matches!(error, EventError::TooDeep { .. }), "{error}");
        }
    }
}
