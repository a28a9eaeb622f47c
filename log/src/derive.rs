//! `H`: how an id is derived from what an event is, so that the same derivation has the same id
//! on any branch, in any store and in any language.
//!
//! `H(parts)` is the first 128 bits of BLAKE3 over the canonical JSON of the list of its parts:
//! keys sorted, no white space, text as UTF-8 with only the escapes that JSON demands. It never
//! contains an offset, a branch, a time or a hash of code.

use std::io::Write;

use serde_json::Value;

use crate::id::EventId;

/// Collects the parts of one derivation.
///
/// ```
/// use log::Derivation;
/// let id = Derivation::new().text("start").integer(7).finish();
/// assert_eq!(id, Derivation::new().text("start").integer(7).finish());
/// assert_ne!(id, Derivation::new().text("start").text("7").finish());
/// ```
#[derive(Debug)]
pub struct Derivation {
    json: Vec<u8>,
}

impl Default for Derivation {
    fn default() -> Self {
        Self::new()
    }
}

impl Derivation {
    /// No parts yet.
    #[must_use]
    pub fn new() -> Self {
        let mut json = Vec::with_capacity(192);
        json.push(b'[');
        Derivation { json }
    }

    /// The next part is a text.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.comma();
        write_text(&mut self.json, text);
        self
    }

    /// The next part is an id, written as its digits.
    #[must_use]
    pub fn id(mut self, id: &EventId) -> Self {
        self.comma();
        self.json.push(b'"');
        self.json.extend_from_slice(id.hex().as_str().as_bytes());
        self.json.push(b'"');
        self
    }

    /// The next part is a whole number.
    #[must_use]
    pub fn integer(mut self, number: u64) -> Self {
        self.comma();
        write!(self.json, "{number}").expect("a Vec takes every write");
        self
    }

    /// The next part is null.
    #[must_use]
    pub fn null(mut self) -> Self {
        self.comma();
        self.json.extend_from_slice(b"null");
        self
    }

    /// The next part is any JSON value.
    #[must_use]
    pub fn json(mut self, value: &Value) -> Self {
        self.comma();
        serde_json::to_writer(&mut self.json, value).expect("a Vec takes every write");
        self
    }

    /// The next part is a list of texts and lists of texts, as a match is.
    #[must_use]
    pub fn list(mut self, parts: impl FnOnce(Derivation) -> Derivation) -> Self {
        self.comma();
        self.json.push(b'[');
        self = parts(self);
        self.json.push(b']');
        self
    }

    /// The id.
    #[must_use]
    pub fn finish(mut self) -> EventId {
        self.json.push(b']');
        let hash = blake3::hash(&self.json);
        let (first, _) = hash.as_bytes().split_first_chunk::<16>().expect("a hash has 32 bytes");
        EventId::from_bytes(*first)
    }

    fn comma(&mut self) {
        if !matches!(self.json.last(), Some(b'[')) {
            self.json.push(b',');
        }
    }
}

/// Writes a JSON string.
fn write_text(out: &mut Vec<u8>, text: &str) {
    let plain = |b: u8| b >= 0x20 && b != b'"' && b != b'\\';
    if text.bytes().all(plain) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        serde_json::to_writer(out, text).expect("a Vec takes every write");
    }
}

/// The id of the element that change number `index` of an event makes: `type#` and 32 digits.
#[must_use]
pub fn element_id(type_name: &str, event: &EventId, index: usize) -> String {
    let derived = Derivation::new().id(event).integer(index as u64).finish();
    format!("{type_name}#{}", derived.hex().as_str())
}

/// The id of an ensured edge: it is named by its type and its ends.
#[must_use]
pub fn ensured_edge_id(type_name: &str, from: &str, to: &str) -> String {
    let derived = Derivation::new().text(from).text(type_name).text(to).finish();
    format!("{type_name}#{}", derived.hex().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_over_canonical_json() {
        let whole = serde_json::json!(["é\n\"", null, 3, ["x", ["y"]], {"a": 1.5, "b": []}]);
        let parts = Derivation::new().text("é\n\"").null().integer(3);
        let parts = parts.list(|d| d.text("x").list(|d| d.text("y")));
        let parts = parts.json(&serde_json::json!({"b": [], "a": 1.5}));
        let expected = blake3::hash(whole.to_string().as_bytes());
        assert_eq!(parts.finish().as_bytes(), &expected.as_bytes()[..16]);
    }
}
