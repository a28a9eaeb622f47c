//! The world of a run: its driver, made when the first effect is asked for, and how it waits.

use std::path::PathBuf;
use std::time::Duration;

use log::{Branch, BranchId, BranchName, Log, Offset, Store};

use super::live::Live;
use super::stop::Stop;
use crate::cli::failure::Failure;
use crate::clock::now;
use crate::effect::{Driver, Recorded, Serving, Standing};
use crate::engine::Engine;
use crate::flock::Flock;
use crate::flock::workspace::{self, Fork};

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
    branch: BranchName,
    serving: Serving,
    recorded: Recorded,
    /// Whose answers are served, and from where on: read with the first effect.
    parent: Option<(&'f Store, BranchId, Offset)>,
    workspace: Option<PathBuf>,
    driver: Option<Driver>,
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
        let (mut serving, mut recorded) = (Serving::Live, Recorded::default());
        let mut parent = None;
        if let Some((file, mode)) = &flock.answers {
            recorded = Recorded::of_file(file).map_err(Failure::Usage)?;
            serving = *mode;
        }
        if let (None, Some(fork)) = (&flock.answers, &branch.fork) {
            parent = Some((store, fork.parent, Offset::new(fork.cut.count())));
            serving = Fork::read(&fork.serving).serving.unwrap_or(Serving::Recorded);
        }
        let declared = flock.workspace.as_deref();
        let workspace = workspace::of(store as &dyn Log, &flock.folder, declared, branch)?;
        let serving = live.unwrap_or(serving);
        let branch = branch.name.clone();
        Ok(Effects { flock, branch, serving, recorded, parent, workspace, driver: None })
    }

    /// Whether there is anything about effects or times to be done.
    fn is_asked(&self, engine: &Engine) -> bool {
        engine.effects().len() > 0 || engine.next_delayed().is_some()
    }

    fn driver(&mut self) -> Result<&mut Driver, Failure> {
        if self.driver.is_none() {
            let executors = self.flock.executors()?;
            if let Some((store, parent, from)) = self.parent {
                self.recorded = Recorded::of_log(store as &dyn Log, parent, from)?;
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

    /// Whether something came back from the world.
    pub(super) fn has_news(&self) -> bool {
        self.driver.as_ref().is_some_and(Driver::has_news)
    }

    /// Does what can be done about effects now. Tells how many events that took.
    pub(super) fn turn(&mut self, engine: &mut Engine) -> Result<usize, Failure> {
        if self.driver.is_none() && !self.is_asked(engine) {
            return Ok(0);
        }
        Ok(self.driver()?.turn(engine, now())?.landed)
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
