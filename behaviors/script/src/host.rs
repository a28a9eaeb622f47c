//! The host: what every script may use, and how much of it.

use std::fmt;

use behaviors::{Loaded, ReactError};
use starlark::environment::{Globals, GlobalsBuilder, LibraryExtension};
use starlark::eval::Evaluator;

use crate::load;
use crate::numbers::numbers;
use crate::surface::surface;
use crate::words::words;

/// How much one run of a script may take: loading a file, or one reaction.
///
/// Steps are counted the same on every machine, so running out of them is a result like any other.
/// Memory is watched now and then and is no guarantee against a hostile script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many calls and turns of loops.
    pub steps: u64,
    /// How deep calls may nest.
    pub calls: usize,
    /// How many bytes of values.
    pub heap_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { steps: 1_000_000, calls: 64, heap_bytes: 64 << 20 }
    }
}

impl Limits {
    pub(crate) fn apply(self, eval: &mut Evaluator<'_, '_, '_>) {
        const FRESH: &str = "a fresh evaluation takes limits above zero";
        eval.set_max_tick_count(self.steps.max(1)).expect(FRESH);
        eval.set_max_callstack_size(self.calls.max(1)).expect(FRESH);
        eval.set_max_heap_size(self.heap_bytes.max(1)).expect(FRESH);
    }
}

/// Loads scripts.
#[derive(Debug)]
pub struct ScriptHost {
    globals: Globals,
    limits: Limits,
}

/// Why a script was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError(ReactError);

impl ScriptError {
    /// The message and the place.
    #[must_use]
    pub fn details(&self) -> &ReactError {
        &self.0
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ScriptError {}

impl From<ScriptError> for ReactError {
    fn from(error: ScriptError) -> Self {
        error.0
    }
}

impl ScriptHost {
    /// A host whose scripts have these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let extensions = [
            LibraryExtension::Print,
            LibraryExtension::SetType,
            LibraryExtension::Map,
            LibraryExtension::Filter,
        ];
        let globals = GlobalsBuilder::extended_by(&extensions)
            .with(surface)
            .with(words)
            .with(numbers)
            .build();
        ScriptHost { globals, limits }
    }

    /// Loads a script; `path` is relative to the flock and names it in messages. The behaviors that
    /// it declares come in the file's order, those that are not enabled left out.
    ///
    /// # Errors
    /// The script cannot be read or run, or what it declares cannot be used.
    pub fn load(&self, path: &str, source: &str) -> Result<Vec<Loaded>, ScriptError> {
        load::load(path, source, &self.globals, self.limits).map_err(ScriptError)
    }
}

impl Default for ScriptHost {
    fn default() -> Self {
        ScriptHost::new(Limits::default())
    }
}
