//! What a driver is given besides its log: who does the effects, what is recorded, where it works.

use std::path::PathBuf;

use super::Driver;
use crate::effect::executors::Executors;
use crate::effect::recorded::{Recorded, Serving};

impl Driver {
    /// Serves recorded answers.
    pub fn serve(&mut self, serving: Serving, recorded: Recorded) {
        (self.serving, self.recorded) = (serving, recorded);
    }

    /// Lets recorded answers be what a model says, by the name of its effect.
    pub fn serve_models(&mut self, models: impl IntoIterator<Item = (String, Recorded)>) {
        self.models.extend(models);
    }

    /// Others do the effects from now on: the flock's files changed. What is out goes on.
    pub fn set_executors(&mut self, executors: Executors) {
        self.executors = executors;
    }

    /// The folder that the flock works in.
    pub fn set_workspace(&mut self, folder: Option<PathBuf>) {
        self.workspace = folder;
    }

    /// Lets so many attempts be out at once, of all effects together.
    pub fn allow_out(&mut self, attempts: usize) {
        self.allowed = Some(attempts.max(1));
    }
}
