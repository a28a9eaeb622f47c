//! Excerpts of what the world said: the whole of a long text is a blob of the log, of which a
//! behavior sees the first bytes. Beside it stands what it is mostly read for: its beginning, its
//! end and the lines that tell of errors.

use serde_json::{Map, Value};

/// How many texts of one answer have an excerpt.
const EXCERPTS_MAX: usize = 16;

/// The excerpts of the long texts in `result` and `error`, each under the path that leads there,
/// such as `/result/stdout`; nothing where no text is long.
pub(super) fn of(payload: &Value) -> Option<Value> {
    let mut found = Map::new();
    for part in ["result", "error"] {
        if let Some(value) = payload.get(part) {
            collect(value, &format!("/{part}"), &mut found);
        }
    }
    (!found.is_empty()).then_some(Value::Object(found))
}

fn collect(value: &Value, path: &str, found: &mut Map<String, Value>) {
    match value {
        Value::String(text) if found.len() < EXCERPTS_MAX => {
            if let Some(short) = effect::excerpt(text) {
                found.insert(path.to_owned(), Value::String(short));
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                collect(item, &format!("{path}/{place}"), found);
            }
        }
        Value::Object(map) => {
            for (name, item) in map {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(item, &format!("{path}/{name}"), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_long_text_has_an_excerpt_under_its_path() {
        let long = "x".repeat(5000);
        assert_eq!(of(&json!({"result": {"text": "short"}, "args": long})), None);
        let payload = json!({"result": {"a/b": [1, long]}, "error": {"output": long}});
        let found = of(&payload).expect("two are long");
        let paths: Vec<&String> = found.as_object().expect("an object").keys().collect();
        assert_eq!(paths, ["/error/output", "/result/a~1b/1"]);
        for path in paths {
            assert_eq!(payload.pointer(path), Some(&json!(long)));
        }
        let many = of(&json!({"result": vec![long; 40]})).expect("all are long");
        assert_eq!(many.as_object().map(Map::len), Some(EXCERPTS_MAX));
    }
}
