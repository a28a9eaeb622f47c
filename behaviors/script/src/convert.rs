//! Values of a script as JSON, without loss: what JSON cannot hold is refused by name.

use behaviors::did_you_mean;
use log::DEPTH_MAX;
use serde_json::{Map, Number, Value as Json};
use starlark::values::dict::DictRef;
use starlark::values::float::StarlarkFloat;
use starlark::values::list::ListRef;
use starlark::values::tuple::TupleRef;
use starlark::values::{UnpackValue, Value, ValueLike};

use crate::change::ChangeValue;
use crate::values::{Element, Entries, Object};

/// A value as JSON; `at` names it in messages.
pub(crate) fn to_json(value: Value<'_>, at: &str) -> anyhow::Result<Json> {
    convert(value, &Place { name: at, outer: None }, DEPTH_MAX)
}

/// A dict or an object as JSON.
pub(crate) fn to_map(value: Value<'_>, at: &str) -> anyhow::Result<Map<String, Json>> {
    match to_json(value, at)? {
        Json::Object(map) => Ok(map),
        _ => Err(anyhow::anyhow!("{at} is a dict, found {}", described(value))),
    }
}

/// Where a value stands, for messages: `payload.a[2]`.
struct Place<'a> {
    name: &'a str,
    outer: Option<&'a Place<'a>>,
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.outer {
            Some(outer) => write!(f, "{outer}.{}", self.name),
            None => f.write_str(self.name),
        }
    }
}

fn convert(value: Value<'_>, place: &Place<'_>, depth: usize) -> anyhow::Result<Json> {
    if value.is_none() {
        return Ok(Json::Null);
    }
    if let Some(truth) = value.unpack_bool() {
        return Ok(Json::Bool(truth));
    }
    if let Some(number) = value.unpack_i32() {
        return Ok(Json::Number(number.into()));
    }
    if let Some(text) = value.unpack_str() {
        return Ok(Json::String(text.to_owned()));
    }
    if let Some(StarlarkFloat(number)) = value.downcast_ref::<StarlarkFloat>() {
        return float(*number, place);
    }
    let Some(depth) = depth.checked_sub(1) else {
        let place: String = place.to_string().chars().take(40).collect();
        anyhow::bail!("{place}…: nested more than {DEPTH_MAX} deep; flatten it");
    };
    if let Some(list) = ListRef::from_value(value) {
        return items(list.content(), place, depth);
    }
    if let Some(tuple) = TupleRef::from_value(value) {
        return items(tuple.content(), place, depth);
    }
    if let Some(dict) = DictRef::from_value(value) {
        let mut map = Map::new();
        for (key, value) in dict.iter() {
            let Some(name) = key.unpack_str() else {
                anyhow::bail!("{place}: the key {key} is not a string; write str({key})");
            };
            let inner = Place { name, outer: Some(place) };
            map.insert(name.to_owned(), convert(value, &inner, depth)?);
        }
        return Ok(Json::Object(map));
    }
    if let Some(object) = Object::from_value(value) {
        return Ok(Json::Object(entries_to_map(&object.entries, place, depth)?));
    }
    integer(value, place)
}

fn items(items: &[Value<'_>], place: &Place<'_>, depth: usize) -> anyhow::Result<Json> {
    let item = |(index, item): (usize, &Value<'_>)| {
        // Only a value that can be refused needs its place as text.
        if item.is_none() || item.unpack_str().is_some() || item.unpack_i32().is_some() {
            return convert(*item, place, depth);
        }
        convert(*item, &Place { name: &index.to_string(), outer: Some(place) }, depth)
    };
    Ok(Json::Array(items.iter().enumerate().map(item).collect::<anyhow::Result<_>>()?))
}

fn entries_to_map(
    entries: &Entries,
    place: &Place<'_>,
    depth: usize,
) -> anyhow::Result<Map<String, Json>> {
    let mut map = Map::new();
    for (name, value) in entries {
        let inner = Place { name: name.as_str(), outer: Some(place) };
        map.insert(name.as_str().to_owned(), convert(value.to_value(), &inner, depth)?);
    }
    Ok(map)
}

fn float(number: f64, place: &Place<'_>) -> anyhow::Result<Json> {
    let name = if number.is_nan() { "NaN" } else { "infinity" };
    Number::from_f64(number).map(Json::Number).ok_or_else(|| {
        anyhow::anyhow!("{place}: {name} cannot be stored; test for it and emit what it means")
    })
}

/// An integer over 32 bits, or what cannot be stored.
fn integer(value: Value<'_>, place: &Place<'_>) -> anyhow::Result<Json> {
    if let Ok(Some(number)) = i64::unpack_value(value) {
        return Ok(Json::Number(number.into()));
    }
    if let Ok(Some(number)) = u64::unpack_value(value) {
        return Ok(Json::Number(number.into()));
    }
    if value.get_type() == "int" {
        anyhow::bail!(
            "{place}: the integer {value} fits neither 64 bits nor JSON; use str({value})"
        );
    }
    if let Some(element) = Element::from_value(value) {
        anyhow::bail!("{place}: {element} is an element; write its id, x.id");
    }
    if value.downcast_ref::<ChangeValue>().is_some() {
        anyhow::bail!(
            "{place}: a change is given to emit after the payload, and what it makes has no id \
             yet; choose one with id = \"…\" if the payload must name it"
        );
    }
    anyhow::bail!("{place}: {} cannot be stored; write it as text or as a dict", described(value))
}

/// A value and its type, short.
pub(crate) fn described(value: Value<'_>) -> String {
    let text: String = value.to_repr().chars().take(60).collect();
    format!("{text} of type {}", value.get_type())
}

/// An unknown name, with what was perhaps meant.
pub(crate) fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    let hint = did_you_mean(name, known.clone());
    let list = known.into_iter().collect::<Vec<_>>().join(", ");
    let hint = if hint.is_empty() { format!("; there is {list}") } else { hint };
    format!("{what} `{name}` is not known{hint}")
}
