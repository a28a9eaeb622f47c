//! Who does the effects of a flock, and what the person who runs it is asked first.

use effect::Sandbox;
use effect::builtin::{self, Policy};
use serde_json::Value;

use super::{Flock, FlockError, Question};
use crate::effect::Executors;

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
        Ok(all)
    }

    /// What is to be confirmed before the flock runs; nothing if it runs no programs and wants no
    /// grants.
    ///
    /// # Errors
    /// A tool file cannot be used.
    pub fn question(&self) -> Result<Option<Question>, FlockError> {
        let grants = ["effects", "hosts", "local_hosts"].map(|list| self.granted(list)).concat();
        Question::about(&self.folder, &grants, self.sandbox)
    }

    /// Says that the programs of the flock are not confined: the person who runs it said so.
    pub fn without_sandbox(&mut self) {
        self.sandbox = Sandbox::Off;
    }

    /// One of the lists in `[grants]`.
    fn granted(&self, list: &str) -> Vec<String> {
        let listed = self.policy.get("grants").and_then(|grants| grants.get(list));
        let texts = listed.and_then(Value::as_array).into_iter().flatten();
        texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    }
}
