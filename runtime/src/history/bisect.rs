//! When a pattern became true: between a world where it has no match and one where it has.
//!
//! The search halves what lies between them. Each world is folded on from the last one in which the
//! pattern had no match, or from a snapshot that is nearer; so with snapshots a question reads a
//! few of them and their tails, and without any it folds each event at most once.

use std::ops::ControlFlow;

use log::{BranchId, Event, Head, Log, read_one};
use projection::{Delta, Env, Graph, Pattern, Query, Row, Steps};

use super::trace;
use crate::engine::{EngineError, FoldError};
use crate::snapshot::Snapshots;

/// How many elements one question may look at.
const STEPS_MAX: u64 = 100_000_000;

/// What became of a search.
#[derive(Clone, Debug)]
pub enum Turned {
    /// The pattern had no match before this event, and has one after it.
    At(Box<Turning>),
    /// It has a match already at the beginning.
    Before,
    /// It has none at the end.
    Not,
}

/// The event at which a pattern became true.
#[derive(Clone, Debug)]
pub struct Turning {
    /// The event.
    pub event: Event,
    /// A match that it made true.
    pub row: Row,
    /// How many worlds were looked at.
    pub worlds: u64,
}

fn missed(what: impl ToString) -> EngineError {
    EngineError::Refused(what.to_string())
}

/// Whether a pattern has a match in a world.
fn holds(query: &Query, graph: &mut Graph) -> Result<bool, EngineError> {
    for (type_name, property) in query.indexes() {
        graph.declare_index(&type_name, &property);
    }
    let mut found = false;
    let asked = query.run(graph, &Env::EMPTY, &Steps::up_to(STEPS_MAX), &mut |_| {
        found = true;
        ControlFlow::Break(())
    });
    if found { Ok(true) } else { asked.map(|()| false).map_err(missed) }
}

/// Finds an event between two heads at which a pattern turned from false to true, in so many steps
/// as their distance can be halved.
///
/// # Errors
/// The log is damaged, or the pattern costs too much.
pub fn bisect(
    log: &dyn Log,
    snapshots: &Snapshots,
    branch: BranchId,
    (from, until): (Head, Head),
    pattern: &Pattern,
) -> Result<Turned, EngineError> {
    let query = Query::parse(pattern.text()).map_err(missed)?;
    let mut without = snapshots.graph_at(log, branch, from)?;
    let mut worlds = 2;
    if holds(&query, &mut without)? {
        return Ok(Turned::Before);
    }
    if !holds(&query, &mut snapshots.graph_on(without.clone(), log, branch, until)?)? {
        return Ok(Turned::Not);
    }
    let mut with = until;
    while with.count() - without.head().count() > 1 {
        let middle = without.head().count() + (with.count() - without.head().count()) / 2;
        let middle = Head::of_count(middle);
        let mut world = snapshots.graph_on(without.clone(), log, branch, middle)?;
        worlds += 1;
        if holds(&query, &mut world)? {
            with = middle;
        } else {
            without = world;
        }
    }
    let (event, row) = risen(log, branch, &mut without, with, pattern)?;
    Ok(Turned::At(Box::new(Turning { event, row, worlds })))
}

/// The event after a world without a match, and the first match that it made true.
fn risen(
    log: &dyn Log,
    branch: BranchId,
    world: &mut Graph,
    with: Head,
    pattern: &Pattern,
) -> Result<(Event, Row), EngineError> {
    let event = read_one(log, branch, world.head().next())?;
    assert_eq!(Head::after(event.offset()), with, "one event lies between the two worlds");
    let delta = world.apply(&event).map_err(FoldError::refused(event.offset()))?;
    let row = first_risen(pattern, world, &delta)?;
    Ok((event, row.expect("a pattern without a match that then has one has a new one")))
}

/// Finds the first event between two heads at which a pattern turned true, by folding all of them.
///
/// # Errors
/// As `bisect`.
pub fn first_true(
    log: &dyn Log,
    snapshots: &Snapshots,
    branch: BranchId,
    (from, until): (Head, Head),
    pattern: &Pattern,
) -> Result<Turned, EngineError> {
    let query = Query::parse(pattern.text()).map_err(missed)?;
    let mut world = snapshots.graph_at(log, branch, from)?;
    if holds(&query, &mut world)? {
        return Ok(Turned::Before);
    }
    for (type_name, property) in pattern.indexes_for_delta() {
        world.declare_index(&type_name, &property);
    }
    let mut turned = Ok(Turned::Not);
    trace(log, branch, &mut world, until, |event, graph, delta| {
        let worlds = from.next().distance_to(event.offset()) + 1;
        let at = |row| Turned::At(Box::new(Turning { event: event.clone(), row, worlds }));
        match first_risen(pattern, graph, delta) {
            Ok(None) => return ControlFlow::Continue(()),
            risen => turned = risen.map(|row| row.map_or(Turned::Not, at)),
        }
        ControlFlow::Break(())
    })?;
    turned
}

/// The first match that an event made true; none if it made none.
fn first_risen(
    pattern: &Pattern,
    graph: &Graph,
    delta: &Delta,
) -> Result<Option<Row>, EngineError> {
    let rows = pattern.delta(graph, delta, &Env::EMPTY, &Steps::up_to(STEPS_MAX));
    Ok(rows.map_err(missed)?.risen.into_iter().next())
}
