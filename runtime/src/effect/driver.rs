//! The driver: the only part that waits for the world. It starts attempts whose intent is durable,
//! waits for them, and lands what they came to.
//!
//! It decides nothing: what may leave and what follows an answer are functions of the log. One
//! thread owns the engine; attempts run as tasks and report through one channel.

mod feed;
mod flight;
mod fork;
mod given;
mod serve;
mod settle;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use log::{Draft, EventId, Time, element_id};
use smol_str::SmolStr;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::flight::{InFlight, Report};
use super::action::{Stage, is_inner};
use super::budget::Charge;
use super::events::{self, Leaving, at};
use super::executors::Executors;
use super::guard::Checked;
use super::next::{Move, View, next};
use super::reconcile::Remedy;
use super::recorded::{Recorded, Serving};
use super::{Action, approve};
use crate::engine::{Engine, EngineError};

/// How many attempts may be out at once, of all effects together, unless the flock says.
const OUT_MAX: usize = 256;

/// What a turn did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// How many events it landed.
    pub landed: usize,
}

/// Starts attempts and lands what they came to.
#[derive(Debug)]
pub struct Driver {
    runtime: Runtime,
    executors: Executors,
    serving: Serving,
    recorded: Recorded,
    /// Models whose answers are recorded, by the name of their effect.
    models: BTreeMap<String, Recorded>,
    /// The name of the branch: a provider's key belongs to it.
    branch: String,
    workspace: Option<PathBuf>,
    reports: UnboundedReceiver<Report>,
    sender: UnboundedSender<Report>,
    /// Reports that came while nothing was due.
    heard: VecDeque<Report>,
    flights: HashMap<(EventId, u32), InFlight>,
    /// The actions that are being looked at.
    looking: HashSet<EventId>,
    busy: BTreeMap<SmolStr, usize>,
    /// Said by who runs it, before anything else.
    allowed: Option<usize>,
    out_max: usize,
    checked: Checked,
    /// Why what waits to leave does not.
    waits: HashMap<EventId, &'static str>,
    begun: bool,
    /// Actions of which it is recorded what becomes of them.
    expected: HashSet<EventId>,
    stopping: bool,
}

