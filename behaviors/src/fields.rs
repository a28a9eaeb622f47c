//! Reads the fields of a JSON object by name and type, and refuses what is left over.

use serde_json::{Map, Value};

use crate::error::MetadataError;
use crate::suggest::did_you_mean;

/// An object under reading.
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    at: &'a str,
    known: &'static [&'static str],
}

impl<'a> Fields<'a> {
    /// Opens an object that has only fields that are `known`.
    pub(crate) fn open(
        map: &'a Map<String, Value>,
        at: &'a str,
        known: &'static [&'static str],
    ) -> Result<Self, MetadataError> {
        Fields::open_beside(map, at, known, &[])
    }

    /// The same; `also` are names that a wrong one might have meant.
    pub(crate) fn open_beside(
        map: &'a Map<String, Value>,
        at: &'a str,
        known: &'static [&'static str],
        also: &[&str],
    ) -> Result<Self, MetadataError> {
        let fields = Fields { map, at, known };
        match map.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(fields),
            Some(key) => {
                let mut hint = did_you_mean(key, known.iter().chain(also).copied());
                if hint.is_empty() {
                    hint = format!("; the fields are {}", known.join(", "));
                }
                Err(fields.error(key, format!("there is no such field{hint}")))
            }
        }
    }

    /// An error about a field.
    pub(crate) fn error(&self, field: &str, what: impl Into<String>) -> MetadataError {
        let at = format!("{}.{field}", self.at);
        MetadataError { at, field: field.to_owned(), what: what.into() }
    }

    /// The value of a field; null counts as absent.
    pub(crate) fn value(&self, field: &str) -> Option<&'a Value> {
        debug_assert!(self.known.contains(&field), "`{field}` is among the known fields");
        self.map.get(field).filter(|value| !value.is_null())
    }

    /// The value of a field through `read`, which knows the type `expected`.
    fn typed<T>(
        &self,
        field: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, MetadataError> {
        let Some(value) = self.value(field) else { return Ok(None) };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => {
                let found: String = value.to_string().chars().take(60).collect();
                Err(self.error(field, format!("expected {expected}, found {found}")))
            }
        }
    }

    pub(crate) fn text(&self, field: &str) -> Result<Option<&'a str>, MetadataError> {
        self.typed(field, "a text that is not empty", |value| {
            value.as_str().filter(|text| !text.trim().is_empty())
        })
    }

    pub(crate) fn flag(&self, field: &str) -> Result<Option<bool>, MetadataError> {
        self.typed(field, "true or false", Value::as_bool)
    }

    pub(crate) fn integer(&self, field: &str) -> Result<Option<i64>, MetadataError> {
        self.typed(field, "a whole number", Value::as_i64)
    }

    pub(crate) fn count(&self, field: &str) -> Result<Option<u64>, MetadataError> {
        self.typed(field, "a whole number from 0", Value::as_u64)
    }

    pub(crate) fn object(
        &self,
        field: &str,
    ) -> Result<Option<&'a Map<String, Value>>, MetadataError> {
        self.typed(field, "an object", Value::as_object)
    }

    pub(crate) fn texts(&self, field: &str) -> Result<Option<Vec<String>>, MetadataError> {
        self.typed(field, "a list of texts", |value| {
            value.as_array()?.iter().map(|item| Some(item.as_str()?.to_owned())).collect()
        })
    }
}
