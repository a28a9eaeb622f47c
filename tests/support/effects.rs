//! Executors of tests: a world that does what a test says, and remembers what was asked of it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use effect::{Answer, Blame, Call, Class, EffectError, Executor, Limits, Pending, Seen, Usage};
use log::Time;
use runtime::{Driver, Executors, Flock, OpenEffect, Overrides, Recorded, Serving};
use serde_json::{Value, json};

use crate::support::flock::{Running, Small, start_folder};

/// What the world does with one attempt.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    /// It is done, with this result.
    Succeeds(Value),
    /// It fails with an error of this kind.
    Fails(&'static str),
    /// The same, and trying again may help.
    Stumbles(&'static str),
    /// Nobody knows.
    Vanishes,
    /// It never answers, and ignores its cancellation.
    Hangs,
    /// It answers only when it is cancelled.
    Yields,
    /// It answers this long after it was called, whatever is said to it.
    Lags(Duration, Value),
    /// It breaks off.
    Panics,
}

/// A world for one effect.
#[derive(Debug)]
pub(crate) struct Scripted {
    pub(crate) class: Class,
    pub(crate) limits: Limits,
    pub(crate) reserves: Usage,
    script: Mutex<VecDeque<Does>>,
    seen: Mutex<VecDeque<Seen>>,
    calls: Mutex<Vec<Call>>,
    looks: Mutex<usize>,
}

pub(crate) fn error(kind: &str) -> EffectError {
    EffectError::new(kind, Blame::Provider, format!("it was {kind}"), "try something else")
}

impl Scripted {
    pub(crate) fn new(class: Class, script: impl IntoIterator<Item = Does>) -> Scripted {
        let second = Duration::from_secs(1);
        let limits = Limits {
            timeout: 30 * second,
            cancel_within: second / 20,
            concurrent: 64,
            ..Limits::default()
        };
        Scripted {
            class,
            limits,
            reserves: Usage::default(),
            script: Mutex::new(script.into_iter().collect()),
            seen: Mutex::default(),
            calls: Mutex::default(),
            looks: Mutex::default(),
        }
    }

    pub(crate) fn seeing(self, seen: impl IntoIterator<Item = Seen>) -> Scripted {
        *self.seen.lock().unwrap() = seen.into_iter().collect();
        self
    }

    pub(crate) fn within(mut self, timeout: Duration) -> Scripted {
        self.limits.timeout = timeout;
        self
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    pub(crate) fn looks(&self) -> usize {
        *self.looks.lock().unwrap()
    }
}

impl Executor for Scripted {
    fn class(&self) -> Class {
        self.class
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn check(&self, args: &Value) -> Result<Value, EffectError> {
        if args.get("amount").is_some_and(|amount| !amount.is_number()) {
            let what = "/args/amount: expected a number";
            let action = "give a number";
            return Err(EffectError::new("arguments.schema", Blame::Caller, what, action));
        }
        let mut args = args.clone();
        if let Some(currency) = args.get_mut("currency").filter(|c| c.is_null()) {
            *currency = json!("EUR");
        }
        Ok(args)
    }

    fn reserve(&self, _args: &Value) -> Usage {
        self.reserves
    }

    fn run<'a>(&'a self, call: &'a Call) -> Pending<'a, Answer> {
        self.calls.lock().unwrap().push(call.clone());
        let next = self.script.lock().unwrap().pop_front();
        Box::pin(async move {
            let succeeded = |result| Answer::Succeeded { result, fingerprint: None };
            match next.unwrap_or(Does::Succeeds(json!({"done": true}))) {
                Does::Succeeds(result) => succeeded(result),
                Does::Fails(kind) => Answer::Failed(error(kind)),
                Does::Stumbles(kind) => Answer::Failed(error(kind).retryable()),
                Does::Vanishes => Answer::Unknown(error("network.lost")),
                Does::Hangs => std::future::pending().await,
                Does::Yields => {
                    call.cancel.cancelled().await;
                    Answer::Cancelled
                }
                Does::Lags(time, result) => {
                    tokio::time::sleep(time).await;
                    succeeded(result)
                }
                Does::Panics => panic!("an executor breaks off"),
            }
        })
    }

    fn look<'a>(&'a self, _call: &'a Call, _intent: &'a Value) -> Pending<'a, Seen> {
        *self.looks.lock().unwrap() += 1;
        let seen = self.seen.lock().unwrap().pop_front();
        Box::pin(async move { seen.unwrap_or(Seen::Absent) })
    }
}

/// A flock, its engine and its driver, with a clock that a test sets.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) running: Running,
    driver: Driver,
    executors: Executors,
    pub(crate) now: i64,
}

impl World {
    pub(crate) fn new(flock: &Small, executors: &[(&str, &Arc<Scripted>)]) -> World {
        World::of(flock.start(), executors)
    }

    pub(crate) fn of(running: Running, executors: &[(&str, &Arc<Scripted>)]) -> World {
        let mut all = Executors::new();
        for (name, executor) in executors {
            let executor: Arc<dyn Executor> = Arc::clone(executor) as _;
            all.insert(*name, executor);
        }
        let branch = running.log.branch(running.branch).expect("it is there").name;
        let driver = Driver::new(branch.as_str(), all.clone()).expect("threads");
        World { running, driver, executors: all, now: 1 }
    }

