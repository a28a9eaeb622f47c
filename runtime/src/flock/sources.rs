//! The behavior files of a flock, and the code in them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use behaviors::Loaded;
use log::Hash;
use script::{Limits, ScriptHost};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use super::FlockError;

/// A behavior file: its text, and what it declares.
#[derive(Debug)]
pub struct Source {
    /// Its path, relative to the flock.
    pub path: String,
    /// Its text.
    pub text: String,
    /// The hash of its text.
    pub hash: Hash,
    /// The behaviors it declares, by name; or why it cannot be used, with file, line and column.
    pub declared: Result<Vec<Loaded>, String>,
}

/// Reads the behavior files of a flock, by path.
pub(super) fn read(folder: &Path) -> Result<Vec<Source>, FlockError> {
    let behaviors = folder.join("behaviors");
    let mut sources = Vec::new();
    if !behaviors.is_dir() {
        return Ok(sources);
    }
    let failed = |source| FlockError::Read { path: behaviors.clone(), source };
    let mut files: Vec<_> = fs::read_dir(&behaviors)
        .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
        .map_err(failed)?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".star") || name.starts_with('.') {
            continue;
        }
        let read = fs::read_to_string(file.path());
        let text = read.map_err(|source| FlockError::Read { path: file.path(), source })?;
        sources.push(source(&format!("behaviors/{name}"), text));
    }
    Ok(sources)
}

fn source(path: &str, text: String) -> Source {
    let declared = code_of(path, &text);
    Source { path: path.to_owned(), hash: Hash::of(text.as_bytes()), text, declared }
}

/// The behaviors that the text of a script declares, by name; those that are switched off left out.
///
/// # Errors
/// Why the file cannot be used, with file, line and column.
pub(super) fn code_of(path: &str, text: &str) -> Result<Vec<Loaded>, String> {
    static HOST: LazyLock<ScriptHost> = LazyLock::new(|| ScriptHost::new(Limits::default()));
    let mut loaded = HOST.load(path, text).map_err(|error| error.to_string())?;
    loaded.retain(|loaded| loaded.metadata().enabled);
    loaded.sort_by(|a, b| a.metadata().name.cmp(&b.metadata().name));
    Ok(loaded)
}

/// Two behaviors of one name would hide each other.
pub(super) fn refuse_twins(sources: &[Source]) -> Result<(), FlockError> {
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for source in sources {
        for loaded in source.declared.iter().flatten() {
            let name = loaded.metadata().name.as_str();
            if let Some(first) = known.insert(name, &source.path) {
                let (name, first, second) =
                    (name.to_owned(), first.to_owned(), source.path.clone());
                return Err(FlockError::Twins { name, first, second });
            }
        }
    }
    Ok(())
}

impl Source {
    /// The payloads of `behavior.loaded` for what it declares, by name.
    pub(super) fn payloads(&self) -> Vec<(SmolStr, Map<String, Value>)> {
        let declared = self.declared.iter().flatten();
        declared.map(|loaded| (name_of(loaded), self.payload(loaded))).collect()
    }

    fn payload(&self, loaded: &Loaded) -> Map<String, Value> {
        let mut payload = Map::new();
        payload.insert("name".to_owned(), json!(loaded.metadata().name));
        payload.insert("path".to_owned(), json!(self.path));
        payload.insert("hash".to_owned(), json!(self.hash.to_string()));
        let metadata = Value::Object(loaded.metadata().to_json());
        payload.insert("metadata".to_owned(), metadata);
        payload
    }
}

pub(super) fn name_of(loaded: &Loaded) -> SmolStr {
    loaded.metadata().name.as_str().into()
}
