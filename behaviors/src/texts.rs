//! Long texts: what is seen of one is its beginning and its hash; the whole is found here.

use std::fmt;

use serde_json::{Map, Value};

/// Finds a text by its hash.
type Find<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// Finds long texts by their hash. A text never changes under its hash, so finding one is no look
/// at the world.
#[derive(Clone, Copy, Default)]
pub struct Texts<'a>(Option<Find<'a>>);

impl<'a> Texts<'a> {
    /// Finds none.
    #[must_use]
    pub fn none() -> Self {
        Texts(None)
    }

    /// Finds them so.
    #[must_use]
    pub fn of(find: Find<'a>) -> Self {
        Texts(Some(find))
    }

    /// A value with its long texts in place; one that is not found stays what stands for it.
    #[must_use]
    pub fn whole(&self, value: Value) -> Value {
        match value {
            Value::Object(map) => match self.text(&map) {
                Some(text) => Value::String(text),
                None => map.into_iter().map(|(k, v)| (k, self.whole(v))).collect(),
            },
            Value::Array(items) => items.into_iter().map(|item| self.whole(item)).collect(),
            other => other,
        }
    }

    /// The text that an object stands for, if it stands for one and that is found.
    fn text(&self, map: &Map<String, Value>) -> Option<String> {
        let find = self.0.filter(|_| map.len() == 3 && map.contains_key("size"))?;
        find(map.get("$blob")?.as_str()?)
    }
}

impl fmt::Debug for Texts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Texts" } else { "no Texts" })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_stands_for_a_text_is_the_text_wherever_it_is() {
        let find = |hash: &str| (hash == "h").then(|| "long".to_owned());
        let texts = Texts::of(&find);
        let blob = |hash: &str| json!({"$blob": hash, "head": "l", "size": 5000});
        let seen = json!({"a": [blob("h")], "b": blob("x"), "c": {"$blob": "h"}});
        let whole = json!({"a": ["long"], "b": blob("x"), "c": {"$blob": "h"}});
        assert_eq!(texts.whole(seen.clone()), whole);
        assert_eq!(Texts::none().whole(seen.clone()), seen);
    }
}
