//! What a script sees: elements, objects and the event, as Starlark values that cannot be changed.
//!
//! A missing property is None. Lists are real lists on the frozen heap, so that a script that tries
//! to change one is told so; objects give their entries as attributes, `event.payload.trip.city`.

use std::fmt;

use allocative::Allocative;
use log::{MapRef, ValueRef};
use starlark::any::ProvidesStaticType;
use starlark::collections::StarlarkHasher;
use starlark::starlark_simple_value;
use starlark::values::dict::DictRef;
use starlark::values::list::AllocList;
use starlark::values::{
    FrozenHeap, FrozenStringValue, FrozenValue, Heap, NoSerialize, StarlarkValue, Value,
    starlark_value,
};

/// The entries of an object or the properties of an element, by name.
pub(crate) type Entries = Box<[(FrozenStringValue, FrozenValue)]>;

/// A node or an edge.
#[derive(Debug, ProvidesStaticType, NoSerialize, Allocative)]
pub(crate) struct Element {
    pub(crate) id: FrozenStringValue,
    pub(crate) type_name: FrozenStringValue,
    /// Of an edge: from where to where.
    pub(crate) ends: Option<(FrozenStringValue, FrozenStringValue)>,
    pub(crate) properties: Entries,
}

/// A JSON object.
#[derive(Debug, ProvidesStaticType, NoSerialize, Allocative)]
pub(crate) struct Object {
    pub(crate) entries: Entries,
}

starlark_simple_value!(Element);
starlark_simple_value!(Object);

fn find(entries: &Entries, name: &str) -> Option<FrozenValue> {
    entries.iter().find(|(key, _)| key.as_str() == name).map(|(_, value)| *value)
}

fn names(entries: &Entries) -> Vec<String> {
    entries.iter().map(|(key, _)| key.as_str().to_owned()).collect()
}

/// The name in `x["name"]`.
fn key<'v>(index: Value<'v>) -> starlark::Result<&'v str> {
    index.unpack_str().ok_or_else(|| {
        starlark::Error::new_other(anyhow::anyhow!(
            "a property is named by a string, not by {} of type {}",
            index,
            index.get_type()
        ))
    })
}

fn no_change<T>() -> starlark::Result<T> {
    Err(starlark::Error::new_other(anyhow::anyhow!(
        "what a reaction sees cannot be changed in place; emit an event with \
         set(x, name = value) instead"
    )))
}

