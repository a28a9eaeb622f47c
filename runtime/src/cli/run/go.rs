//! The loop of a run: fire what is due, do what can be done about effects, follow the files, and
//! wait when there is nothing else.

use std::time::Duration;

use projection::Pattern;

use super::effects::{Effects, Waits};
use super::live::Live;
use super::stop::Stop;
use super::{End, PROGRESS_EVERY};
use crate::cli::failure::Failure;
use crate::cli::shell::Shell;
use crate::clock::Stopwatch;
use crate::engine::{Engine, Step};

/// What a run is for, and how long it takes.
pub(super) struct Going<'r, 'f> {
    pub(super) until: Option<&'r Pattern>,
    /// How long it may take by the clock.
    pub(super) wall: Option<u64>,
    pub(super) watch: Stopwatch,
    /// Whether it waits for people.
    pub(super) people: bool,
    pub(super) effects: &'r mut Effects<'f>,
    pub(super) live: &'r mut Live,
}

impl Going<'_, '_> {
    /// Runs until the end, and makes everything durable.
    pub(super) fn go(
        &mut self,
        engine: &mut Engine,
        shell: &mut Shell<'_>,
    ) -> Result<End, Failure> {
        let mut stop = Stop::on_signals();
        let shows = shell.shows_progress();
        let (mut shown, mut steps) = (Duration::ZERO, 0u64);
        self.effects.begin(engine)?;
        let end = loop {
            self.effects.feed(engine)?;
            let between = !engine.in_round();
            if between && self.until.is_some_and(|pattern| engine.holds(pattern)) {
                break End::Until;
            }
            if between && stop.is_wanted() {
                break End::Interrupted;
            }
            if between && self.live.has_news() {
                self.live.apply(engine, shell)?;
            }
            let turns = between && self.effects.is_fed();
            if turns && (self.effects.has_news() || steps % 64 == 63) {
                self.effects.turn(engine)?;
            }
            let elapsed = self.watch.elapsed();
            let end = match engine.step()? {
                Step::Fired(_) => None,
                Step::Rest => Some(End::Rest),
                Step::Stopped(reached) => Some(End::Bound(reached)),
            };
            if let Some(end) = end {
                match self.rest(engine, end, &mut stop, shell)? {
                    Some(end) => break end,
                    None => continue,
                }
            }
            self.live.moved();
            for line in engine.take_printed() {
                shell.say(line);
            }
            steps += 1;
            if steps.is_multiple_of(64) {
                if let Some(wall) = self.wall.filter(|wall| elapsed.as_secs() >= *wall) {
                    break End::Wall(wall);
                }
                if shows && elapsed >= shown + PROGRESS_EVERY {
                    shown = elapsed;
                    shell.progress(progress(engine, elapsed));
                }
            }
        };
        self.effects.stop(engine)?;
        engine.commit()?;
        if shows {
            shell.progress("");
        }
        Ok(end)
    }

    /// Nothing is due, or a bound was reached: waits for what may come. Gives the end of the run if
    /// nothing may.
    fn rest(
        &mut self,
        engine: &mut Engine,
        end: End,
        stop: &mut Stop,
        shell: &mut Shell<'_>,
    ) -> Result<Option<End>, Failure> {
        if matches!(end, End::Bound(_)) && !self.live.rests() {
            return Ok(Some(end));
        }
        if !self.effects.is_fed() && matches!(end, End::Rest) {
            self.effects.feed_at_rest(engine)?;
            return Ok(None);
        }
        if self.effects.turn(engine)? > 0 {
            return Ok(None);
        }
        let wall = self.wall.map(Duration::from_secs);
        let left = wall.map(|wall| wall.saturating_sub(self.watch.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(Some(End::Wall(self.wall.unwrap_or(0))));
        }
        engine.commit()?;
        if self.live.rests() {
            let why = match &end {
                End::Bound(reached) => reached.to_string(),
                _ => "at rest".to_owned(),
            };
            self.live.tell_rest(&why, engine, shell);
        }
        let waits = Waits { people: self.people, live: self.live, wall: left, stop };
        Ok(if self.effects.wait(engine, waits)? { None } else { Some(end) })
    }
}

fn progress(engine: &Engine, elapsed: Duration) -> String {
    let (events, seconds) = (engine.head().count(), elapsed.as_secs_f64());
    format!("{events} events, {} firings, {seconds:.1} s", engine.taken())
}
