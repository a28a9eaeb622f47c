//! What every command has: the options common to all, the store, and where to write.

use std::fmt::Display;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use log::{Address, Branch, BranchName, Head, Log, LogError, Missing, Store};
use serde_json::Value;

use super::failure::Failure;
use super::place;
use crate::tags;

/// `1 event`, `2 events`, `2 matches`.
pub(super) fn counted(count: u64, what: &str) -> String {
    let plural = match count {
        1 => "",
        _ if what.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{count} {what}{plural}")
}

/// Options of every command.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    /// The store: a file, or the folder of a flock
    #[arg(long, global = true, value_name = "PATH")]
    pub(super) store: Option<PathBuf>,
    /// The branch, where none is named otherwise
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) branch: Option<BranchName>,
    /// Write JSON, one value a line
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Say nothing but errors on standard error
    #[arg(long, short, global = true)]
    pub(super) quiet: bool,
}

/// Where a command runs.
pub(super) struct Shell<'a> {
    common: Common,
    verb: String,
    input: Option<Box<dyn BufRead + Send>>,
    pub(super) out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    store: Option<Arc<Store>>,
    made_store: bool,
}

impl<'a> Shell<'a> {
    pub(super) fn new(
        common: Common,
        verb: &str,
        input: Box<dyn BufRead + Send>,
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
    ) -> Shell<'a> {
        let input = Some(input);
        Shell { common, verb: verb.to_owned(), input, out, err, store: None, made_store: false }
    }

    pub(super) fn json(&self) -> bool {
        self.common.json
    }

    /// How this process is called in messages to others.
    pub(super) fn me(&self) -> String {
        format!("pid {} (starling {})", std::process::id(), self.verb)
    }

    /// Opens the store that the command is about.
    pub(super) fn open(&mut self, missing: Missing) -> Result<Arc<Store>, Failure> {
        self.open_path(place::find(self.common.store.as_deref()), missing)
    }

    /// The store that the command is about, whether it exists or not.
    pub(super) fn store_path(&self) -> PathBuf {
        place::find(self.common.store.as_deref())
    }

    /// From here on the command is about this branch.
    pub(super) fn turn_to(&mut self, branch: &BranchName) {
        self.common.branch = Some(branch.clone());
    }

    /// The store of a flock: the one that is named, else the one in its folder.
    pub(super) fn store_of(&self, flock: &Path) -> PathBuf {
        match &self.common.store {
            Some(named) => place::find(Some(named)),
            None => place::inside(flock),
        }
    }

    /// Whether standard error is a terminal that wants to see how far a command is.
    pub(super) fn shows_progress(&self) -> bool {
        let plain = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        !self.common.quiet && !plain && std::io::stderr().is_terminal()
    }

    /// Shows how far a command is, on one line that the next call overwrites. An empty text clears
    /// it.
    pub(super) fn progress(&mut self, text: impl Display) {
        // A message that nobody takes is no reason to fail.
        drop(write!(self.err, "\r\x1b[2K{text}").and_then(|()| self.err.flush()));
    }

    /// Opens a store by its path.
    pub(super) fn open_path(
        &mut self,
        path: PathBuf,
        missing: Missing,
    ) -> Result<Arc<Store>, Failure> {
        if missing == Missing::Create {
            let failed = |error| {
                Failure::Failed(format!("the folder of {} cannot be made: {error}", path.display()))
            };
            place::make_folder(&path).map_err(failed)?;
        }
        let made = !path.exists();
        let store = Store::open(&path, missing, &self.me()).map_err(|error| match error {
            LogError::Missing { path } => Failure::NotFound(format!(
                "there is no store at {}; `starling append` and `starling import` make one, and \
                 --store names another",
                path.display()
            )),
            other => other.into(),
        })?;
        self.made_store = made;
        if made {
            self.say(format_args!("made the store {}", path.display()));
        }
        self.store = Some(Arc::clone(&store));
        Ok(store)
    }

    /// Whether this command has made the store.
    pub(super) fn made_store(&self) -> bool {
        self.made_store
    }

    /// The store as it was named on the command line, to be repeated in a command.
    pub(super) fn named_store(&self) -> Option<PathBuf> {
        self.common.store.clone()
    }

    /// Refuses the name of a tag for a branch: it would stand for both.
    pub(super) fn check_no_tag(&self, log: &dyn Log, name: &BranchName) -> Result<(), Failure> {
        match tags::all(log)?.get(name.as_str()) {
            None => Ok(()),
            Some(address) => Err(Failure::Conflict(format!(
                "`{name}` is a tag, of {address}, and a name means one thing; choose another, or \
                 `starling tag {name} --delete`"
            ))),
        }
    }

    /// The name of the branch the command is about.
    pub(super) fn branch_name(&self) -> BranchName {
        self.common.branch.clone().unwrap_or_else(BranchName::main)
    }

    /// Finds a branch by name.
    pub(super) fn branch(&self, log: &dyn Log, name: &BranchName) -> Result<Branch, Failure> {
        let branches = log.branches()?;
        let found = branches.iter().find(|branch| branch.name == *name);
        found.cloned().ok_or_else(|| {
            let names: Vec<&str> = branches.iter().map(|b| b.name.as_str()).take(10).collect();
            let there = match names.len() {
                0 => "the store has none yet; `starling append` makes `main`".to_owned(),
                _ => format!(
                    "its branches: {}; `starling fork main@head {name}` makes it, and `starling tag {name} \
                     main@head` names a place so",
                    names.join(", ")
                ),
            };
            Failure::NotFound(format!("there is no branch `{name}`: {there}"))
        })
    }

    /// Finds the branch and the head that an address means.
    pub(super) fn resolve(
        &self,
        log: &dyn Log,
        address: &Address,
    ) -> Result<(Branch, Head), Failure> {
        let tagged = self.tagged(log, address)?;
        let address = tagged.as_ref().unwrap_or(address);
        let branch = self.branch(log, &address.branch)?;
        let head = branch.tip.head;
        let beyond = || {
            let name = &branch.name;
            Failure::NotFound(match head.last() {
                None => format!("there is no {address}: {name} has no events yet"),
                Some(last) => format!("there is no {address}: {name} reaches from 0 to {last}"),
            })
        };
        let cut = address.cut(head).ok_or_else(beyond)?;
        Ok((branch, cut))
    }

    /// The address that a tag names, if this is the name of one and of no branch.
    fn tagged(&self, log: &dyn Log, address: &Address) -> Result<Option<Address>, Failure> {
        let plain = address.at == log::At::BeforeHead(0);
        if !plain || log.branches()?.iter().any(|branch| branch.name == address.branch) {
            return Ok(None);
        }
        Ok(tags::all(log)?.remove(address.branch.as_str()))
    }

    /// What was given, or the branch up to its end.
    pub(super) fn address(&self, given: Option<Address>) -> Address {
        given.unwrap_or_else(|| Address { branch: self.branch_name(), at: log::At::BeforeHead(0) })
    }

    /// Standard input, once.
    pub(super) fn take_input(&mut self) -> Box<dyn BufRead + Send> {
        self.input.take().expect("a command reads its input once")
    }

    /// Writes a line of data.
    pub(super) fn line(&mut self, text: impl Display) -> Result<(), Failure> {
        Ok(writeln!(self.out, "{text}")?)
    }

    /// Writes a line of data as JSON or as text.
    pub(super) fn either(
        &mut self,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.json() { self.line(json()) } else { self.line(text()) }
    }

    /// Says something about what was done or can be done next. No data.
    pub(super) fn say(&mut self, text: impl Display) {
        if !self.common.quiet {
            // A message that nobody takes is no reason to fail.
            drop(writeln!(self.err, "{text}"));
        }
    }

    /// Writes what is outstanding and lets go of the store.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.out.flush()?;
        match self.store.take() {
            None => Ok(()),
            Some(store) => match store.close() {
                // The owner left first; nothing of ours was outstanding.
                Err(LogError::Stopped { .. }) => Ok(()),
                closed => Ok(closed?),
            },
        }
    }
}