#[starlark_value(type = "element")]
impl<'v> StarlarkValue<'v> for Element {
    fn get_attr(&self, attribute: &str, _heap: Heap<'v>) -> Option<Value<'v>> {
        Some(match attribute {
            "id" => self.id.to_value(),
            "type" => self.type_name.to_value(),
            name => find(&self.properties, name).map_or(Value::new_none(), FrozenValue::to_value),
        })
    }

    fn has_attr(&self, attribute: &str, _heap: Heap<'v>) -> bool {
        matches!(attribute, "id" | "type") || find(&self.properties, attribute).is_some()
    }

    fn dir_attr(&self) -> Vec<String> {
        let mut all = names(&self.properties);
        all.extend(["id".to_owned(), "type".to_owned()]);
        all
    }

    fn at(&self, index: Value<'v>, _heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        let found = find(&self.properties, key(index)?);
        Ok(found.map_or(Value::new_none(), FrozenValue::to_value))
    }

    fn is_in(&self, other: Value<'v>) -> starlark::Result<bool> {
        Ok(find(&self.properties, key(other)?).is_some())
    }

    fn equals(&self, other: Value<'v>) -> starlark::Result<bool> {
        Ok(Element::from_value(other).is_some_and(|other| other.id == self.id))
    }

    fn write_hash(&self, hasher: &mut StarlarkHasher) -> starlark::Result<()> {
        std::hash::Hash::hash(self.id.as_str(), hasher);
        Ok(())
    }

    fn set_at(&self, _index: Value<'v>, _new: Value<'v>) -> starlark::Result<()> {
        no_change()
    }

    fn set_attr(&self, _attribute: &str, _new: Value<'v>) -> starlark::Result<()> {
        no_change()
    }
}

#[starlark_value(type = "object")]
impl<'v> StarlarkValue<'v> for Object {
    fn get_attr(&self, attribute: &str, _heap: Heap<'v>) -> Option<Value<'v>> {
        Some(find(&self.entries, attribute).map_or(Value::new_none(), FrozenValue::to_value))
    }

    fn has_attr(&self, attribute: &str, _heap: Heap<'v>) -> bool {
        find(&self.entries, attribute).is_some()
    }

    fn dir_attr(&self) -> Vec<String> {
        names(&self.entries)
    }

    fn at(&self, index: Value<'v>, _heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        let found = find(&self.entries, key(index)?);
        Ok(found.map_or(Value::new_none(), FrozenValue::to_value))
    }

    fn is_in(&self, other: Value<'v>) -> starlark::Result<bool> {
        Ok(find(&self.entries, key(other)?).is_some())
    }

    fn length(&self) -> starlark::Result<i32> {
        Ok(i32::try_from(self.entries.len()).expect("an object fits one event"))
    }

    fn to_bool(&self) -> bool {
        !self.entries.is_empty()
    }

    fn iterate_collect(&self, _heap: Heap<'v>) -> starlark::Result<Vec<Value<'v>>> {
        Ok(self.entries.iter().map(|(key, _)| key.to_value()).collect())
    }

    fn equals(&self, other: Value<'v>) -> starlark::Result<bool> {
        let same = |name: &str, value: Value<'v>| match find(&self.entries, name) {
            Some(own) => own.to_value().equals(value),
            None => Ok(false),
        };
        if let Some(other) = Object::from_value(other) {
            let mut pairs = other.entries.iter();
            let equal = pairs.try_fold(true, |so_far, (name, value)| {
                Ok::<_, starlark::Error>(so_far && same(name.as_str(), value.to_value())?)
            })?;
            return Ok(equal && other.entries.len() == self.entries.len());
        }
        let Some(other) = DictRef::from_value(other) else { return Ok(false) };
        if other.iter().len() != self.entries.len() {
            return Ok(false);
        }
        for (name, value) in other.iter() {
            if !name.unpack_str().map_or(Ok(false), |name| same(name, value))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn set_at(&self, _index: Value<'v>, _new: Value<'v>) -> starlark::Result<()> {
        no_change()
    }

    fn set_attr(&self, _attribute: &str, _new: Value<'v>) -> starlark::Result<()> {
        no_change()
    }
}

/// Makes a type whose names are known, so that another one is an error.
macro_rules! known_names {
    ($(#[$doc:meta])* $name:ident, $type:literal) => {
        $(#[$doc])*
        #[derive(Debug, ProvidesStaticType, NoSerialize, Allocative)]
        pub(crate) struct $name {
            pub(crate) entries: Entries,
        }

        starlark_simple_value!($name);

        #[starlark_value(type = $type)]
        impl<'v> StarlarkValue<'v> for $name {
            fn get_attr(&self, attribute: &str, _heap: Heap<'v>) -> Option<Value<'v>> {
                find(&self.entries, attribute).map(FrozenValue::to_value)
            }

            fn dir_attr(&self) -> Vec<String> {
                names(&self.entries)
            }

            fn at(&self, index: Value<'v>, _heap: Heap<'v>) -> starlark::Result<Value<'v>> {
                known(&self.entries, key(index)?, $type)
            }

            fn is_in(&self, other: Value<'v>) -> starlark::Result<bool> {
                Ok(find(&self.entries, key(other)?).is_some())
            }

            fn iterate_collect(&self, _heap: Heap<'v>) -> starlark::Result<Vec<Value<'v>>> {
                Ok(self.entries.iter().map(|(key, _)| key.to_value()).collect())
            }

            fn set_attr(&self, _attribute: &str, _new: Value<'v>) -> starlark::Result<()> {
                no_change()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_entries(f, &self.entries)
            }
        }
    };
}

known_names! {
    /// The event that woke the behavior.
    Event, "event"
}
known_names! {
    /// The settings of the flock.
    Settings, "settings"
}

fn known<'v>(entries: &Entries, name: &str, what: &str) -> starlark::Result<Value<'v>> {
    find(entries, name).map(FrozenValue::to_value).ok_or_else(|| {
        let hint = behaviors::did_you_mean(name, entries.iter().map(|(key, _)| key.as_str()));
        starlark::Error::new_other(anyhow::anyhow!("`{what}` has no `{name}`{hint}"))
    })
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.type_name.as_str(), self.id.as_str())
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_entries(f, &self.entries)
    }
}

fn write_entries(f: &mut fmt::Formatter<'_>, entries: &Entries) -> fmt::Result {
    f.write_str("{")?;
    for (place, (key, value)) in entries.iter().enumerate() {
        let comma = if place > 0 { ", " } else { "" };
        write!(f, "{comma}{}: {}", key.to_value().to_repr(), value.to_value().to_repr())?;
    }
    f.write_str("}")
}

/// The entries of a stored object on the frozen heap.
pub(crate) fn entries(map: MapRef<'_>, heap: &FrozenHeap) -> Entries {
    map.iter().map(|(key, value)| (heap.alloc_str(key), stored(value, heap))).collect()
}

/// A stored value on the frozen heap.
fn stored(value: ValueRef<'_>, heap: &FrozenHeap) -> FrozenValue {
    match value {
        ValueRef::Null => FrozenValue::new_none(),
        ValueRef::Bool(truth) => FrozenValue::new_bool(truth),
        ValueRef::Int(number) => heap.alloc(number),
        ValueRef::UInt(number) => heap.alloc(number),
        ValueRef::Float(number) => heap.alloc(number),
        ValueRef::String(text) => heap.alloc_str(text).to_frozen_value(),
        ValueRef::List(list) => {
            let items: Vec<FrozenValue> = list.iter().map(|item| stored(item, heap)).collect();
            heap.alloc(AllocList(items))
        }
        ValueRef::Map(map) => heap.alloc(Object { entries: entries(map, heap) }),
        // A long text is seen as what stands for it, which is stored again as the same text.
        ValueRef::Blob(blob) => json(&blob.to_json(), heap),
    }
}

/// A JSON value on the frozen heap.
pub(crate) fn json(value: &serde_json::Value, heap: &FrozenHeap) -> FrozenValue {
    use serde_json::Value as Json;
    match value {
        Json::Null => FrozenValue::new_none(),
        Json::Bool(truth) => FrozenValue::new_bool(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => heap.alloc(number),
            (None, Some(number)) => heap.alloc(number),
            (None, None) => heap.alloc(number.as_f64().expect("a JSON number is one of the three")),
        },
        Json::String(text) => heap.alloc_str(text).to_frozen_value(),
        Json::Array(items) => {
            let items: Vec<FrozenValue> = items.iter().map(|item| json(item, heap)).collect();
            heap.alloc(AllocList(items))
        }
        Json::Object(map) => heap.alloc(Object { entries: json_entries(map, heap) }),
    }
}

/// The entries of a JSON object on the frozen heap.
pub(crate) fn json_entries(
    map: &serde_json::Map<String, serde_json::Value>,
    heap: &FrozenHeap,
) -> Entries {
    map.iter().map(|(key, value)| (heap.alloc_str(key), json(value, heap))).collect()
}
