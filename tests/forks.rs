//! Forks that go on as their parents did, and those that do not: what came from outside is told
//! again at its place.

mod again;
mod answers;

use std::collections::HashMap;
use std::sync::Arc;

use log::{BranchId, Event, Head, Log};
use runtime::{Driver, Engine, Executors, Feed, Library, Serving, Snapshots, Step};

use crate::support::flock::events;
use crate::support::name;

/// A fork, its engine, and what it has still to be told.
struct Fork {
    log: Arc<dyn Log>,
    branch: BranchId,
    engine: Engine,
    driver: Driver,
    feed: Feed,
}

impl Fork {
    /// Cuts a branch, which shares nothing but its past.
    fn cut(log: &Arc<dyn Log>, parent: BranchId, events: usize, called: &str) -> BranchId {
        let cut = Head::of_count(events as u64);
        log.fork(parent, cut, &name(called), "").unwrap().id
    }

    fn open(log: &Arc<dyn Log>, branch: BranchId, library: &Library) -> Fork {
        let mut engine = Engine::open(Arc::clone(log), branch, library.clone(), "test").unwrap();
        let mut feed = Feed::of(&**log, branch, &Snapshots::none()).unwrap();
        // Nobody could do anything: what is answered is recorded.
        let mut driver = Driver::new("child", Executors::new()).unwrap();
        driver.serve(Serving::Recorded, feed.answers(&**log).unwrap());
        feed.begin(&mut engine, &mut driver).unwrap();
        Fork { log: Arc::clone(log), branch, engine, driver, feed }
    }

    /// Goes on until it rests, has taken so many activations, or has made so many steps.
    fn run(&mut self, limit: u64, steps: usize) {
        for _ in 0..steps {
            self.feed.feed(&mut self.engine, &mut self.driver).unwrap();
            if self.engine.taken() >= limit {
                break;
            }
            match self.engine.step().unwrap() {
                Step::Fired(_) => {}
                Step::Stopped(_) => break,
                Step::Rest if self.feed.is_done() => break,
                Step::Rest => {
                    let now = log::Time::default();
                    let first = self.feed.answers_next();
                    if first || self.driver.turn(&mut self.engine, now).unwrap().landed == 0 {
                        self.feed.feed_at_rest(&mut self.engine, &mut self.driver).unwrap();
                    }
                }
            }
        }
        self.engine.commit().unwrap();
    }

    fn rest(mut self) -> Vec<Event> {
        self.run(u64::MAX, usize::MAX);
        drop(self.engine);
        events(&*self.log, self.branch)
    }
}

/// Whether the event at `cut` belongs to the same firing as the one before it.
fn splits_firing(events: &[Event], cut: usize) -> bool {
    let (Some(next), Some(before)) = (events.get(cut), events.get(cut.wrapping_sub(1))) else {
        return false;
    };
    next.author().is_some() && before.author() == next.author() && before.taken() == next.taken()
}

/// How often each kind of event is there.
fn kinds(events: &[Event]) -> HashMap<String, usize> {
    let mut kinds = HashMap::new();
    events.iter().for_each(|event| *kinds.entry(event.kind().to_owned()).or_default() += 1);
    kinds
}
