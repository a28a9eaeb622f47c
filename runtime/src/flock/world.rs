//! Who does the effects of a flock, and what the person who runs it is asked first.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use effect::builtin::{self, Policy};
use effect::{Executor, Program, Sandbox};
use forms::ProgramFile;
use log::Hash;
use serde_json::Value;

use super::{Flock, FlockError, Question, Source};
use crate::effect::{Executors, Recorded};

impl Flock {
    /// Who does the effects of the flock: what comes with Starling, and its tools.
    ///
    /// # Errors
    /// A tool file cannot be used, or tools cannot be confined on this machine.
    pub fn executors(&self) -> Result<Executors, FlockError> {
        if !self.acts {
            return Ok(Executors::new());
        }
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

    /// The hashes of its executables: what was confirmed when the run began.
    #[must_use]
    pub fn program_hashes(&self) -> BTreeSet<Hash> {
        let programs = self.sources.iter().filter(|source| source.program().is_some());
        programs.map(|source| source.hash).collect()
    }

    /// Holds back executables that are not among those that were confirmed: one that was saved
    /// while the flock runs is a broken file until a person has seen it.
    pub fn hold_back(&mut self, confirmed: &BTreeSet<Hash>) {
        for source in &mut self.sources {
            if source.program().is_some() && !confirmed.contains(&source.hash) {
                source.declared = Err(format!(
                    "{}: an executable has to be confirmed before it runs: run the flock again, or with \
                     --trust",
                    source.path
                ));
            }
        }
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
        Question::about(&self.folder, &self.uses, &programs, &grants, self.sandbox)
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::flock::Overrides;

    #[test]
    fn an_executable_that_nobody_confirmed_is_held_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join("behaviors").join(name);
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        };
        fs::create_dir(folder.path().join("behaviors")).expect("made");
        fs::write(folder.path().join("flock.toml"), "").expect("written");
        let text = "#!/bin/sh\n# /// starling\n# description = \"x\"\n# on = \"x.y\"\n# ///\n";
        write("one.sh", text);
        let read = || Flock::read(folder.path(), &Overrides::default()).expect("it is read");
        let confirmed = read().program_hashes();
        assert_eq!(confirmed.len(), 1);
        write("two.sh", &format!("{text}exit 2\n"));
        let mut flock = read();
        flock.hold_back(&confirmed);
        let held: Vec<bool> = flock.sources.iter().map(|source| source.declared.is_err()).collect();
        assert_eq!(held, [false, true]);
        assert_eq!(flock.programs().len(), 1);
    }
}
