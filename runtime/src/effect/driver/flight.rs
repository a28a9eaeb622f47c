//! An attempt as a task: it runs until it answers, is over its time, or is told to end, and reports
//! exactly once how it ended.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use effect::{Answer, Blame, Call, Cancel, EffectError, Executor, Seen};
use log::EventId;
use tokio::sync::mpsc::UnboundedSender;

use crate::effect::action::Facts;
use crate::effect::attempt::{Flight, Signal, Verdict, Why};

/// What a task tells the driver.
#[derive(Debug)]
pub(super) enum Report {
    /// An attempt ended.
    Ended { action: EventId, attempt: u32, answer: Answer },
    /// An attempt that had ended gave a receipt.
    Late { action: EventId, attempt: u32, answer: Answer },
    /// What a look found.
    Seen { action: EventId, attempt: u32, seen: Seen },
}

/// How long a receipt is waited for after an attempt was given up.
const LATE_WITHIN: Duration = Duration::from_secs(600);

/// An attempt that is out, as the driver holds it.
#[derive(Debug)]
pub(super) struct InFlight {
    flight: Arc<Mutex<Flight>>,
    cancel: Cancel,
    pub(super) cancel_within: Duration,
    /// What was known of the action when it left: a late receipt may come when it is closed.
    pub(super) facts: Facts,
}

fn lock(flight: &Mutex<Flight>) -> MutexGuard<'_, Flight> {
    flight.lock().expect("no thread panics while it holds an attempt")
}

impl InFlight {
    /// Tells the attempt to end.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// The process ends: nothing is reported any more.
    pub(super) fn shut_down(&self) {
        lock(&self.flight).on::<Answer>(Signal::Shutdown);
        self.cancel.cancel();
    }

    pub(super) fn is_over(&self) -> bool {
        lock(&self.flight).has_ended()
    }
}

/// Owes a report: an executor that panics has not said what became of it.
struct Owed {
    action: EventId,
    attempt: u32,
    flight: Arc<Mutex<Flight>>,
    reports: UnboundedSender<Report>,
}

impl Owed {
    fn signal(&self, signal: Signal<Answer>) -> bool {
        let (action, attempt) = (self.action, self.attempt);
        let verdict = lock(&self.flight).on(signal);
        let report = match verdict {
            Verdict::Nothing => return false,
            Verdict::Stop => return true,
            Verdict::GivenUp(why) => {
                Report::Ended { action, attempt, answer: Answer::Unknown(overdue(why)) }
            }
            Verdict::Ended(answer) => Report::Ended { action, attempt, answer },
            Verdict::Late(answer) => Report::Late { action, attempt, answer },
        };
        // Nobody listens any more only when the process ends.
        drop(self.reports.send(report));
        false
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        if !lock(&self.flight).has_ended() {
            let what = "the executor broke off without an answer";
            let action = "find out what became of it, then settle it";
            let error = EffectError::new("runtime.panic", Blame::Machine, what, action);
            self.signal(Signal::Finished(Answer::Unknown(error)));
        }
    }
}

/// The error of an attempt that was told to end and did not.
fn overdue(why: Why) -> EffectError {
    let (kind, what) = match why {
        Why::Timeout => ("runtime.timeout", "it took too long, was told to end, and did not"),
        Why::Cancelled => ("runtime.cancelled", "it was told to end, and did not in time"),
    };
    EffectError::new(kind, Blame::Tool, what, "find out what became of it, then settle it")
}

/// The answer of an attempt that was told to end. An executor hears of both reasons by the same
/// token: what it calls cancelled while nobody cancelled it was over its time, and did nothing.
fn stopped(why: Why, answer: Answer) -> Answer {
    if (why, &answer) != (Why::Timeout, &Answer::Cancelled) {
        return answer;
    }
    let what = "its time was over, and it was ended before it took effect";
    let action = "give it more time, or less to do";
    Answer::Failed(EffectError::new("runtime.timeout", Blame::Tool, what, action).retryable())
}

/// Starts an attempt.
pub(super) fn start(
    runtime: &tokio::runtime::Runtime,
    executor: Arc<dyn Executor>,
    call: Call,
    facts: Facts,
    reports: UnboundedSender<Report>,
) -> InFlight {
    let flight = Arc::new(Mutex::new(Flight::new()));
    let limits = executor.limits();
    let (action, attempt) = (facts.id, call.attempt);
    let cancel = call.cancel.clone();
    let owed = Owed { action, attempt, flight: Arc::clone(&flight), reports };
    runtime.spawn(fly(executor, call, owed, limits.cancel_within));
    InFlight { flight, cancel, cancel_within: limits.cancel_within, facts }
}

async fn fly(executor: Arc<dyn Executor>, call: Call, owed: Owed, cancel_within: Duration) {
    let run = executor.run(&call);
    tokio::pin!(run);
    let why = tokio::select! {
        biased;
        answer = &mut run => {
            owed.signal(Signal::Finished(answer));
            return;
        }
        () = call.cancel.cancelled() => {
            owed.signal(Signal::Cancelled);
            Why::Cancelled
        }
        () = tokio::time::sleep(call.timeout) => {
            owed.signal(Signal::TimedOut);
            call.cancel.cancel();
            Why::Timeout
        }
    };
    // It was told to end: the bound for that begins.
    let answer = tokio::time::timeout(cancel_within, &mut run).await;
    if let Ok(answer) = answer {
        owed.signal(Signal::Finished(stopped(why, answer)));
        return;
    }
    owed.signal(Signal::Overdue);
    if let Ok(answer) = tokio::time::timeout(LATE_WITHIN, &mut run).await {
        owed.signal(Signal::Finished(answer));
    }
}

/// Looks what became of an attempt.
pub(super) fn look(
    runtime: &tokio::runtime::Runtime,
    executor: Arc<dyn Executor>,
    call: Call,
    intent: serde_json::Value,
    action: EventId,
    reports: UnboundedSender<Report>,
) {
    let attempt = call.attempt;
    runtime.spawn(async move {
        let unreachable = |what: &str| {
            let action = "see whether the provider can be reached";
            Seen::Unreachable(EffectError::new("network.look", Blame::Provider, what, action))
        };
        let timeout = executor.limits().timeout;
        let looked = tokio::spawn(async move {
            let look = executor.look(&call, &intent);
            tokio::time::timeout(timeout, look).await.ok()
        });
        let seen = match looked.await {
            Ok(Some(seen)) => seen,
            Ok(None) => unreachable("the look took too long"),
            Err(_) => unreachable("the look broke off"),
        };
        drop(reports.send(Report::Seen { action, attempt, seen }));
    });
}
