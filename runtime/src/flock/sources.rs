//! The behavior files of a flock, and the code in them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use behaviors::Loaded;
use forms::ProgramFile;
use log::Hash;
use script::{Limits, ScriptHost};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use super::FlockError;
use super::form::Form;

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

/// A file that may not be run and is larger is not looked into.
const LARGE_BYTES: u64 = 1 << 20;

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
        let path = file.path();
        let Some(form) = Form::of_name(&name).filter(|_| path.is_file()) else { continue };
        let runs = effect::is_executable(&path);
        let large = path.metadata().is_ok_and(|data| data.len() > LARGE_BYTES);
        if form == Form::Program && !runs && large {
            // Data that lies here; nobody writes a behavior so long.
            continue;
        }
        let bytes = fs::read(&path);
        let bytes = bytes.map_err(|source| FlockError::Read { path: path.clone(), source })?;
        sources.extend(source(&format!("behaviors/{name}"), form, bytes, runs));
    }
    Ok(sources)
}

/// What a file may be, if it is a behavior. An executable that is none is told; any other file is
/// not looked at, unless it says that it is one.
fn source(path: &str, form: Form, bytes: Vec<u8>, runs: bool) -> Option<Source> {
    let (text, declared) = match String::from_utf8(bytes) {
        Ok(text) if form == Form::Program && !runs => {
            if !forms::has_block(&text) {
                return None;
            }
            let what =
                format!("{path}: it says that it is a behavior and cannot be run: chmod +x {path}");
            (text, Err(what))
        }
        Ok(text) => {
            let declared = code_of(path, &text);
            (text, declared)
        }
        Err(_) if form == Form::Program && !runs => return None,
        Err(error) => {
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let what = "it is no text, so nobody could read what it does; put the program elsewhere and \
                        start it from a short script";
            (text, Err(format!("{path}: {what}")))
        }
    };
    // What is no text is kept as what could be read of it.
    let hash = Hash::of(text.as_bytes());
    Some(Source { path: path.to_owned(), hash, text, declared })
}

/// The behaviors that a file declares, by name; those that are switched off left out.
///
/// # Errors
/// Why the file cannot be used, with file, line and column.
pub(crate) fn code_of(path: &str, text: &str) -> Result<Vec<Loaded>, String> {
    static HOST: LazyLock<ScriptHost> = LazyLock::new(|| ScriptHost::new(Limits::default()));
    let mut loaded = match Form::of_path(path) {
        Form::Script => HOST.load(path, text).map_err(|error| error.to_string())?,
        Form::Prompt => vec![forms::load_prompt(path, text).map_err(|error| error.to_string())?],
        Form::Program => {
            let read = ProgramFile::read(path, text).map_err(|error| error.to_string())?;
            vec![read.loaded(text)]
        }
    };
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

    /// The program that it is, if it is one that can be used.
    pub(super) fn program(&self) -> Option<ProgramFile> {
        let usable = self.declared.as_ref().is_ok_and(|declared| !declared.is_empty());
        let program = usable && Form::of_path(&self.path) == Form::Program;
        program.then(|| ProgramFile::read(&self.path, &self.text).ok()).flatten()
    }

    fn payload(&self, loaded: &Loaded) -> Map<String, Value> {
        let mut payload = Map::new();
        if let Some(effect) = loaded.behavior().asks() {
            payload.insert("asks".to_owned(), json!(effect));
        }
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
