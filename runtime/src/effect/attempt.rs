//! One attempt in flight: finishing, a timeout, a cancellation and a shutdown race, and exactly one
//! of them decides how it ended.
//!
//! A state machine without clock, thread or task. Whoever drives it holds it behind a lock and
//! tells it what happened; each signal is answered with what to do. What comes after the end is a
//! late receipt.

use effect::{Answer, Blame, EffectError};

/// What happens to an attempt.
#[derive(Clone, Debug)]
pub enum Signal {
    /// Its executor answered.
    Finished(Answer),
    /// Its time is over.
    TimedOut,
    /// Somebody wants it to end.
    Cancelled,
    /// It was told to end, and the bound for that is over as well.
    Overdue,
    /// The process that waits for it ends.
    Shutdown,
}

/// What is to be done after a signal.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing.
    Nothing,
    /// The executor is to be told to end, and the bound for that begins.
    Stop,
    /// It has ended so. This is said once.
    Ended(Answer),
    /// It had ended before: this receipt is late.
    Late(Answer),
}

/// Where an attempt is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Out,
    /// It was told to end, because of this.
    Stopping(Why),
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Timeout,
    Cancelled,
}

/// One attempt in flight.
#[derive(Clone, Debug, Default)]
pub struct Flight {
    state: State,
}

impl Flight {
    /// An attempt that has just left.
    #[must_use]
    pub fn new() -> Self {
        Flight::default()
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// What follows from a signal.
    pub fn on(&mut self, signal: Signal) -> Verdict {
        match (self.state.clone(), signal) {
            (State::Ended, Signal::Finished(answer)) => Verdict::Late(answer),
            (State::Ended, _) => Verdict::Nothing,
            (_, Signal::Finished(answer)) => self.end(answer),
            (State::Out, Signal::TimedOut) => self.stop(Why::Timeout),
            (State::Out, Signal::Cancelled) => self.stop(Why::Cancelled),
            // It was not told to end, so no bound has begun: a signal of an attempt before it.
            (State::Out, Signal::Overdue) => Verdict::Nothing,
            (State::Stopping(_), Signal::TimedOut | Signal::Cancelled) => Verdict::Nothing,
            (State::Stopping(why), Signal::Overdue) => self.end(Answer::Unknown(overdue(why))),
            // Not said to have ended: it is not known here, and the log already tells whoever comes
            // next that an attempt was out.
            (State::Out | State::Stopping(_), Signal::Shutdown) => {
                self.state = State::Ended;
                Verdict::Stop
            }
        }
    }

    fn stop(&mut self, why: Why) -> Verdict {
        self.state = State::Stopping(why);
        Verdict::Stop
    }

    fn end(&mut self, answer: Answer) -> Verdict {
        self.state = State::Ended;
        Verdict::Ended(answer)
    }
}

fn overdue(why: Why) -> EffectError {
    let (kind, what) = match why {
        Why::Timeout => ("runtime.timeout", "it took too long, was told to end, and did not"),
        Why::Cancelled => ("runtime.cancelled", "it was told to end, and did not in time"),
    };
    EffectError::new(kind, Blame::Tool, what, "find out what became of it, then settle it")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn done() -> Answer {
        Answer::Succeeded { result: json!({}), fingerprint: None }
    }

    /// A tool that ignores its cancellation was once reported as failed while its write landed.
    #[test]
    fn what_does_not_end_in_time_is_unknown_and_its_receipt_is_late() {
        let mut flight = Flight::new();
        assert_eq!(flight.on(Signal::TimedOut), Verdict::Stop);
        let Verdict::Ended(Answer::Unknown(error)) = flight.on(Signal::Overdue) else {
            panic!("it ends unknown");
        };
        assert_eq!(error.kind, "runtime.timeout");
        assert_eq!(flight.on(Signal::Finished(done())), Verdict::Late(done()));
        assert_eq!(flight.on(Signal::Cancelled), Verdict::Nothing);
    }

    #[test]
    fn an_answer_within_the_bound_counts() {
        let mut flight = Flight::new();
        assert_eq!(flight.on(Signal::Cancelled), Verdict::Stop);
        assert_eq!(flight.on(Signal::TimedOut), Verdict::Nothing);
        assert_eq!(flight.on(Signal::Finished(done())), Verdict::Ended(done()));
        assert_eq!(flight.on(Signal::Overdue), Verdict::Nothing);
    }

    #[test]
    fn a_shutdown_says_nothing_about_an_attempt() {
        let mut flight = Flight::new();
        assert_eq!(flight.on(Signal::Shutdown), Verdict::Stop);
        assert!(flight.has_ended());
        assert_eq!(flight.on(Signal::Shutdown), Verdict::Nothing);
    }
}
