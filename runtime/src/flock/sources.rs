//! The behavior files of a flock, and the code in them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use behaviors::{Loaded, ReactError};
use forms::ProgramFile;
use log::Hash;
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::FlockError;
use super::folders::{self, Found};
use super::form::Form;
use super::lint::line_of;
use crate::engine::load_payload;

/// A behavior file: its text, and what it declares.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its path, relative to the flock.
    pub path: String,
    /// Its text.
    pub text: String,
    /// The hash of its text.
    pub hash: Hash,
    /// Whether its text is known: a file that cannot be read has none.
    pub is_read: bool,
    /// The behaviors it declares, by name; or why it cannot be used, with file, line and column.
    pub declared: Result<Vec<Loaded>, String>,
}

/// A file that may not be run and is larger is not looked into.
const LARGE_BYTES: u64 = 1 << 20;

/// Reads the behavior files of a flock, by path. What is as in `known` is not loaded again.
pub(super) fn read(
    flock: &Path,
    uses: &[PathBuf],
    known: &[Source],
) -> Result<Vec<Source>, FlockError> {
    let folders = folders::all(flock, uses)?;
    let mut sources = Vec::new();
    for Found { path, file, leaves } in folders::files(flock, &folders)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let Some(form) = Form::of_name(&name).filter(|_| leaves.is_some() || file.is_file()) else {
            continue;
        };
        if let Some(elsewhere) = leaves {
            sources.push(unread(path, &left(&elsewhere)));
            continue;
        }
        let large = file.metadata().is_ok_and(|data| data.len() > LARGE_BYTES);
        if form == Form::Program && large && !effect::is_executable(&file) {
            // Data that lies here; nobody writes a behavior so long.
            continue;
        }
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            // Deleted since the folder was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                sources.push(unread(path, &format!("it cannot be read: {error}")));
                continue;
            }
        };
        let same = |known: &&Source| known.path == path && known.text.as_bytes() == bytes;
        let before = known.iter().find(same).filter(|before| before.is_read);
        // Whether an executable may be run does not stand in its text.
        match before.filter(|_| form != Form::Program) {
            Some(before) => sources.push(before.clone()),
            None => {
                let runs = effect::is_executable(&file);
                sources.extend(source(&path, form, bytes, runs));
            }
        }
    }
    Ok(sources)
}

fn left(elsewhere: &Path) -> String {
    let folder = elsewhere.parent().unwrap_or(elsewhere);
    format!(
        "it is a link to {}, which is not in the flock; put a copy here, or write \
         use = [\"{}\"] in flock.toml",
        elsewhere.display(),
        folder.display()
    )
}

impl Source {
    /// A file that is to be a behavior of a flock, wherever it stands; `name` is its path there.
    ///
    /// # Errors
    /// It cannot be read, or is no behavior that can be used; says why.
    pub(crate) fn of_file(file: &Path, path: &str) -> Result<Source, String> {
        let bytes = fs::read(file);
        let bytes = bytes.map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let form = Form::of_name(&name);
        let read = form.and_then(|form| source(path, form, bytes, effect::is_executable(file)));
        let read = read.ok_or_else(|| format!("{} is no behavior file", file.display()))?;
        read.declared.clone()?;
        Ok(read)
    }
}

/// A file of which nothing is known.
fn unread(path: String, what: &str) -> Source {
    let declared = Err(format!("{path}: {what}"));
    Source { path, hash: Hash::of(b""), text: String::new(), is_read: false, declared }
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
            let declared = code_of(path, &text).and_then(|all| refuse_silent(path, &text, all));
            let declared = declared.and_then(|all| refuse_past(path, all));
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
    Some(Source { path: path.to_owned(), hash, text, is_read: true, declared })
}

/// Refuses a behavior that does not say what it does. A log may hold one of before.
fn refuse_silent(path: &str, text: &str, declared: Vec<Loaded>) -> Result<Vec<Loaded>, String> {
    let mut all = declared.iter().map(Loaded::metadata);
    let Some(silent) = all.find(|metadata| metadata.description.trim().is_empty()) else {
        return Ok(declared);
    };
    let line = line_of(text, &silent.name, "name");
    let line_text = line.and_then(|line| text.lines().nth(line - 1)).map(str::to_owned);
    let what = format!(
        "{}: there is no `description`; say what it does, in a sentence: description = \"…\"",
        silent.name
    );
    let line = line.and_then(|line| u32::try_from(line).ok());
    let file = Some(path.to_owned());
    Err(ReactError { file, line, line_text, ..ReactError::new(what) }.to_string())
}

/// Refuses a wish for earlier events that cannot be met. A log may hold one of before.
fn refuse_past(path: &str, declared: Vec<Loaded>) -> Result<Vec<Loaded>, String> {
    for loaded in &declared {
        let metadata = loaded.metadata();
        if !metadata.from_beginning {
            continue;
        }
        let what = if metadata.guard {
            "a guard is asked about every request that is open; drop `from`"
        } else if metadata.trigger.condition.is_some() {
            "earlier events are heard in the world of today, where a pattern of their time says \
             nothing; drop `match`, and ask in `reads` for what stands now"
        } else {
            continue;
        };
        return Err(format!("{path}: {}: `from` the beginning: {what}", metadata.name));
    }
    Ok(declared)
}

/// The behaviors that a file declares, by name; those that are switched off left out.
///
/// # Errors
/// Why the file cannot be used, with file, line and column.
pub(crate) fn code_of(path: &str, text: &str) -> Result<Vec<Loaded>, String> {
    let mut loaded = match Form::of_path(path) {
        Form::Script => crate::scripts::load(path, text).map_err(|error| error.to_string())?,
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

/// Of files that declare one name the one that is in place keeps it, or else the first; the others
/// are broken.
pub(super) fn settle_twins(sources: &mut [Source], in_place: impl Fn(&str) -> Option<String>) {
    let mut owners: BTreeMap<String, usize> = BTreeMap::new();
    let mut broken: Vec<(usize, String)> = Vec::new();
    for (place, source) in sources.iter().enumerate() {
        for loaded in source.declared.iter().flatten() {
            let name = loaded.metadata().name.as_str();
            let Some(first) = owners.get(name).copied() else {
                owners.insert(name.to_owned(), place);
                continue;
            };
            let stays = in_place(name).is_some_and(|path| path == source.path);
            let loser = if stays { first } else { place };
            if stays {
                owners.insert(name.to_owned(), place);
            }
            let (a, b) = (&sources[first].path, &source.path);
            let twins =
                FlockError::Twins { name: name.to_owned(), first: a.clone(), second: b.clone() };
            broken.push((loser, format!("{}: {twins}", sources[loser].path)));
        }
    }
    for (loser, error) in broken {
        sources[loser].declared = Err(error);
    }
}

impl Source {
    /// Whether the file, being broken, might have declared a guard. What cannot be told is one.
    pub(super) fn may_hold_a_guard(&self) -> bool {
        !self.is_read || self.text.contains("guard")
    }

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

    /// The payload of the event that loads one of its behaviors.
    pub(crate) fn payload(&self, loaded: &Loaded) -> Map<String, Value> {
        load_payload(loaded, &self.path, &self.hash.to_string())
    }
}

pub(crate) fn name_of(loaded: &Loaded) -> SmolStr {
    loaded.metadata().name.as_str().into()
}
