//! One attempt in flight: finishing, a timeout, a cancellation and a shutdown race, and exactly one
//! of them decides how it ended.
//!
//! A state machine without clock, thread, task or any other part of the project, so that every
//! schedule of it can be tried (`tests/schedules`). Whoever drives it holds it behind a lock and
//! tells it what happened; each signal is answered with what to do. What comes after the end is a
//! late receipt.

/// What happens to an attempt.
#[derive(Clone, Debug)]
pub(crate) enum Signal<A> {
    /// Its executor answered.
    Finished(A),
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
pub(crate) enum Verdict<A> {
    /// Nothing.
    Nothing,
    /// The executor is to be told to end, and the bound for that begins.
    Stop,
    /// It has ended so. Either this or `GivenUp` is said, once.
    Ended(A),
    /// It did not end though it was told to: nobody knows what became of it.
    GivenUp(Why),
    /// It had ended before: this receipt is late.
    Late(A),
}

/// Why an attempt was told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It took too long.
    Timeout,
    /// Somebody wanted it to.
    Cancelled,
}

/// Where an attempt is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Out,
    /// It was told to end, because of this.
    Stopping(Why),
    Ended,
}

/// One attempt in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    state: State,
}

impl Flight {
    /// An attempt that has just left.
    #[must_use]
    pub(crate) fn new() -> Self {
        Flight::default()
    }

    /// Whether it has ended.
    #[must_use]
    pub(crate) fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// What follows from a signal.
    pub(crate) fn on<A>(&mut self, signal: Signal<A>) -> Verdict<A> {
        match (self.state, signal) {
            (State::Ended, Signal::Finished(answer)) => Verdict::Late(answer),
            (State::Ended, _) => Verdict::Nothing,
            (_, Signal::Finished(answer)) => {
                self.state = State::Ended;
                Verdict::Ended(answer)
            }
            (State::Out, Signal::TimedOut) => self.stop(Why::Timeout),
            (State::Out, Signal::Cancelled) => self.stop(Why::Cancelled),
            // It was not told to end, so no bound has begun: a signal of an attempt before it.
            (State::Out, Signal::Overdue) => Verdict::Nothing,
            (State::Stopping(_), Signal::TimedOut | Signal::Cancelled) => Verdict::Nothing,
            (State::Stopping(why), Signal::Overdue) => {
                self.state = State::Ended;
                Verdict::GivenUp(why)
            }
            // Not said to have ended: it is not known here, and the log already tells whoever comes
            // next that an attempt was out.
            (State::Out | State::Stopping(_), Signal::Shutdown) => {
                self.state = State::Ended;
                Verdict::Stop
            }
        }
    }

    fn stop<A>(&mut self, why: Why) -> Verdict<A> {
        self.state = State::Stopping(why);
        Verdict::Stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tool that ignores its cancellation was once reported as failed while its write landed.
    #[test]
    fn what_does_not_end_in_time_is_given_up_and_its_receipt_is_late() {
        let mut flight = Flight::new();
        assert_eq!(flight.on::<u8>(Signal::TimedOut), Verdict::Stop);
        assert_eq!(flight.on::<u8>(Signal::Overdue), Verdict::GivenUp(Why::Timeout));
        assert_eq!(flight.on(Signal::Finished(7)), Verdict::Late(7));
        assert_eq!(flight.on::<u8>(Signal::Cancelled), Verdict::Nothing);
    }

    #[test]
    fn an_answer_within_the_bound_counts() {
        let mut flight = Flight::new();
        assert_eq!(flight.on::<u8>(Signal::Cancelled), Verdict::Stop);
        assert_eq!(flight.on::<u8>(Signal::TimedOut), Verdict::Nothing);
        assert_eq!(flight.on(Signal::Finished(7)), Verdict::Ended(7));
        assert_eq!(flight.on::<u8>(Signal::Overdue), Verdict::Nothing);
    }

    #[test]
    fn a_shutdown_says_nothing_about_an_attempt() {
        let mut flight = Flight::new();
        assert_eq!(flight.on::<u8>(Signal::Shutdown), Verdict::Stop);
        assert!(flight.has_ended());
        assert_eq!(flight.on::<u8>(Signal::Shutdown), Verdict::Nothing);
    }
}
