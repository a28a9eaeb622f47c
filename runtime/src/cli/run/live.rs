//! What is saved while a flock runs becomes live between two firings, and is told.

use std::collections::BTreeSet;
use std::path::Path;

use log::Hash;

use crate::cli::failure::Failure;
use crate::cli::shell::Shell;
use crate::clock::now;
use crate::engine::Engine;
use crate::flock::{Flock, Follow, Looks, Overrides, Synced, sync_live};

/// The files of a flock, followed while it runs.
pub(super) struct Live {
    follow: Option<Follow>,
    /// Whether the run goes on when nothing is due.
    rests: bool,
    /// Whether that was told.
    told: bool,
    /// The executables that were confirmed.
    confirmed: BTreeSet<Hash>,
    /// What was told of it last, so that it is not told again.
    later: Vec<String>,
    rejected: Vec<(String, String)>,
}

impl Live {
    /// Follows the files of a flock from what was read of them. `rests` says whether the run goes
    /// on at rest.
    pub(super) fn start(
        folder: &Path,
        overrides: &Overrides,
        flock: &Flock,
        looks: Looks,
        rests: bool,
        shell: &mut Shell<'_>,
    ) -> Live {
        let follow = Follow::start(folder, overrides, flock, looks);
        if let Err(error) = &follow {
            shell.say(format_args!("! files saved from now on are not noticed: {error}"));
        }
        let rejected = flock.sources.iter();
        let rejected = rejected.filter_map(|s| Some((s.path.clone(), s.declared.clone().err()?)));
        let rejected = rejected.collect();
        let confirmed = flock.program_hashes();
        Live { follow: follow.ok(), rests, told: false, confirmed, later: Vec::new(), rejected }
    }

    /// Follows no files: the branch is pinned to the behaviors in its log.
    pub(super) fn pinned() -> Live {
        Live {
            follow: None,
            rests: false,
            told: false,
            confirmed: BTreeSet::new(),
            later: Vec::new(),
            rejected: Vec::new(),
        }
    }

    /// Whether the run goes on at rest.
    pub(super) fn rests(&self) -> bool {
        self.rests
    }

    /// Says once that the run waits for whatever comes.
    pub(super) fn tell_rest(&mut self, why: &str, engine: &Engine, shell: &mut Shell<'_>) {
        if !self.told {
            self.told = true;
            shell.say(format_args!(
                "@{}: {why}; it goes on with an event or a saved file, Ctrl-C ends it",
                engine.head()
            ));
        }
    }

    /// The next rest is told again.
    pub(super) fn moved(&mut self) {
        self.told = false;
    }

    /// Whether a file was saved.
    pub(super) fn has_news(&self) -> bool {
        self.follow.as_ref().is_some_and(Follow::has_news)
    }

    /// Waits until a file is saved.
    pub(super) async fn changed(&self) {
        match &self.follow {
            Some(follow) => follow.changed().await,
            None => std::future::pending().await,
        }
    }

    /// Makes live what was saved. To be called between firings.
    pub(super) fn apply(
        &mut self,
        engine: &mut Engine,
        shell: &mut Shell<'_>,
    ) -> Result<(), Failure> {
        let Some(look) = self.follow.as_mut().and_then(Follow::take) else { return Ok(()) };
        let mut flock = match look {
            Ok(flock) => flock,
            Err(error) => {
                shell.say(format_args!("! what runs goes on as it is: {error}"));
                return Ok(());
            }
        };
        flock.hold_back(&self.confirmed);
        let mut synced = sync_live(engine, &flock, now())?;
        let rejected = synced.rejected.clone();
        synced.rejected.retain(|file| !self.rejected.contains(file));
        self.rejected = rejected;
        if synced.later == self.later {
            synced.later.clear();
        } else {
            self.later.clone_from(&synced.later);
        }
        tell_synced(&synced, shell);
        Ok(())
    }
}

/// Says what following its flock changed on a branch.
pub(super) fn tell_synced(synced: &Synced, shell: &mut Shell<'_>) {
    let Synced { added, replaced, removed, rejected, mended, disabled, settings, later } = synced;
    added.iter().for_each(|name| shell.say(format_args!("+ {name} is loaded")));
    replaced.iter().for_each(|name| shell.say(format_args!("~ {name} is replaced")));
    removed.iter().for_each(|name| shell.say(format_args!("- {name} is removed")));
    disabled.iter().for_each(|name| {
        shell.say(format_args!("  {name} is disabled: starling enable {name}"));
    });
    for (path, error) in rejected {
        shell.say(format_args!(
            "! {path} is not loaded; its last good version, if there is one, stays:\n{error}"
        ));
    }
    mended.iter().for_each(|path| shell.say(format_args!("  {path} is whole again")));
    settings
        .iter()
        .for_each(|field| shell.say(format_args!("~ {field} has changed in flock.toml")));
    later.iter().for_each(|what| {
        shell.say(format_args!("! flock.toml: {what}; a run that begins anew sees it"));
    });
}
