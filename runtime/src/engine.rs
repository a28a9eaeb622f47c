//! The engine: apply an event, match, take the next activation, fire, append, until nothing is due.
//!
//! One engine owns one branch. Its state is a fold of the log, so a crash anywhere loses nothing
//! and repeats nothing: what was quiet after the last event is fired again on reopening, which is
//! harmless, because reactions are pure. The engine names no behavior, agent, tool or policy.

pub(crate) mod activation;
mod agenda;
mod asking;
mod bounds;
pub(crate) mod catching;
mod cut;
mod effects;
mod error;
mod evaluate;
mod failures;
mod fire;
pub(crate) mod forge;
mod guards;
mod image;
mod library;
mod lint;
mod loaded;
mod obey;
mod outside;
mod prepared;
mod recorded;
mod refire;
mod resolve;
mod rounds;
mod settings;
mod shown;
pub(crate) mod state;
pub(crate) mod subscription;
pub(crate) mod trial;
mod watchers;
mod wave;
mod words;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use behaviors::{ReactError, Reply, Texts};
use log::{BranchId, Claim, Delivery, EventId, Head, Log};
use projection::{Graph, Pattern, Row, Steps};
use serde_json::{Map, Value};

pub(crate) use activation::row_json;
pub use bounds::Reached;
pub(crate) use cut::between_firings;
pub use error::{EngineError, FoldError};
pub use failures::Failed;
pub use library::Library;
pub use lint::Undeclared;
pub(crate) use outside::append_once;
pub use outside::{Start, start_branch};
pub(crate) use recorded::Stop;
pub use refire::{Divergence, Refired, refire, refire_up_to};
pub(crate) use resolve::{Resolved, resolved};
pub use settings::{Bounds, DEPTH_DEFAULT, Schedule};
pub(crate) use shown::{Saw, Shown, shown};
pub(crate) use subscription::load_payload;
pub(crate) use wave::text_of;

use self::activation::Activation;
use self::catching::Past;
use self::evaluate::{evaluate, prepare};
use self::failures::Failures;
use self::fire::{Staged, fire};
use self::prepared::{PREPARED_MAX, Prepared};
use self::state::State;
use self::wave::Wave;
use crate::snapshot::Snapshots;

/// The engine of one branch.
#[derive(Debug)]
pub struct Engine {
    log: Arc<dyn Log>,
    branch: BranchId,
    claim: Claim,
    library: Library,
    state: State,
    wave: Wave,
    /// Reactions of the round that were run ahead, in the order of what is left of it.
    ahead: VecDeque<Result<Reply, ReactError>>,
    /// Firings handed over to where they react, before their turn.
    prepared: Prepared,
    threads: usize,
    snapshots: Snapshots,
    printed: Vec<String>,
    print: bool,
    lint: Option<lint::Lint>,
    failures: Failures,
    /// An offer that came while nothing was due.
    offered: Option<Delivery>,
    /// Firings that the machine ended when they were recorded, by the name of the firing.
    stops: HashMap<EventId, Stop>,
}

/// What one step did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// An activation was taken; it emitted so many events.
    Fired(usize),
    /// Nothing is due.
    Rest,
    /// A bound was reached; what is due stays due.
    Stopped(Reached),
}

impl Engine {
    /// Claims a branch and folds its log. `owner` says who runs it, for others who try to.
    ///
    /// # Errors
    /// Another engine runs the branch, the log is damaged, or the code of a loaded behavior is not
    /// in
    /// `library`.
    pub fn open(
        log: Arc<dyn Log>,
        branch: BranchId,
        library: Library,
        owner: &str,
    ) -> Result<Engine, EngineError> {
        Engine::open_with(log, branch, library, owner, Snapshots::none())
    }

