//! Who does the effects of a flock, and what the person who runs it is asked first.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use effect::builtin::{self, Policy};
use effect::{Executor, Program, Sandbox};
use forms::ProgramFile;
use serde_json::Value;

use super::{Flock, FlockError, Question, Source};
use crate::effect::{Executors, Recorded};

impl Flock {
    /// Who does the effects of the flock: what comes with Starling, and its tools.
    ///
    /// # Errors
    /// A tool file cannot be used, or tools cannot be confined on this machine.
    pub fn executors(&self) -> Result<Executors, FlockError> {
        let policy = Policy {
            flock: self.folder.clone(),
            sandbox: self.sandbox,
            hosts: self.granted("hosts"),
            local_hosts: self.granted("local_hosts"),
        };
        let mut all = Executors::new();
        all.extend(builtin::all(&policy));
        let tools = effect::tools::load(&self.folder, self.sandbox)?;
        if !tools.is_empty() {
            self.sandbox.check().map_err(|error| FlockError::Sandbox(Box::new(error)))?;
        }
        all.extend(tools);
        let programs = self.programs();
        if !programs.is_empty() {
            self.sandbox.check().map_err(|error| FlockError::Sandbox(Box::new(error)))?;
        }
        all.extend(programs);
        Ok(all)
    }

    /// The executables that answer for behaviors, each by its effect.
    fn programs(&self) -> Vec<(String, Arc<dyn Executor>)> {
        let executor = |program: ProgramFile, path: &str| {
            let bounds = program.bounds;
            let executor = Program {
                effect: program.effect.clone(),
                flock: self.folder.clone(),
                path: path.to_owned(),
                timeout: Duration::from_millis(bounds.timeout_ms),
                output_bytes: bounds.output_bytes,
                memory_bytes: bounds.memory_bytes,
                sandbox: self.sandbox,
            };
            (program.effect, Arc::new(executor) as Arc<dyn Executor>)
        };
        let sources = self.sources.iter();
        let programs = sources.filter_map(|source| Some(executor(source.program()?, &source.path)));
        programs.collect()
    }

    /// What the models say whose answers are recorded, by the name of their effect.
    ///
    /// # Errors
    /// A file of answers cannot be read.
    pub fn recorded_models(&self) -> Result<Vec<(String, Recorded)>, FlockError> {
        let read = |(name, file): (&String, &PathBuf)| {
            let recorded = Recorded::of_file(file);
            let path = self.folder.join("flock.toml");
            let recorded = recorded.map_err(|what| FlockError::File {
                path,
                what: format!("models.{name}.answers: {what}"),
            })?;
            Ok((format!("model:{name}"), recorded))
        };
        self.models.iter().map(read).collect()
    }

    /// What is to be confirmed before the flock runs; nothing if it runs no programs and wants no
    /// grants.
    ///
    /// # Errors
    /// A tool file cannot be used.
    pub fn question(&self) -> Result<Option<Question>, FlockError> {
        let grants = ["effects", "hosts", "local_hosts"].map(|list| self.granted(list)).concat();
        let program = |source: &Source| {
            let program = source.program()?;
            Some((source.path.clone(), program.effect, program.metadata.description))
        };
        let programs: Vec<_> = self.sources.iter().filter_map(program).collect();
        Question::about(&self.folder, &programs, &grants, self.sandbox)
    }

    /// Says that the programs of the flock are not confined: the person who runs it said so.
    pub fn without_sandbox(&mut self) {
        self.sandbox = Sandbox::Off;
    }

    /// One of the lists in `[grants]`.
    pub(super) fn granted(&self, list: &str) -> Vec<String> {
        let listed = self.policy.get("grants").and_then(|grants| grants.get(list));
        let texts = listed.and_then(Value::as_array).into_iter().flatten();
        texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    }
}
