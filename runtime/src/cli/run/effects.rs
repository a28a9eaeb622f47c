//! The world of a run: its driver, made when the first effect is asked for, and how it waits.

use std::path::PathBuf;
use std::time::Duration;

use log::{Branch, BranchName, Log, Store};

use super::live::Live;
use super::stop::Stop;
use crate::cli::failure::Failure;
use crate::clock::now;
use crate::effect::{Driver, Recorded, Serving, Standing};
use crate::engine::Engine;
use crate::flock::Flock;
use crate::flock::workspace::{self, Fork};
use crate::fork::Feed;
use crate::snapshot::Snapshots;

/// What a run waits for besides effects.
pub(super) struct Waits<'w> {
    /// Whether people are waited for.
    pub(super) people: bool,
    /// The files, and whether they are waited for.
    pub(super) live: &'w Live,
    /// How long at most.
    pub(super) wall: Option<Duration>,
    pub(super) stop: &'w mut Stop,
}

/// What becomes of effects in this run.
pub(super) struct Effects<'f> {
    flock: &'f Flock,
    store: &'f Store,
    branch: BranchName,
    serving: Serving,
    recorded: Recorded,
    workspace: Option<PathBuf>,
    driver: Option<Driver>,
    /// What a fork has still to be told.
    feed: Feed,
}

impl<'f> Effects<'f> {
    /// What a flock and the branch say about answers: a fork is served its parent's, unless it is
    /// live.
    pub(super) fn new(
        flock: &'f Flock,
        store: &'f Store,
        branch: &Branch,
        live: Option<Serving>,
    ) -> Result<Self, Failure> {
        let feed = Feed::of(store, branch.id, &Snapshots::beside(store.path()))?;
        let (mut serving, mut recorded) = (Serving::Live, Recorded::default());
        if let Some((file, mode)) = &flock.answers {
            recorded = Recorded::of_file(file).map_err(Failure::Usage)?;
            serving = *mode;
        }
        if let Some(fork) = &branch.fork {
            let said = Fork::read(&fork.serving).serving;
            let unsaid = if flock.answers.is_some() { serving } else { Serving::Recorded };
            serving = said.unwrap_or(unsaid);
        }
        let declared = flock.workspace.as_deref();
        let workspace = workspace::of(store as &dyn Log, &flock.folder, declared, branch)?;
        let serving = live.unwrap_or(serving);
        let branch = branch.name.clone();
        Ok(Effects { flock, store, branch, serving, recorded, workspace, driver: None, feed })
    }

    /// Whether there is anything about effects or times to be done.
    fn is_asked(&self, engine: &Engine) -> bool {
        engine.effects().len() > 0 || engine.next_delayed().is_some()
    }

    fn driver(&mut self) -> Result<&mut Driver, Failure> {
        if self.driver.is_none() {
            let executors = self.flock.executors()?;
            let answers = self.feed.answers(self.store)?;
            if self.recorded.is_empty() {
                self.recorded = answers;
            } else {
                // The file says what is next; of the parent's, an action has its own.
                self.recorded.extend_owned(answers);
            }
            let failed = |error| Failure::Failed(format!("effects cannot be run: {error}"));
            let mut driver = Driver::new(self.branch.as_str(), executors).map_err(failed)?;
            driver.serve(self.serving, std::mem::take(&mut self.recorded));
            driver.serve_models(self.flock.recorded_models()?);
            driver.set_workspace(self.workspace.clone());
            self.driver = Some(driver);
        }
        Ok(self.driver.as_mut().expect("it was just made"))
    }

    /// Ends or expects what a fork has open of its parent: before anything else happens in it.
    pub(super) fn begin(&mut self, engine: &mut Engine) -> Result<(), Failure> {
        if self.feed.is_empty() {
            return Ok(());
        }
        self.driver()?;
        let driver = self.driver.as_mut().expect("it was just made");
        Ok(self.feed.begin(engine, driver)?)
    }

    /// Feeds what the parent of a fork was told at this place.
    pub(super) fn feed(&mut self, engine: &mut Engine) -> Result<(), Failure> {
        if let Some(driver) = self.driver.as_mut().filter(|_| !self.feed.is_empty()) {
            self.feed.feed(engine, driver)?;
        }
        Ok(())
    }

    /// Whether a fork has been told all that its parent was.
    pub(super) fn is_fed(&self) -> bool {
        self.feed.is_done()
    }

    /// How many recorded events a fork was told, and how many had no place in it.
    pub(super) fn fed(&self) -> (usize, usize) {
        self.feed.counts()
    }

    /// Nothing is due in a fork that is not fed: does what comes before the next recorded event, or
    /// feeds it.
    pub(super) fn feed_at_rest(&mut self, engine: &mut Engine) -> Result<(), Failure> {
        if !self.feed.answers_next() {
            if self.turn(engine)? > 0 {
                return Ok(());
            }
            if let Some(driver) = self.driver.as_mut().filter(|driver| driver.out() > 0) {
                // Something that is not recorded was asked for: its answer comes first.
                engine.commit()?;
                driver.wait(engine, now(), std::future::pending());
                return Ok(());
            }
        }
        if let Some(driver) = &mut self.driver {
            self.feed.feed_at_rest(engine, driver)?;
            if self.feed.is_done() {
                driver.expect_nothing_recorded();
            }
        }
        Ok(())
    }

    /// Whether something came back from the world.
    pub(super) fn has_news(&self) -> bool {
        self.driver.as_ref().is_some_and(Driver::has_news)
    }

    /// Does what can be done about effects now. Tells how many events that took.
    pub(super) fn turn(&mut self, engine: &mut Engine) -> Result<usize, Failure> {
        if self.driver.is_none() && !self.is_asked(engine) {
            return Ok(0);
        }
        // While a fork is fed, its clock is the recorded one.
        let now = if self.is_fed() { now() } else { engine.recorded_now() };
        Ok(self.driver()?.turn(engine, now)?.landed)
    }

    /// Waits until something comes by itself, or from a person or a saved file if those are waited
    /// for. Tells whether it was worth waiting.
    pub(super) fn wait(&mut self, engine: &mut Engine, waits: Waits<'_>) -> Result<bool, Failure> {
        let Waits { people, live, wall, stop } = waits;
        let asked = self.driver.is_some() || self.is_asked(engine);
        if !asked && !live.rests() {
            return Ok(false);
        }
        let over = async {
            match wall {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        let stop = async {
            tokio::select! {
                () = stop.wanted() => {}
                () = over => {}
                () = live.changed() => {}
            }
        };
        if !asked {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let failed = |error| Failure::Failed(format!("nothing can be waited for: {error}"));
            runtime.map_err(failed)?.block_on(async {
                tokio::select! {
                    () = engine.offered() => {}
                    () = stop => {}
                }
            });
            return Ok(true);
        }
        let driver = self.driver()?;
        let asked = engine.open_effects().iter().any(|open| open.standing != Standing::Open);
        let worth = driver.expects(engine, now()) || (people && asked) || live.rests();
        if worth {
            driver.wait(engine, now(), stop);
        }
        Ok(worth)
    }

    /// Why an action that waits to leave does not.
    pub(super) fn waits(&self, action: &log::EventId) -> Option<&'static str> {
        self.driver.as_ref().and_then(|driver| driver.waits(action))
    }

    /// Ends what is out, within its bounds.
    pub(super) fn stop(&mut self, engine: &mut Engine) -> Result<(), Failure> {
        if let Some(driver) = &mut self.driver {
            driver.stop(engine, now)?;
        }
        Ok(())
    }
}
