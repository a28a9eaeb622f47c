//! Full matching: every match of a pattern in a graph, from what is given, and whether one stands.

use log::Bound;

use crate::graph::{Born, ElementRef, Graph};
use crate::pattern::env::Env;
use crate::pattern::program::{Kind, Program, SlotSet, bit};
use crate::pattern::row::{Row, in_order};
use crate::pattern::search::{Aim, Halt, Search, Task};
use crate::pattern::steps::{Exhausted, Steps};
use crate::world::World;

/// The whole pattern, all of it.
pub(super) const WHOLE: Task = Task { scope: 0, aim: Aim::Match };

/// Every match that binds each given variable to the element with the given id.
pub(super) fn matches(
    program: &Program,
    graph: &Graph,
    given: &[(&str, &str)],
    env: &Env<'_>,
    steps: &Steps,
) -> Result<Vec<Row>, Exhausted> {
    let mut search = Search::new(graph, graph, program, env, steps);
    let Some(bound) = bind_given(&mut search, given) else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    let run = search.run(WHOLE, bound, &mut |search, _| {
        rows.push(Row::of(search));
        Ok(())
    });
    match run {
        Ok(()) | Err(Halt::Enough) => Ok(in_order(rows)),
        Err(Halt::Exhausted(exhausted)) => Err(exhausted),
    }
}

/// Puts the given elements in their slots; `None` if one is not there or does not fit.
fn bind_given<W: World>(search: &mut Search<'_, W>, given: &[(&str, &str)]) -> Option<SlotSet> {
    let mut bound = 0;
    for (name, id) in given {
        let named = |slot: &usize| search.program.slots[*slot].name.as_deref() == Some(*name);
        let Some(slot) = (0..super::outer_slots(search.program)).find(named) else { continue };
        let element = search.world.find(id)?;
        let again = bound & bit(slot) != 0 && search.frame[slot] != element;
        if again || !fits_kind(search.program, slot, element) {
            return None;
        }
        search.frame[slot] = element;
        bound |= bit(slot);
    }
    search.admits(bound).then_some(bound)
}

fn fits_kind(program: &Program, slot: usize, element: ElementRef) -> bool {
    match program.slots[slot].kind {
        Kind::Node => element.node().is_some(),
        Kind::Edge => element.edge().is_some(),
        Kind::Path => false,
    }
}

/// The order of a row if it stands in a graph.
pub(super) fn stands(
    program: &Program,
    graph: &Graph,
    row: &[Bound],
    env: &Env<'_>,
    steps: &Steps,
) -> Result<Option<Vec<Born>>, Exhausted> {
    let mut search = Search::new(graph, graph, program, env, steps);
    if row.len() != super::outer_slots(program) || !bind_row(&mut search, row) {
        return Ok(None);
    }
    Ok(is_match(&mut search)?.then(|| Row::of(&search).order))
}

/// Puts the elements of a row in their slots; false if one is not there.
fn bind_row<W: World>(search: &mut Search<'_, W>, row: &[Bound]) -> bool {
    for (slot, bound) in row.iter().enumerate() {
        match bound {
            Bound::Element(id) => match search.world.find(id) {
                Some(element) if fits_kind(search.program, slot, element) => {
                    search.frame[slot] = element;
                }
                _ => return false,
            },
            Bound::Path(ids) => {
                if search.program.slots[slot].kind != Kind::Path {
                    return false;
                }
                search.paths[slot].clear();
                for id in ids {
                    let edge = search.world.find(id).and_then(ElementRef::edge);
                    let Some(edge) = edge else { return false };
                    search.paths[slot].push(edge);
                }
            }
        }
    }
    true
}

/// Whether what is in all slots of the pattern is a match.
pub(super) fn is_match<W: World>(search: &mut Search<'_, W>) -> Result<bool, Exhausted> {
    let all = search.program.scopes[0].own;
    if !search.admits(all) {
        return Ok(false);
    }
    match search.run(WHOLE, all, &mut |_, _| Err(Halt::Enough)) {
        Ok(()) => Ok(false),
        Err(Halt::Enough) => Ok(true),
        Err(Halt::Exhausted(exhausted)) => Err(exhausted),
    }
}
