//! What a firing of the log was shown: its behavior, its match and what it read, found by folding
//! to where it was taken. Its code is not run.

use log::{Bound, Event, Log, Offset};
use projection::{Graph, Row};

use super::FoldError;
use super::catching::Past;
use super::evaluate::Seen;
use super::state::State;

/// An element as a firing saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Saw {
    pub(crate) id: String,
    /// The event that had changed it last; none for one that had vanished.
    pub(crate) changed: Option<Offset>,
}

/// What a firing was shown.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) behavior: String,
    /// The hash of its source.
    pub(crate) hash: String,
    /// The file, relative to the flock; empty for a behavior that came from none.
    pub(crate) path: String,
    /// The elements of the match, each with the name that it is bound to.
    pub(crate) bound: Vec<(Option<String>, Vec<Saw>)>,
    /// What each declared read gave.
    pub(crate) reads: Vec<(String, Vec<Saw>)>,
}

/// Folds a state on to the firing that emitted `event`, and tells what it was shown. `None` if the
/// state is beyond it, or the event is of no firing.
pub(crate) fn shown(
    state: &mut State,
    log: &dyn Log,
    branch: log::BranchId,
    event: &Event,
) -> Result<Option<Shown>, FoldError> {
    let taken = event.taken();
    let Some(author) = event.author() else { return Ok(None) };
    if state.taken >= taken {
        return Ok(None);
    }
    let past = Past::Of(log, branch);
    for next in log::read(log, branch, state.head.next()..event.offset())? {
        let next = next?;
        if next.taken() >= taken {
            break;
        }
        state.fold(&next, past)?;
    }
    while state.taken < taken {
        if state.take(past)?.is_none() {
            return Err(FoldError::NothingDue { offset: event.offset(), taken });
        }
    }
    let Some(activation) = state.last.as_ref().filter(|last| last.behavior == author) else {
        return Ok(None);
    };
    let Some(subscription) = state.subscriptions.get(&activation.behavior) else { return Ok(None) };
    let world = state.round.base.as_ref().unwrap_or(&state.graph);
    let seen = Seen { world, activation, subscription };
    let variables = subscription.pattern.iter().flat_map(|pattern| &pattern.variables);
    let bound = variables.zip(&activation.row.bound).map(|(variable, bound)| {
        (variable.name.as_ref().map(ToString::to_string), saw(world, [bound]))
    });
    let env = state.env(Some(activation.seen()));
    // A read that costs too much failed then as it does now.
    let rows = seen.read_rows(&env).unwrap_or_default();
    let reads =
        rows.iter().map(|read| (read.name.to_owned(), saw(world, free(&read.rows, &read.free))));
    Ok(Some(Shown {
        behavior: activation.behavior.to_string(),
        hash: subscription.hash.to_string(),
        path: subscription.path(),
        bound: bound.collect(),
        reads: reads.collect(),
    }))
}

fn free<'r>(rows: &'r [Row], free: &'r [usize]) -> impl Iterator<Item = &'r Bound> {
    rows.iter().flat_map(|row| free.iter().map(|place| &row.bound[*place]))
}

fn saw<'b>(world: &Graph, bound: impl IntoIterator<Item = &'b Bound>) -> Vec<Saw> {
    let ids = bound.into_iter().flat_map(Bound::ids);
    let saw = |id: &smol_str::SmolStr| Saw {
        id: id.to_string(),
        changed: world.element(id).map(|element| element.changed()),
    };
    ids.map(saw).collect()
}
