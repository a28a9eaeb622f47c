//! The effects that come with Starling: files, search, patches, commands, git and HTTP.
//! Each is a file here. A person is asked by the runtime itself.

mod git;
mod list;
mod local;
mod patch;
mod read;
mod search;
mod shell;
pub mod worktree;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use crate::executor::Executor;
use crate::http;
use crate::sandbox::Sandbox;
use crate::tools::Named;

/// What the built-in effects may touch.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The folder of the flock: its rules are not written, its store is not seen.
    pub flock: PathBuf,
    /// Whether commands are confined.
    pub sandbox: Sandbox,
    /// The hosts that `http.fetch` may reach: `example.org`, `*.example.org`, with `:PORT` if it is
    /// not the usual one. None of their addresses may be of this machine or of a private network.
    pub hosts: Vec<String>,
    /// The `HOST:PORT` that it may reach although they are.
    pub local_hosts: Vec<String>,
}

/// Every built-in effect, by name.
#[must_use]
pub fn all(policy: &Policy) -> Vec<Named> {
    let local = |local: local::Local| -> Arc<dyn Executor> { Arc::new(local) };
    let flock = policy.flock.as_path();
    let found: Vec<(&str, Arc<dyn Executor>)> = vec![
        ("apply_patch", local(patch::effect(flock))),
        ("fs.list", local(list::effect(flock))),
        ("fs.read", local(read::effect(flock))),
        ("fs.write", local(write::effect(flock))),
        ("git.commit", Arc::new(git::Git::commit(policy))),
        ("git.diff", Arc::new(git::Git::diff(policy))),
        ("git.status", Arc::new(git::Git::status(policy))),
        ("http.fetch", Arc::new(http::Fetch::new(policy))),
        ("search", local(search::effect(flock))),
        ("shell", Arc::new(shell::Shell::new(policy))),
    ];
    found.into_iter().map(|(name, executor)| (name.to_owned(), executor)).collect()
}
