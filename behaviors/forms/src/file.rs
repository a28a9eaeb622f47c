//! What a file says about its behavior: fields with their places, so that an error names the line
//! that is to be mended.

use std::collections::BTreeMap;

use behaviors::{Metadata, MetadataError, ReactError};
use serde_json::{Map, Value};

/// A line and a column, from 1.
pub(crate) type Place = (usize, usize);

/// The fields of a file.
#[derive(Debug)]
pub(crate) struct Said<'t> {
    pub(crate) path: &'t str,
    pub(crate) text: &'t str,
    pub(crate) fields: Map<String, Value>,
    /// Where the fields stand, by path: `reads.flights`.
    pub(crate) places: BTreeMap<String, Place>,
    /// Where the part begins that says them.
    pub(crate) start: Place,
}

impl Said<'_> {
    /// The metadata, and what is said beside it: the fields in `own`, which belong to the form. The
    /// name of the file is the name, unless it says another.
    pub(crate) fn metadata(
        &mut self,
        own: &[&str],
    ) -> Result<(Metadata, Map<String, Value>), ReactError> {
        let mut rest = Map::new();
        for name in own {
            if let Some(value) = self.fields.remove(*name) {
                rest.insert((*name).to_owned(), value);
            }
        }
        let stem = stem(self.path);
        let said_name = self.fields.contains_key("name");
        self.fields.entry("name").or_insert_with(|| Value::from(stem));
        let read = Metadata::of_author(&self.fields, stem, own);
        let metadata = read.map_err(|error| match said_name {
            false if error.field == "name" => {
                let what = format!("{}; rename the file, or give a `name`", error.what);
                self.refuse(&error.field, what)
            }
            _ => self.of_metadata(&error),
        })?;
        Ok((metadata, rest))
    }

    fn of_metadata(&self, error: &MetadataError) -> ReactError {
        self.refuse(&error.field, format!("{}: {}", error.field, error.what))
    }

    /// An error about a field, at its place or that of what holds it.
    pub(crate) fn refuse(&self, field: &str, what: impl Into<String>) -> ReactError {
        let mut at = field;
        let place = loop {
            match (self.places.get(at), at.rfind(['.', '['])) {
                (Some(place), _) => break *place,
                (None, Some(end)) => at = &at[..end],
                (None, None) => break self.start,
            }
        };
        error_at(self.path, self.text, place, what)
    }
}

/// The name of a file without its folder and ending.
pub(crate) fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split_once('.').map_or(name, |(stem, _)| stem)
}

/// An error at a place of a file, with its line.
pub(crate) fn error_at(
    path: &str,
    text: &str,
    (line, column): Place,
    what: impl Into<String>,
) -> ReactError {
    let number = |count: usize| u32::try_from(count).ok();
    ReactError {
        message: what.into(),
        file: Some(path.to_owned()),
        line: number(line),
        column: number(column),
        line_text: text.lines().nth(line - 1).map(str::to_owned),
        stopped: false,
    }
}

/// The place of a byte.
pub(crate) fn place_of(text: &str, byte: usize) -> Place {
    let before = text.get(..byte).unwrap_or(text);
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (before.matches('\n').count() + 1, column)
}
