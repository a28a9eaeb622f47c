//! What the ancestors of a fork were told after its cut, and have not passed on to it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use behaviors::ReactError;
use log::{BranchId, BranchName, Event, EventId, Head, Log, ValueRef, read};
use smol_str::SmolStr;

use crate::effect::{Serving, action_of, is_inner};
use crate::engine::activation::firing_of;
use crate::engine::state::State;
use crate::engine::{EngineError, Stop, catching::Past};
use crate::flock::workspace::Fork;
use crate::snapshot::Snapshots;

/// A line of history that went on where a fork left it.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) branch: BranchId,
    pub(super) name: BranchName,
    /// Where the fork left it.
    pub(super) cut: Head,
    /// How far it went when the fork was made.
    pub(super) until: Head,
}

/// An event from outside, and the count of activations that it waits for.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) need: u64,
    pub(super) event: Event,
    /// The line that it is from.
    pub(super) line: usize,
}

/// What a fork has still to be told.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) lines: Vec<Line>,
    pub(super) told: Vec<Told>,
    /// Firings that the machine ended, by the name of the firing.
    pub(super) stops: HashMap<EventId, Stop>,
    /// The behaviors that the fork changed: their activations do not count.
    pub(super) changed: BTreeSet<SmolStr>,
    /// What the fork was told itself since its cut.
    pub(super) own: Vec<Event>,
    /// Whether it was told nothing that its ancestors were not.
    pub(super) same: bool,
}

/// The kinds by which a behavior is another than before.
const CHANGES: [&str; 4] =
    ["behavior.loaded", "behavior.removed", "behavior.disabled", "behavior.enabled"];

impl History {
    /// Reads what is recorded for a fork; nothing for a branch that is none, or is to ask anew.
    pub(super) fn of(
        log: &dyn Log,
        branch: BranchId,
        snapshots: &Snapshots,
    ) -> Result<History, EngineError> {
        let lines = lines(log, branch)?;
        let Some(lowest) = lines.last().map(|line| line.cut) else { return Ok(History::default()) };
        let own = outside(log, branch, lowest)?;
        let changed_at = first_events(log, branch)?;
        // What a fork changes at its cut may be what its parent did later: it has not come to that.
        let own_doing = |event: &Event| {
            changed_at.iter().any(|changes| changes.contains(&event.offset().get()))
        };
        let known: HashSet<EventId> =
            own.iter().filter(|event| !own_doing(event)).map(Event::id).collect();
        let mut read = Reading::default();
        for (number, line) in lines.iter().enumerate() {
            read.line(log, number, line)?;
        }
        let mut told = read.told;
        let repeats = |event: &Event| {
            read.by_id.get(&event.id()).is_some_and(|place: &usize| {
                let recorded: &Event = &told[*place].event;
                recorded.same_content(event)
            })
        };
        let told_before = |event: &Event| !own_doing(event) && repeats(event);
        let changes =
            own.iter().filter(|event| CHANGES.contains(&event.kind()) && !told_before(event));
        let changed: BTreeSet<SmolStr> = changes.filter_map(named).collect();
        let same = own.iter().all(told_before);
        // What stands before the last that came here has had its turn: it came, or made no sense.
        let came = |told: &Told| known.contains(&told.event.id());
        let passed = told.iter().rposition(|told| came(told) && about(&told.event).is_none());
        let mut place = 0;
        told.retain(|told| {
            let had_its_turn = passed.is_some_and(|passed| place <= passed);
            place += 1;
            !came(told) && (about(&told.event).is_some() || !had_its_turn)
        });
        // An attempt of which nobody knows how it ended is not begun here.
        told.retain(|told| read.ends.contains(&attempt(&told.event)) || !leaves(&told.event));
        if !changed.is_empty() {
            count_without(log, snapshots, &lines, &changed, &mut told)?;
        }
        Ok(History { lines, told, stops: read.stops, changed, own, same })
    }
}

/// The action that an event of the runtime is about.
pub(super) fn about(event: &Event) -> Option<EventId> {
    let of_effects = event.kind().starts_with("effect.") || event.kind().starts_with("attempt.");
    if of_effects { action_of(event) } else { None }
}

/// The lines that a fork left, its parent's first, as long as each was served what is recorded.
fn lines(log: &dyn Log, branch: BranchId) -> Result<Vec<Line>, EngineError> {
    let mut lines = Vec::new();
    let mut at = log.branch(branch)?;
    while let Some(fork) = &at.fork {
        let record = Fork::read(&fork.serving);
        // A branch without a beginning is begun anew.
        if record.serving == Some(Serving::Live) || fork.cut.count() == 0 {
            break;
        }
        let parent = log.branch(fork.parent)?;
        let head = parent.tip.head;
        let until = record.until.map_or(head, |until| until.min(head));
        lines.push(Line { branch: parent.id, name: parent.name.clone(), cut: fork.cut, until });
        at = parent;
    }
    Ok(lines)
}

