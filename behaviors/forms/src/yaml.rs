//! YAML as JSON, with the place of every key. What JSON cannot hold is refused.

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};
use serde_json::{Map, Number, Value};

use crate::file::Place;

/// What is wrong with a text, and where in it.
pub(crate) type Wrong = (Place, String);

/// Fields and their places, in lines and columns of the text.
pub(crate) type Fields = (Map<String, Value>, BTreeMap<String, Place>);

/// Reads an object.
pub(crate) fn read(text: &str) -> Result<Fields, Wrong> {
    let documents = MarkedYaml::load_from_str(text).map_err(|error| {
        let marker = error.marker();
        ((marker.line(), marker.col() + 1), error.info().to_owned())
    })?;
    let mut places = BTreeMap::new();
    let Some(node) = documents.first() else { return Ok((Map::new(), places)) };
    match json(node, "", &mut places)? {
        Value::Object(map) => Ok((map, places)),
        Value::Null => Ok((Map::new(), places)),
        _ => Err((place(node), "expected fields, such as `description: …`".to_owned())),
    }
}

fn place(node: &MarkedYaml<'_>) -> Place {
    (node.span.start.line(), node.span.start.col() + 1)
}

fn json(
    node: &MarkedYaml<'_>,
    path: &str,
    places: &mut BTreeMap<String, Place>,
) -> Result<Value, Wrong> {
    let bad = |what: &str| Err((place(node), what.to_owned()));
    Ok(match &node.data {
        YamlData::Value(Scalar::Null) => Value::Null,
        YamlData::Value(Scalar::Boolean(truth)) => Value::Bool(*truth),
        YamlData::Value(Scalar::Integer(number)) => Value::from(*number),
        YamlData::Value(Scalar::FloatingPoint(number)) => match Number::from_f64(number.0) {
            Some(number) => Value::Number(number),
            None => return bad("this number cannot be stored"),
        },
        YamlData::Value(Scalar::String(text)) => Value::from(text.as_ref()),
        YamlData::Sequence(items) => {
            let item = |(nth, item)| json(item, &format!("{path}[{nth}]"), places);
            Value::Array(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
        }
        YamlData::Mapping(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let YamlData::Value(Scalar::String(name)) = &key.data else {
                    return Err((place(key), "a key is a text; put it in quotes".to_owned()));
                };
                let inner =
                    if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
                places.insert(inner.clone(), place(key));
                let value = json(value, &inner, places)?;
                if map.insert(name.to_string(), value).is_some() {
                    return Err((place(key), format!("`{name}` is there twice")));
                }
            }
            Value::Object(map)
        }
        YamlData::Tagged(..) => return bad("tags are not read here; write the plain value"),
        YamlData::Alias(_) => return bad("aliases are not read here; write the value again"),
        YamlData::Representation(..) | YamlData::BadValue => return bad("this is no value"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_those_of_json_and_keys_have_their_places() {
        let text = "a: 1\nb:\n  c: [x, 'yes', no, 1.5, null]\n  d: {e: \"f\"}\n";
        let (map, places) = read(text).expect("it reads");
        let expected = json!({"a": 1, "b": {"c": ["x", "yes", "no", 1.5, null], "d": {"e": "f"}}});
        assert_eq!(Value::Object(map), expected);
        assert_eq!((places["a"], places["b.c"], places["b.d.e"]), ((1, 1), (3, 3), (4, 7)));
    }

    #[test]
    fn what_is_no_json_is_refused_at_its_place() {
        let wrong = |text: &str| read(text).expect_err("it is wrong");
        assert_eq!(wrong("a: 1\n- b\n").0.0, 2);
        assert_eq!(wrong("a: 1\n2: b\n").0, (2, 1));
        assert_eq!(wrong("- a\n").1, "expected fields, such as `description: …`");
    }
}