impl Driver {
    /// A driver for one branch, by name.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn new(branch: &str, executors: Executors) -> std::io::Result<Driver> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("effects")
            .enable_all()
            .build()?;
        let (sender, reports) = unbounded_channel();
        Ok(Driver {
            runtime,
            executors,
            serving: Serving::Live,
            recorded: Recorded::default(),
            models: BTreeMap::new(),
            branch: branch.to_owned(),
            workspace: None,
            reports,
            sender,
            heard: VecDeque::new(),
            flights: HashMap::new(),
            looking: HashSet::new(),
            busy: BTreeMap::new(),
            allowed: None,
            out_max: OUT_MAX,
            checked: Checked::default(),
            waits: HashMap::new(),
            begun: false,
            expected: HashSet::new(),
            stopping: false,
        })
    }

    /// Whether something came that a turn would land.
    #[must_use]
    pub fn has_news(&self) -> bool {
        !self.heard.is_empty() || !self.reports.is_empty()
    }

    /// How many attempts and looks are out.
    #[must_use]
    pub fn out(&self) -> usize {
        self.flights.values().filter(|flight| !flight.is_over()).count() + self.looking.len()
    }

    /// Why an action that waits to leave does not, if that is known.
    #[must_use]
    pub fn waits(&self, action: &EventId) -> Option<&'static str> {
        self.waits.get(action).copied()
    }

    /// Does all that can be done about effects now: lands what came back, ends what is over, and
    /// lets leave what may. Nothing inside of a round.
    ///
    /// # Errors
    /// The log refused or failed.
    pub fn turn(&mut self, engine: &mut Engine, now: Time) -> Result<Turn, EngineError> {
        let mut turn = Turn::default();
        if engine.in_round() {
            return Ok(turn);
        }
        self.out_max = self.allowed.or(engine.policy().at_once).unwrap_or(OUT_MAX);
        turn.landed += self.begin(engine, now)?;
        while let Some(report) = self.heard.pop_front().or_else(|| self.reports.try_recv().ok()) {
            let drafts = self.report(engine, report, now);
            turn.landed += land(engine, drafts)?;
        }
        if self.stopping {
            return Ok(turn);
        }
        if engine.next_delayed().is_some_and(|due| due <= now.ms()) {
            engine.tick(now)?;
            turn.landed += 1;
        }
        self.tell_cancelled(engine);
        for id in engine.effects().to_end() {
            let action = engine.effects().get(&id);
            let drafts = action.map(|action| engine.end_of_cancelled(action, now));
            turn.landed += land(engine, drafts.unwrap_or_default())?;
        }
        let mut calls = Vec::new();
        for id in engine.effects().due(now.ms()) {
            // Thousands may be due after a crash: what has to wait for room costs next to nothing.
            if self.lacks_room(engine, &id) {
                continue;
            }
            turn.landed += self.due(engine, id, now, &mut calls)?;
        }
        turn.landed += self.let_leave(engine, now, &mut calls)?;
        if !calls.is_empty() {
            // The intent is durable before it leaves.
            engine.commit()?;
            for (action, leaving) in calls {
                self.start(engine, &action, &leaving);
            }
        }
        Ok(turn)
    }

    /// After a crash: an attempt that was out, and that nobody here waits for, is in doubt.
    fn doubts(&self, engine: &Engine, now: Time) -> Vec<Draft> {
        let mut drafts = Vec::new();
        for action in engine.effects().iter() {
            let Stage::Running(running) = &action.facts.stage else { continue };
            let key = (action.facts.id, running.attempt);
            let expected = self.expected.contains(&key.0);
            if !is_inner(&running.executor) && !expected && !self.flights.contains_key(&key) {
                drafts.extend(self.in_doubt(engine, action, settle::lost(), now));
            }
        }
        drafts
    }

    /// Lets leave what may, in the order in which it was requested, as long as there is room.
    fn let_leave(
        &mut self,
        engine: &mut Engine,
        now: Time,
        calls: &mut Vec<(Action, Leaving)>,
    ) -> Result<usize, EngineError> {
        let mut landed = 0;
        // Where there is no room nothing moves, however many wait.
        let waiting: Vec<(SmolStr, Vec<EventId>)> = engine
            .effects()
            .requested()
            .iter()
            .filter(|(effect, _)| self.has_room(effect))
            .map(|(effect, of)| (effect.clone(), of.values().copied().collect()))
            .collect();
        for (effect, of) in waiting {
            for id in of {
                if !self.has_room(&effect) {
                    break;
                }
                landed += self.step(engine, id, now, calls)?;
            }
        }
        Ok(landed)
    }

    fn has_room(&self, effect: &str) -> bool {
        let Some(executor) = self.executors.get(effect) else { return true };
        let busy = self.busy.get(effect).copied().unwrap_or(0);
        let out: usize = self.busy.values().sum();
        busy < executor.limits().concurrent.max(1) && out < self.out_max
    }

    /// Whether something due waits for room, or for the look that is under way.
    fn lacks_room(&self, engine: &Engine, id: &EventId) -> bool {
        let Some(action) = engine.effects().get(id) else { return true };
        let needs = matches!(action.facts.stage, Stage::Waiting { .. } | Stage::Unknown(_));
        needs && (self.looking.contains(id) || !self.has_room(&action.facts.effect))
    }

    /// Takes the next step of an action that waits to leave.
    fn step(
        &mut self,
        engine: &mut Engine,
        id: EventId,
        now: Time,
        calls: &mut Vec<(Action, Leaving)>,
    ) -> Result<usize, EngineError> {
        let Some(action) = engine.effects().get(&id).cloned() else { return Ok(0) };
        let graph = engine.graph();
        let asked = |id: &EventId| graph.element(&element_id("_Effect", id, 0)).is_some();
        let view = View {
            effects: engine.effects(),
            policy: engine.policy(),
            guards: engine.guards(&action),
            limit: engine.request_limit(&action.facts.behavior),
            executors: &self.executors,
            serving: self.serving,
            recorded: &self.recorded,
            own: engine.asks(&action.facts.behavior) == Some(action.facts.effect.as_str()),
            models: &self.models,
            asked: &asked,
            now: now.ms(),
        };
        let next = next(&action, &view, &mut self.checked);
        self.waits.remove(&id);
        let facts = &action.facts;
        let drafts = match next {
            Move::Wait(why) => {
                self.waits.insert(id, why);
                return Ok(0);
            }
            Move::Exhausted(budget, limit) => {
                self.waits.insert(id, "its budget is used up");
                let behavior = facts.behavior.clone();
                engine.announce_exhausted(&budget, limit, &behavior)?;
                return Ok(0);
            }
            Move::End(ending) => {
                self.checked.forget(&id);
                approve::ended(engine.effects(), &action, &ending, now)
            }
            Move::Rewrite(args) => vec![at(events::rewritten(&action, &args), now)],
            Move::Ask(guard) => {
                vec![at(events::asked(facts, &guard, engine.head().count()), now)]
            }
            Move::Hold { expires } => vec![at(events::held(facts, expires), now)],
            Move::Link(to) => vec![at(events::linked(facts, &to), now)],
            Move::Serve { intent, served } => {
                self.checked.forget(&id);
                serve::drafts(engine, &action, intent, &served, now)
            }
            Move::Leave { intent, class, executor, deadline, reserves } => {
                self.checked.forget(&id);
                let leaving = Leaving {
                    attempt: facts.attempts + 1,
                    executor,
                    class,
                    epoch: engine.epoch(),
                    deadline: deadline.unwrap_or_else(|| self.deadline(&facts.effect, now)),
                    intent,
                    reserves: reserves.to_json(),
                    sequence: None,
                    again: None,
                };
                return self.dispatch(engine, action, leaving, now, calls);
            }
        };
        land(engine, drafts)
    }

    fn deadline(&self, effect: &str, now: Time) -> i64 {
        let timeout = self.executors.get(effect).map_or(Duration::ZERO, |e| e.limits().timeout);
        now.ms().saturating_add(i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX))
    }

    /// Records that an attempt leaves. It does once that is durable.
    fn dispatch(
        &mut self,
        engine: &mut Engine,
        action: Action,
        leaving: Leaving,
        now: Time,
        calls: &mut Vec<(Action, Leaving)>,
    ) -> Result<usize, EngineError> {
        let landed = land(engine, vec![at(events::dispatched(&action.facts, &leaving), now)])?;
        if !is_inner(&leaving.executor) {
            *self.busy.entry(action.facts.effect.clone()).or_default() += 1;
            calls.push((action, leaving));
        }
        Ok(landed)
    }

    /// Something is due by the clock.
    fn due(
        &mut self,
        engine: &mut Engine,
        id: EventId,
        now: Time,
        calls: &mut Vec<(Action, Leaving)>,
    ) -> Result<usize, EngineError> {
        let Some(action) = engine.effects().get(&id).cloned() else { return Ok(0) };
        match &action.facts.stage {
            Stage::Held { .. } => self.step(engine, id, now, calls),
            Stage::Waiting { .. } if self.has_room(&action.facts.effect) => {
                self.step(engine, id, now, calls)
            }
            Stage::Running(running) => {
                let ending = settle::inner_ending(&action, &running.executor, now);
                let attempt = running.attempt;
                land(engine, approve::answered(engine.effects(), &action, attempt, ending, now))
            }
            Stage::Unknown(doubt) if !self.looking.contains(&id) => {
                match self.remedy(&action, doubt, now) {
                    Remedy::Again(why) if self.has_room(&action.facts.effect) => {
                        self.again(engine, action, why, now, calls)
                    }
                    Remedy::Look if self.has_room(&action.facts.effect) => {
                        self.look(engine, &action);
                        Ok(0)
                    }
                    Remedy::Again(_) | Remedy::Look => Ok(0),
                    Remedy::Drop => {
                        let ending = super::next::cancelled("it changed nothing");
                        let effects = engine.effects();
                        land(engine, approve::reconciled(effects, &action, &ending, "drop", now))
                    }
                    Remedy::Person(why) => {
                        let facts = &action.facts;
                        let draft =
                            events::looked(facts, "nothing", doubt.looks + 1, 0, Some(&why));
                        land(engine, vec![at(draft, now)])
                    }
                }
            }
            _ => Ok(0),
        }
    }

    /// Another attempt at an action in doubt.
    fn again(
        &mut self,
        engine: &mut Engine,
        action: Action,
        why: &'static str,
        now: Time,
        calls: &mut Vec<(Action, Leaving)>,
    ) -> Result<usize, EngineError> {
        let facts = &action.facts;
        let Some(executor) = self.executors.get(&facts.effect) else { return Ok(0) };
        let reserves = Charge::of_reserve(executor.reserve(&action.args()));
        let leaving = Leaving {
            attempt: facts.attempts + 1,
            executor: facts.effect.clone(),
            class: executor.class(),
            epoch: engine.epoch(),
            deadline: self.deadline(&facts.effect, now),
            intent: facts.intent.expect("what has left had an intent"),
            reserves: reserves.to_json(),
            sequence: None,
            again: Some(why),
        };
        self.dispatch(engine, action, leaving, now, calls)
    }

    /// Waits until something comes: a report, an offer, a time, or `stop`.
    pub fn wait(&mut self, engine: &mut Engine, now: Time, stop: impl Future<Output = ()>) {
        let next = self.next_time(engine, now);
        let (reports, heard) = (&mut self.reports, &mut self.heard);
        self.runtime.block_on(async {
            let sleep = async {
                match next {
                    Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                report = reports.recv() => heard.extend(report),
                () = engine.offered() => {}
                () = sleep => {}
                () = stop => {}
            }
        });
    }

    /// In how many milliseconds something is due by the clock. What is due already waits for
    /// something else.
    fn next_time(&self, engine: &Engine, now: Time) -> Option<u64> {
        let effects = engine.effects().next_due_after(now.ms());
        let delayed = engine.next_delayed();
        let next = effects.into_iter().chain(delayed).min()?;
        Some(u64::try_from(next - now.ms()).unwrap_or(0))
    }

    /// Whether something will come by itself: an attempt is out, or a time will come.
    #[must_use]
    pub fn expects(&self, engine: &Engine, now: Time) -> bool {
        let by_itself = |action: &Action| match &action.facts.stage {
            Stage::Running(running) => running.executor == "clock",
            Stage::Waiting { until } => *until > now.ms(),
            Stage::Unknown(doubt) => doubt.person.is_none() && doubt.next > now.ms(),
            _ => false,
        };
        self.has_news()
            || self.out() > 0
            || engine.next_delayed().is_some()
            || engine.effects().iter().any(by_itself)
    }

    /// Ends all that is out, within its bounds, and lands what it came to. What was interrupted and
    /// did nothing is offered again by the next run.
    ///
    /// # Errors
    /// The log refused or failed.
    pub fn stop(&mut self, engine: &mut Engine, now: impl Fn() -> Time) -> Result<(), EngineError> {
        self.stopping = true;
        for flight in self.flights.values() {
            flight.cancel();
        }
        let longest = self.flights.values().map(|flight| flight.cancel_within).max();
        let bound = longest.unwrap_or_default() + Duration::from_millis(200);
        while self.flights.values().any(|flight| !flight.is_over()) {
            let (reports, heard) = (&mut self.reports, &mut self.heard);
            let came = self.runtime.block_on(async {
                let report = tokio::time::timeout(bound, reports.recv()).await;
                report.ok().flatten().map(|report| heard.push_back(report)).is_some()
            });
            if !came {
                break;
            }
            self.turn(engine, now())?;
        }
        self.turn(engine, now())?;
        engine.commit()?;
        Ok(())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        for flight in self.flights.values() {
            flight.shut_down();
        }
        // Tasks end at their next pause; what blocks a thread does not hold up the process.
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        if let Ok(placeholder) = runtime {
            let ours = std::mem::replace(&mut self.runtime, placeholder);
            ours.shutdown_timeout(Duration::from_millis(500));
        }
    }
}

fn land(engine: &mut Engine, drafts: Vec<Draft>) -> Result<usize, EngineError> {
    let count = drafts.len();
    if count > 0 {
        engine.land_effects(drafts)?;
    }
    Ok(count)
}
