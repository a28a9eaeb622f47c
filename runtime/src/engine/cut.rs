//! Where a branch may be cut: between firings, and not inside of the batch that started it.

use log::{BranchId, Event, Head, Log, LogError, Offset, read, read_one};

/// How many events the batch that starts a branch has, as `flock.started` says.
pub(super) const START_EVENTS: &str = "start_events";

/// The cut that is meant by `asked`: inside of a firing it moves to the firing's first offset,
/// inside of the start batch to its end.
///
/// # Errors
/// The log cannot be read.
pub(crate) fn between_firings(
    log: &dyn Log,
    branch: BranchId,
    asked: Head,
) -> Result<Head, LogError> {
    let head = log.branch(branch)?.tip.head;
    let Some(last) = asked.last().filter(|_| asked < head) else { return Ok(asked) };
    let started = read_one(log, branch, Offset::ZERO)?;
    let start = started.payload().get(START_EVENTS).and_then(|count| count.as_i64());
    let start = start.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    if asked.count() < start {
        return Ok(Head::of_count(start).min(head));
    }
    let next = read_one(log, branch, asked.next())?;
    let mut first = last;
    let same = |event: &Event| event.author().is_some() && event.taken() == next.taken();
    if next.author().is_none() || !same(&read_one(log, branch, last)?) {
        return Ok(asked);
    }
    // A firing is short, and its events stand one after the other.
    while first > Offset::ZERO {
        let before = Offset::new(first.get() - 1);
        match read(log, branch, before..first)?.next().transpose()? {
            Some(event) if same(&event) => first = before,
            _ => break,
        }
    }
    Ok(Head::of_count(first.get()))
}

#[cfg(test)]
mod tests {
    use log::{Batch, BranchName, Cause, Derivation, Draft, EventId, LogId, MemoryLog};

    use super::*;

    fn event(nth: u64, taken: Option<u64>) -> Draft {
        let id = Derivation::new().integer(nth).finish();
        let mut draft = Draft::new(id, "thing.happened", "runtime");
        if let Some(taken) = taken {
            let (event, behavior, row) = (EventId::ZERO, "b".into(), Vec::new());
            draft.cause = Some(Cause::Firing { event, behavior, row });
            draft.taken = taken;
        }
        if nth == 0 {
            draft.payload.insert(START_EVENTS.to_owned(), 2.into());
        }
        draft
    }

    /// Two start events, a firing of two events, a firing of one, an event from outside.
    #[test]
    fn a_cut_inside_of_a_firing_moves_to_its_beginning_and_one_inside_of_the_start_to_its_end() {
        let log = MemoryLog::new(LogId::ZERO);
        let main = log.create(&BranchName::main()).expect("a branch").id;
        let taken = [None, None, Some(1), Some(1), Some(2), None];
        let drafts: Vec<Draft> =
            taken.into_iter().enumerate().map(|(nth, t)| event(nth as u64, t)).collect();
        let batch = Batch::of_drafts(Offset::ZERO, &drafts).expect("drafts");
        let claim = log.claim(main, "test").expect("nobody has it");
        let append = log::Append { branch: main, batch, expected: Head::EMPTY, epoch: claim.epoch };
        log.submit(append).wait().expect("it answers").expect("it lands");
        let cuts = [(0, 0), (1, 2), (2, 2), (3, 2), (4, 4), (5, 5), (6, 6)];
        for (asked, expected) in cuts {
            let cut = between_firings(&log, main, Head::of_count(asked)).expect("it reads");
            assert_eq!(cut, Head::of_count(expected), "asked for {asked}");
        }
    }
}
