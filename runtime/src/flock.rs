//! A flock: a folder of behaviors and settings that run together.
//!
//! `flock.toml` says how it runs, `behaviors/*.star` what it does. Whatever in them can change a
//! result goes into the log: the settings in the branch's first event, each behavior with its
//! metadata and the hash of its source in an event of its own.

mod file;
mod folders;
mod follow;
mod form;
mod lint;
mod policy;
mod sources;
mod sync;
mod triggers;
mod trust;
pub(crate) mod workspace;
mod world;

pub(crate) use file::read_set;
pub use file::{FlockError, Overrides};
pub use follow::{Follow, Looks};
pub(crate) use form::Form;
pub(crate) use lint::{Finding, Level, lint};
pub use sources::Source;
pub(crate) use sources::name_of;
pub use sync::{Synced, start, sync, sync_live};
pub(crate) use sync::{adopt, library_of, store_source};
pub(crate) use triggers::Triggers;
pub use trust::{Consent, Question, TrustError};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use log::{Draft, Time};
use projection::Pattern;
use serde_json::{Map, Value};

use crate::effect::Serving;
use crate::engine::Schedule;

/// A flock as read from its folder.
#[derive(Debug)]
pub struct Flock {
    /// The folder.
    pub folder: PathBuf,
    /// Its name: as the file says, else the folder's.
    pub name: String,
    /// Who goes next.
    pub schedule: Schedule,
    /// The seed of its branches.
    pub seed: i64,
    /// The time of the start events.
    pub start: Time,
    /// The pattern at which a run ends.
    pub until: Option<String>,
    /// For scripts `settings.x`, in patterns `$x`.
    pub settings: Map<String, Value>,
    /// The bounds, as the log holds them.
    pub budget: Map<String, Value>,
    /// What may leave and how, as the log holds it.
    pub policy: Map<String, Value>,
    /// The folder that it works in.
    pub workspace: Option<PathBuf>,
    /// Recorded answers: the file, and how they are served.
    pub answers: Option<(PathBuf, Serving)>,
    /// Models whose answers are recorded, by name, each with the file of its answers.
    pub models: BTreeMap<String, PathBuf>,
    /// How long a run may take, in seconds by the clock; it is no part of the log.
    pub wall_seconds: Option<u64>,
    /// What is appended once, on a new branch.
    pub events: Vec<Draft>,
    /// What a run prints at its end.
    pub report: Vec<Report>,
    /// Folders with more behavior files, as `use` names them.
    pub uses: Vec<PathBuf>,
    /// What `--set` says, which the branch keeps until it is set otherwise.
    pub set: Map<String, Value>,
    /// What `--unset` takes back.
    pub unset: Vec<String>,
    /// The behavior files, by path.
    pub sources: Vec<Source>,
    /// Whether it may act: what only hears what is recorded does not.
    pub acts: bool,
    /// Whether its programs are confined; only the person who runs it says that they are not.
    pub sandbox: effect::Sandbox,
}

/// A table that a run prints at its end: a line for each match, a column for each property.
#[derive(Debug)]
pub struct Report {
    /// What it is about.
    pub title: String,
    /// The matches.
    pub pattern: Pattern,
    /// The columns: variable and property.
    pub columns: Vec<(String, String)>,
}

impl Flock {
    /// Reads a flock from its folder.
    ///
    /// # Errors
    /// The folder has no `flock.toml`, or something in it cannot be used. A behavior file that is
    /// broken is no error here: it is told by its `Source`.
    pub fn read(folder: &Path, overrides: &Overrides) -> Result<Flock, FlockError> {
        let flock = Flock::look(folder, overrides, &[])?;
        sources::refuse_twins(&flock.sources)?;
        Ok(flock)
    }

    /// Reads a flock while it runs: what is as in `known` is not loaded again, and two files with
    /// one name are left to whoever knows which of them is in place.
    fn look(folder: &Path, overrides: &Overrides, known: &[Source]) -> Result<Flock, FlockError> {
        let mut flock = file::read(folder, overrides)?;
        flock.sources = sources::read(folder, &flock.uses, known)?;
        Ok(flock)
    }

    /// The flock of a branch whose folder is gone: what `flock.started` says, nothing that could
    /// act and nothing that stands in files.
    #[must_use]
    pub fn recorded(folder: &Path, started: &Map<String, Value>) -> Flock {
        file::recorded(folder, started)
    }

    /// Where its store is unless the caller says otherwise.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.folder.join(".starling").join("store.redb")
    }
}