/// Where on a branch the events stand that it, and the forks that it comes from, changed.
fn first_events(log: &dyn Log, branch: BranchId) -> Result<Vec<Range<u64>>, EngineError> {
    let (mut all, mut at, mut end) = (Vec::new(), log.branch(branch)?, u64::MAX);
    while let Some(fork) = &at.fork {
        let first = fork.cut.count();
        all.push(first..end.min(first + Fork::read(&fork.serving).changes));
        (end, at) = (first, log.branch(fork.parent)?);
    }
    Ok(all)
}

/// The events from outside on a line of history after a cut.
fn outside(log: &dyn Log, branch: BranchId, cut: Head) -> Result<Vec<Event>, EngineError> {
    let mut events = Vec::new();
    for event in read(log, branch, cut.next()..log.branch(branch)?.tip.head.next())? {
        let event = event?;
        if event.author().is_none() {
            events.push(event);
        }
    }
    Ok(events)
}

#[derive(Default)]
struct Reading {
    told: Vec<Told>,
    by_id: HashMap<EventId, usize>,
    ends: HashSet<Option<(EventId, i64)>>,
    stops: HashMap<EventId, Stop>,
    refused: HashMap<EventId, u64>,
}

impl Reading {
    fn line(&mut self, log: &dyn Log, number: usize, line: &Line) -> Result<(), EngineError> {
        for event in read(log, line.branch, line.cut.next()..line.until.next())? {
            let event = event?;
            if event.author().is_some() {
                self.firing(&event);
            } else if !self.by_id.contains_key(&event.id()) {
                self.by_id.insert(event.id(), self.told.len());
                if event.kind() == "attempt.ended" {
                    self.ends.insert(attempt(&event));
                }
                self.told.push(Told { need: event.taken(), event, line: number });
            }
        }
        Ok(())
    }

    fn firing(&mut self, event: &Event) {
        let conflicted = event.is_kind("behavior.conflicted");
        if !conflicted && !event.is_kind("behavior.failed") {
            return;
        }
        let Some(label) = event.cause().as_ref().and_then(firing_of) else { return };
        let refused = self.refused.entry(label).or_default();
        if conflicted {
            *refused += 1;
        } else if event.payload().get("stopped") == Some(ValueRef::Bool(true)) {
            let error = error_of(event);
            self.stops.entry(label).or_insert(Stop { refused: *refused, error });
        }
    }
}

/// The attempt that an event is about.
fn attempt(event: &Event) -> Option<(EventId, i64)> {
    Some((action_of(event)?, event.payload().get("attempt")?.as_i64()?))
}

/// Whether an event lets an attempt leave that somebody outside ends.
fn leaves(event: &Event) -> bool {
    let executor = event.payload().get("executor").and_then(|executor| executor.as_str());
    event.kind() == "effect.dispatched" && !executor.is_some_and(is_inner)
}

/// What `behavior.failed` was made of.
fn error_of(event: &Event) -> ReactError {
    let payload = event.payload();
    let text = |name: &str| payload.get(name).and_then(|v| v.as_str()).map(str::to_owned);
    let line = payload.get("line").and_then(|line| line.as_i64());
    ReactError {
        message: text("error").unwrap_or_default(),
        file: text("file"),
        line: line.and_then(|line| u32::try_from(line).ok()),
        column: None,
        line_text: text("source"),
        stopped: true,
    }
}

fn named(event: &Event) -> Option<SmolStr> {
    event.payload().get("name").and_then(|name| name.as_str()).map(SmolStr::from)
}

/// Counts activations as the fork does, which leaves out those of the behaviors it changed.
fn count_without(
    log: &dyn Log,
    snapshots: &Snapshots,
    lines: &[Line],
    changed: &BTreeSet<SmolStr>,
    told: &mut [Told],
) -> Result<(), EngineError> {
    let mut places: HashMap<EventId, &mut Told> =
        told.iter_mut().map(|told| (told.event.id(), told)).collect();
    for line in lines {
        let mut state: State = snapshots.fold_branch(log, line.branch, line.cut)?;
        for event in read(log, line.branch, line.cut.next()..line.until.next())? {
            let event = event?;
            state.fold(&event, Past::Of(log, line.branch))?;
            if let Some(told) = places.get_mut(&event.id()) {
                told.need = state.taken_without(changed);
            }
        }
    }
    Ok(())
}