    /// The flock of a folder in the world that it has in a run: its executors, its workspace and
    /// what its models said.
    pub(crate) fn of_folder(folder: &Path) -> World {
        let overrides = Overrides::default();
        let flock = Flock::read(folder, &overrides).expect("the flock is valid");
        let models = flock.recorded_models().expect("they are read");
        World::in_folder(start_folder(folder, &overrides), &flock, models)
    }

    /// A branch of a flock in the world that it has in a run.
    pub(crate) fn in_folder(
        running: Running,
        flock: &Flock,
        models: Vec<(String, Recorded)>,
    ) -> World {
        let executors = flock.executors().expect("they can be used");
        let branch = running.log.branch(running.branch).expect("it is there").name;
        let mut driver = Driver::new(branch.as_str(), executors.clone()).expect("threads");
        driver.serve_models(models);
        driver.set_workspace(flock.workspace.clone());
        World { running, driver, executors, now: 1 }
    }

    pub(crate) fn driver_out(&self) -> usize {
        self.driver.out()
    }

    pub(crate) fn serve(&mut self, serving: Serving, recorded: Recorded) {
        self.driver.serve(serving, recorded);
    }

    pub(crate) fn waits(&self, action: &log::EventId) -> Option<&'static str> {
        self.driver.waits(action)
    }

    fn time(&self) -> Time {
        Time::from_ms(self.now).expect("a time")
    }

    /// Runs until nothing can go on but by a time that has not come, or a person.
    pub(crate) fn settle(&mut self) {
        self.settle_or(|_| false);
    }

    /// Goes on until an attempt is out and its executor was called, on whatever thread.
    pub(crate) fn until_called(&mut self, tool: &Scripted) {
        self.settle_or(|world| world.driver_out() > 0);
        while tool.calls().is_empty() {
            std::thread::yield_now();
        }
    }

    /// As `settle`, but stops early when `done` says so.
    pub(crate) fn settle_or(&mut self, done: impl Fn(&World) -> bool) {
        for _ in 0..10_000 {
            self.running.rest();
            let now = self.time();
            let turn = self.driver.turn(&mut self.running.engine, now).expect("a log in memory");
            if done(self) {
                return;
            }
            if turn.landed > 0 {
                continue;
            }
            if self.driver.out() == 0 && !self.driver.has_news() {
                break;
            }
            // The test's clock stands; what is out answers by the real one.
            let bound = async { tokio::time::sleep(Duration::from_secs(5)).await };
            self.driver.wait(&mut self.running.engine, now, bound);
        }
        self.running.engine.commit().expect("a log in memory");
    }

    /// Waits until something comes back though nothing is said to be out: a late receipt.
    pub(crate) fn listen(&mut self) {
        let bound = async { tokio::time::sleep(Duration::from_secs(5)).await };
        let now = self.time();
        self.driver.wait(&mut self.running.engine, now, bound);
        assert!(self.driver.has_news(), "something came");
    }

    /// Lets so many milliseconds pass.
    pub(crate) fn pass(&mut self, ms: i64) {
        self.now += ms;
        self.settle();
    }

    /// The process dies, and another one runs on from the log.
    pub(crate) fn crash(self) -> World {
        let World { running, driver, executors, now } = self;
        drop(driver);
        let running = running.crash();
        let driver = Driver::new("main", executors.clone()).expect("threads");
        World { running, driver, executors, now }
    }

    /// The payloads of the events of one kind.
    pub(crate) fn payloads(&self, kind: &str) -> Vec<Value> {
        let events = self.running.of_kind(kind).into_iter();
        events.map(|event| Value::Object(event.payload().to_json())).collect()
    }

    /// One word of each event about effects: `requested dispatched attempt.succeeded succeeded`.
    pub(crate) fn story(&self) -> String {
        let words = self.running.events().into_iter().filter_map(|event| {
            let payload = Value::Object(event.payload().to_json());
            let text = |name: &str| payload[name].as_str().unwrap_or_default().to_owned();
            Some(match event.kind() {
                "attempt.ended" if payload.get("retry").is_some() => "retry".to_owned(),
                "attempt.ended" => format!("attempt.{}", text("status")),
                "attempt.late" => format!("late.{}", text("status")),
                "effect.ended" => text("status"),
                "effect.reconciled" => format!("reconciled.{}", text("status")),
                "effect.judged" => text("verdict"),
                "effect.looked" => format!("looked.{}", text("seen")),
                kind => kind.strip_prefix("effect.")?.to_owned(),
            })
        });
        words.collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn open(&self) -> Vec<OpenEffect> {
        self.running.engine.open_effects()
    }

    /// A person says something about the only open effect.
    pub(crate) fn says(&mut self, payload: Value) -> Result<(), String> {
        let open = self.open();
        let mut payload = payload;
        payload["action"] = json!(open.first().map_or(String::new(), |o| o.action.to_string()));
        let mut draft = crate::support::flock::said(
            &format!("person {} {payload}", self.now),
            "effect.answered",
            payload,
            &json!([]),
        );
        draft.time = self.time();
        self.running.engine.people_say(draft).map_err(|error| error.to_string())
    }
}