    /// As `open`, but from the last snapshot, so that only the tail is folded; and leaves snapshots
    /// behind on the way. The log is the same with and without.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_with(
        log: Arc<dyn Log>,
        branch: BranchId,
        library: Library,
        owner: &str,
        snapshots: Snapshots,
    ) -> Result<Engine, EngineError> {
        let claim = log.claim(branch, owner)?;
        let state = snapshots.fold_branch(&*log, branch, Head::of_count(u64::MAX))?;
        tracing::info!(%branch, head = %state.head, waiting = state.agenda.len(), "an engine is open");
        let tip = log.branch(branch)?.tip;
        assert_eq!(tip.head, state.head, "nobody else writes a claimed branch");
        let wave = Wave::new(Arc::clone(&log), branch, claim.epoch, &tip);
        let mut engine = Engine {
            log,
            branch,
            claim,
            library,
            state,
            wave,
            ahead: VecDeque::new(),
            prepared: Prepared::default(),
            threads: 1,
            snapshots,
            printed: Vec::new(),
            print: false,
            lint: None,
            failures: Failures::default(),
            offered: None,
            stops: HashMap::new(),
        };
        let loaded: Vec<_> = engine.state.subscriptions.iter().cloned().collect();
        loaded.iter().try_for_each(|subscription| engine.library.require(subscription))?;
        Ok(engine)
    }

    /// Evaluates rounds on so many threads. The log is the same for any number.
    pub fn set_threads(&mut self, threads: usize) {
        assert!(threads > 0, "a round needs a thread");
        self.threads = threads;
    }

    /// Makes waves of so many events. The log is the same for any number.
    pub fn set_wave(&mut self, events: usize) {
        self.wave.limit(events);
    }

    /// Whether what reactions print is kept for `take_printed`.
    pub fn keep_printed(&mut self) {
        self.print = true;
    }

    /// What reactions printed since the last call. It is no part of the log.
    pub fn take_printed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.printed)
    }

    /// The world as the engine sees it, which may be ahead of what is durable.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.state.graph
    }

    /// How far the branch reaches as the engine sees it.
    #[must_use]
    pub fn head(&self) -> Head {
        self.state.head
    }

    /// Activations taken off the agenda so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.state.taken
    }

    /// How many activations wait, due or not.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state.agenda.len() + self.state.round.left.len() + self.state.round.refused.len()
    }

    /// The branch it runs.
    #[must_use]
    pub fn branch(&self) -> BranchId {
        self.branch
    }

    /// The log it writes.
    #[must_use]
    pub fn log(&self) -> &Arc<dyn Log> {
        &self.log
    }

    /// The payload of `flock.started`, with the changes since.
    #[must_use]
    pub fn started(&self) -> &Map<String, Value> {
        &self.state.settings.whole
    }

    /// The matches of a pattern, in order.
    #[must_use]
    pub fn rows(&self, pattern: &Pattern) -> Vec<Row> {
        let steps = Steps::up_to(u64::MAX);
        let rows = pattern.matches(&self.state.graph, &[], &self.state.env(None), &steps);
        rows.unwrap_or_default()
    }

    /// Whether a match of `pattern` stands.
    #[must_use]
    pub fn holds(&self, pattern: &Pattern) -> bool {
        !self.rows(pattern).is_empty()
    }

    /// Takes the next activation, fires it and lands what it emits.
    ///
    /// # Errors
    /// The log refused or failed. What is durable stays; open the branch again.
    pub fn step(&mut self) -> Result<Step, EngineError> {
        self.announce_suspensions()?;
        if !self.in_round() {
            self.take_offers()?;
        }
        let Some(reached) = self.state.next_bound() else { return Ok(Step::Rest) };
        if let Some(reached) = reached {
            self.announce_bound(&reached)?;
            return Ok(Step::Stopped(reached));
        }
        let past = Past::Of(&*self.log, self.branch);
        if self.state.take(past)?.is_none() {
            return Ok(Step::Rest);
        }
        let reaction = self.reaction();
        let reaction = self.recorded_stop().map_or(reaction, Err);
        let proposals = reaction.map(|reply| {
            if self.print {
                self.printed.extend(reply.printed);
            }
            reply.proposals
        });
        let staged = fire(&mut self.state, &self.wave, proposals)?;
        if let Some(lint) = &mut self.lint {
            lint.look(&self.state, &staged);
        }
        self.failures.look(&staged);
        let emitted = staged.len();
        self.land(staged)?;
        Ok(Step::Fired(emitted))
    }

    /// Lands the events of one firing, or one event from outside.
    fn land(&mut self, staged: Vec<Staged>) -> Result<(), EngineError> {
        for Staged { event, blobs, delta } in staged {
            let delta = match delta {
                Some(delta) => delta,
                None => self.state.graph.apply(&event).expect("a staged event was tried before"),
            };
            let past = Past::Of(&*self.log, self.branch);
            self.state.applied(&event, &delta, past)?;
            self.snapshots.note(&self.state.graph);
            self.wave.push(event, blobs);
        }
        self.wave.firing_ended()?;
        if self.snapshots.is_due(&self.state) {
            // A snapshot names the link of its last event, so everything up to there is durable.
            self.commit()?;
        }
        Ok(())
    }

    /// The reaction of the activation just taken. At the start of a round all of its reactions are
    /// run, on all threads: they see the same world, whoever lands first.
    fn reaction(&mut self) -> Result<Reply, ReactError> {
        let activation = self.state.last.as_ref().expect("an activation was just taken");
        if !self.state.round.is_open() {
            self.ahead.clear();
            self.prepared.before(&self.state, &self.library, activation);
            let find = |hash: &str| self.wave.text(hash);
            return evaluate(&self.state, activation, &self.library, Texts::of(&find));
        }
        if self.ahead.is_empty() {
            self.ahead = self.run_round();
        }
        self.ahead.pop_front().expect("every activation of a round was run")
    }

    fn run_round(&self) -> VecDeque<Result<Reply, ReactError>> {
        let last = self.state.last.iter();
        let all: Vec<_> = last.chain(&self.state.round.left).collect();
        if self.library.any_remote() {
            return self.run_remote_round(&all);
        }
        let find = |hash: &str| self.wave.text(hash);
        let run = |activation| evaluate(&self.state, activation, &self.library, Texts::of(&find));
        let share = all.len().div_ceil(self.threads);
        if self.threads == 1 || share < 8 {
            return all.into_iter().map(run).collect();
        }
        std::thread::scope(|scope| {
            let parts: Vec<_> = all
                .chunks(share)
                .map(|part| scope.spawn(move || part.iter().copied().map(run).collect::<Vec<_>>()))
                .collect();
            let done =
                parts.into_iter().map(|part| part.join().expect("a reaction does not panic"));
            done.flatten().collect()
        })
    }

    /// A round with reactions elsewhere: they are handed over some at a time.
    fn run_remote_round(&self, all: &[&Activation]) -> VecDeque<Result<Reply, ReactError>> {
        let find = |hash: &str| self.wave.text(hash);
        let mut replies = VecDeque::with_capacity(all.len());
        for (number, activation) in all.iter().enumerate() {
            if number.is_multiple_of(PREPARED_MAX / 2) {
                let next = all[number..].iter().take(PREPARED_MAX);
                next.for_each(|next| prepare(&self.state, next, &self.library));
            }
            replies.push_back(evaluate(&self.state, activation, &self.library, Texts::of(&find)));
        }
        replies
    }

    /// Whether a round has begun and is not over.
    #[must_use]
    pub fn in_round(&self) -> bool {
        !self.state.round.left.is_empty() || !self.state.round.refused.is_empty()
    }

    /// Makes everything durable that has landed.
    ///
    /// # Errors
    /// The log refused or failed.
    pub fn commit(&mut self) -> Result<Head, EngineError> {
        let head = self.wave.commit()?;
        self.snapshots.record(&*self.log, self.branch);
        self.snapshots.keep(&*self.log, self.branch, &self.state, self.wave.link());
        Ok(head)
    }

    /// Runs until nothing is due or a bound is reached, and makes all of it durable. `each` is
    /// asked after every step whether to go on; stopping writes nothing.
    ///
    /// # Errors
    /// The log refused or failed.
    pub fn run(&mut self, mut each: impl FnMut(&mut Engine) -> bool) -> Result<Step, EngineError> {
        loop {
            let step = self.step()?;
            let on = matches!(step, Step::Fired(_)) && each(self);
            if !on {
                self.commit()?;
                return Ok(step);
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.log.release(self.branch, self.claim.epoch);
    }
}
