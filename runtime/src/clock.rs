//! The only file that reads the time. Only events from outside need it; all else copies theirs.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use log::Time;

/// The time now. A clock that is set beyond the years that can be written counts as set to 1970.
pub(crate) fn now() -> Time {
    let ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()),
        Err(before) => i64::try_from(before.duration().as_millis()).map(|ms| -ms),
    };
    ms.ok().and_then(Time::from_ms).unwrap_or(Time::EPOCH)
}

/// Measures how long something takes, for people; it is never part of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Stopwatch(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
