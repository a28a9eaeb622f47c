//! A flock with tools in a folder of its own, and calls of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use effect::{Answer, Call, Cancel, EffectError, Executor, Sandbox};
use serde_json::Value;
use tempfile::TempDir;

/// A folder with `tools/` and a workspace.
pub(crate) struct Flock {
    folder: TempDir,
}

impl Flock {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("tools")).expect("tools");
        fs::create_dir_all(folder.path().join("work")).expect("a workspace");
        Flock { folder }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("it is there")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    /// Adds the tool `name`: a shell script and the rest of its file.
    pub(crate) fn tool(&self, name: &str, script: &str, rest: &str) {
        self.script(&format!("{name}.sh"), script);
        let file = format!("command = [\"tools/{name}.sh\"]\n{rest}");
        fs::write(self.path().join(format!("tools/{name}.toml")), file).expect("written");
    }

    pub(crate) fn script(&self, name: &str, script: &str) {
        let path = self.path().join("tools").join(name);
        // Made whole under another name: a script that is still open for writing does not start.
        let made = path.with_extension("new");
        fs::write(&made, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).expect("executable");
        fs::rename(&made, &path).expect("in place");
    }

    pub(crate) fn load(&self, sandbox: Sandbox, name: &str) -> Arc<dyn Executor> {
        let all = effect::tools::load(&self.path(), sandbox).expect("the tools load");
        let found = all.into_iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("{name} is loaded")).1
    }

    pub(crate) fn call(&self, effect: &str, args: Value) -> Call {
        Call {
            action: "0f".repeat(16),
            attempt: 1,
            effect: effect.to_owned(),
            args,
            idempotency_key: "key-1".to_owned(),
            timeout: Duration::from_secs(20),
            workspace: Some(self.work()),
            cancel: Cancel::new(),
        }
    }
}

/// Both ways in which commands run.
pub(crate) const BOTH: [Sandbox; 2] = [Sandbox::Off, Sandbox::Required];

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("a runtime").block_on(future)
}

/// Runs a call as the core does: checked first.
pub(crate) async fn act(executor: &dyn Executor, mut call: Call) -> Answer {
    match executor.check(&call.args) {
        Ok(args) => call.args = args,
        Err(error) => return Answer::Failed(error),
    }
    executor.run(&call).await
}

pub(crate) fn result(answer: Answer) -> Value {
    match answer {
        Answer::Succeeded { result, .. } => result,
        other => panic!("it succeeds: {other:?}"),
    }
}

pub(crate) fn failed(answer: Answer) -> EffectError {
    match answer {
        Answer::Failed(error) => error,
        other => panic!("it fails: {other:?}"),
    }
}

pub(crate) fn unknown(answer: Answer) -> EffectError {
    match answer {
        Answer::Unknown(error) => error,
        other => panic!("it is unknown: {other:?}"),
    }
}

/// The processes, by number, whose command line has this word in it.
pub(crate) fn processes_with(word: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has = |number: &i32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(word)
    };
    numbers.filter(has).collect()
}

/// Waits for something that another process does; fails when it does not come about.
pub(crate) fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "in time: {what}");
        std::thread::yield_now();
    }
}

/// A word that no other process has in its command line.
pub(crate) fn mark(folder: &Path) -> String {
    let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
    format!("mark{}", name.replace('.', "_"))
}

/// Whether the long forms were asked for.
pub(crate) fn long() -> bool {
    std::env::var_os("STARLING_LONG").is_some()
}
