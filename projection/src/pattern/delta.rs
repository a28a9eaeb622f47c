//! Delta matching: the matches that one event made true, and those it made false.
//!
//! A match that stands on one side of an event only has a reason among the elements the event
//! touched. Either it holds such an element itself: then the search starts there. Or an `EXISTS`
//! turned: then some match inside it holds one, and the search starts there, inside, and goes on
//! outward to the elements that both share. What is found on one side is a change if it does not
//! stand on the other.

use std::collections::BTreeSet;

use crate::delta::Delta;
use crate::graph::{EdgeRef, ElementRef, ElementView, Graph, NodeRef};
use crate::pattern::env::Env;
use crate::pattern::full::{WHOLE, is_match};
use crate::pattern::outer_slots;
use crate::pattern::program::{Kind, Program, SlotSet, Ways, bit, slots_of};
use crate::pattern::row::{DeltaRows, Row, in_order};
use crate::pattern::search::{Aim, Halt, Search, Task};
use crate::pattern::steps::{Exhausted, Steps};
use crate::world::{Before, World};

/// An element that an event touched, and a slot it may matter in.
type Seed = (usize, ElementRef);

/// Elements in some slots of the pattern: where a search starts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Start {
    bound: SlotSet,
    /// What is in the lowest slot. Most starts have no other, and then nothing is allocated.
    first: ElementRef,
    /// What is in the others, by slot.
    rest: Vec<ElementRef>,
}

/// What one event made true and made false; see `Pattern::delta`.
pub(super) fn delta(
    program: &Program,
    graph: &Graph,
    delta: &Delta,
    env: &Env<'_>,
    steps: &Steps,
) -> Result<DeltaRows, Exhausted> {
    let seeds = seeds(program, graph, delta);
    if seeds.is_empty() {
        return Ok(DeltaRows::default());
    }
    let before = Before::new(graph, delta);
    let mut sides = Sides {
        after: Search::new(graph, graph, program, env, steps),
        before: Search::new(&before, graph, program, env, steps),
    };
    // Both worlds number their types alike, so they are looked up once.
    sides.before.types = Some(sides.after.known_type_ids());
    let starts = sides.starts(&seeds)?;
    // A search is large, so both stay where they are.
    let Sides { after, before } = &mut sides;
    let risen = changed(after, before, &starts, steps)?;
    let fallen = changed(before, after, &starts, steps)?;
    Ok(DeltaRows { risen, fallen })
}

/// Every slot in which a touched element may make a difference.
fn seeds(program: &Program, graph: &Graph, delta: &Delta) -> Vec<Seed> {
    let mut seeds = Vec::new();
    for element in delta.touched() {
        let (before, after) = (delta.before(graph, element), graph.at(element));
        for slot in 0..program.slots.len() {
            let node = program.slots[slot].kind == Kind::Node;
            if node == element.node().is_some() && matters(program, slot, before, after) {
                seeds.push((slot, element));
            }
        }
    }
    seeds
}

/// Whether a slot can tell an element from what it was.
fn matters(
    program: &Program,
    number: usize,
    before: Option<ElementView<'_>>,
    after: Option<ElementView<'_>>,
) -> bool {
    let slot = &program.slots[number];
    match (before, after) {
        (None, None) => false,
        (Some(before), Some(after)) => {
            let differs = |name: &smol_str::SmolStr| {
                let (old, new) = (before.properties(), after.properties());
                old.get_encoded(name) != new.get_encoded(name)
            };
            program.fits_type(number, after.type_name())
                && (slot.read.iter().any(differs)
                    || slot.reads_any && before.properties() != after.properties())
        }
        // A node that comes or goes with an edge is found from that edge.
        (Some(only), None) | (None, Some(only)) => {
            !slot.has_edge && program.fits_type(number, only.type_name())
        }
    }
}

/// The matches of one side, found from the starts, that are none on the other side.
fn changed<'a, V: World, W: World>(
    here: &mut Search<'a, V>,
    there: &mut Search<'a, W>,
    starts: &[Start],
    steps: &Steps,
) -> Result<Vec<Row>, Exhausted> {
    let mut rows = Vec::new();
    for start in starts {
        steps.take()?;
        here.put(start);
        if !here.admits(start.bound) {
            continue;
        }
        // What all matches from this start share is asked of the other side once, with the first.
        let mut may_stand = None;
        let run = here.run(WHOLE, start.bound, &mut |here, _| {
            let may = match may_stand {
                Some(may) => may,
                None => *may_stand.insert(may_stand_from(start, here, there)?),
            };
            if !(may && carry(here, there) && is_match(there)?) {
                rows.push(Row::of(here));
            }
            Ok(())
        });
        if let Err(Halt::Exhausted(exhausted)) = run {
            return Err(exhausted);
        }
    }
    Ok(in_order(rows))
}

/// Whether a match from this start may stand on the other side: false if it surely does not.
fn may_stand_from<V: World, W: World>(
    start: &Start,
    here: &Search<'_, V>,
    there: &mut Search<'_, W>,
) -> Result<bool, Exhausted> {
    let mut bound = 0;
    for slot in slots_of(start.bound) {
        if here.program.slots[slot].kind == Kind::Path {
            continue;
        }
        match counterpart(here.world, there.world, here.frame[slot]) {
            Some(element) => there.frame[slot] = element,
            None => return Ok(false),
        }
        bound |= bit(slot);
    }
    there.may_hold(WHOLE, bound)
}

/// Binds what one side has bound on the other side too, by id; false if something is not there.
fn carry<V: World, W: World>(from: &Search<'_, V>, to: &mut Search<'_, W>) -> bool {
    for slot in 0..outer_slots(from.program) {
        if from.program.slots[slot].kind == Kind::Path {
            to.paths[slot].clear();
            for edge in &from.paths[slot] {
                let found = counterpart(from.world, to.world, (*edge).into());
                let Some(edge) = found.and_then(ElementRef::edge) else { return false };
                to.paths[slot].push(edge);
            }
        } else {
            let Some(element) = counterpart(from.world, to.world, from.frame[slot]) else {
                return false;
            };
            to.frame[slot] = element;
        }
    }
    true
}

/// The element with the same id in another world: another one, if it was removed and made again.
fn counterpart<V: World, W: World>(from: &V, to: &W, element: ElementRef) -> Option<ElementRef> {
    if to.at(element).is_some() {
        return Some(element);
    }
    let found = to.find(from.at(element).expect("what is bound is there").id())?;
    (found.node().is_some() == element.node().is_some()).then_some(found)
}

/// A search on each side of the event.
struct Sides<'a> {
    after: Search<'a, Graph>,
    before: Search<'a, Before<'a>>,
}

impl Sides<'_> {
    /// Where to start searching for the whole pattern.
    fn starts(&mut self, seeds: &[Seed]) -> Result<Vec<Start>, Exhausted> {
        let mut starts = Vec::with_capacity(seeds.len());
        for (slot, element) in seeds {
            let scope = self.after.program.slots[*slot].scope;
            if scope == 0 {
                self.starts_at(*slot, *element, &mut starts)?;
            } else {
                let mut inside = Vec::new();
                self.starts_at(*slot, *element, &mut inside)?;
                starts.extend(self.climb(scope, inside)?);
            }
        }
        if starts.len() > 1 {
            starts.sort_unstable();
            starts.dedup();
        }
        Ok(starts)
    }

    /// Where to start for an element in a slot: there, or for an edge of a path, at each node that
    /// the path may begin at on either side.
    fn starts_at(
        &self,
        slot: usize,
        element: ElementRef,
        starts: &mut Vec<Start>,
    ) -> Result<(), Exhausted> {
        if self.after.program.slots[slot].kind != Kind::Path {
            starts.push(Start { bound: bit(slot), first: element, rest: Vec::new() });
            return Ok(());
        }
        self.after.starts_of_path(slot, element, starts)?;
        self.before.starts_of_path(slot, element, starts)
    }

    /// From starts inside a scope to those in the whole pattern, by what each scope shares with
    /// the one around it. The elements shared may be as they are on either side.
    fn climb(&mut self, scope: usize, starts: Vec<Start>) -> Result<Vec<Start>, Exhausted> {
        let Some(parent) = self.after.program.scopes[scope].parent else { return Ok(starts) };
        let mut outside = Vec::new();
        for start in starts {
            self.after.starts_outside(scope, &start, &mut outside)?;
            self.before.starts_outside(scope, &start, &mut outside)?;
        }
        outside.sort_unstable();
        outside.dedup();
        self.climb(parent, outside)
    }
}

impl<W: World> Search<'_, W> {
    /// Puts the elements of a start in their slots.
    fn put(&mut self, start: &Start) {
        let elements = [start.first].into_iter().chain(start.rest.iter().copied());
        for (slot, element) in slots_of(start.bound).zip(elements) {
            self.frame[slot] = element;
        }
    }

    /// Where a path may begin that goes through an edge; nowhere if it is not in this world.
    fn starts_of_path(
        &self,
        slot: usize,
        element: ElementRef,
        starts: &mut Vec<Start>,
    ) -> Result<(), Exhausted> {
        let Some(view) = self.world.at(element) else { return Ok(()) };
        let (from, to) = view.ends().expect("a path has edges");
        let scope = &self.program.scopes[self.program.slots[slot].scope];
        let step = scope.edges.iter().find(|step| step.slot == slot);
        let step = step.expect("the slot of a path belongs to an edge of its scope");
        let mut nodes = match step.ways {
            Ways::Forward => vec![from],
            Ways::Backward => vec![to],
            Ways::Both => vec![from, to],
        };
        let length = step.length.expect("a path has a length");
        let mut seen: BTreeSet<NodeRef> = nodes.iter().copied().collect();
        let (mut next, mut hops) = (0, 1);
        while next < nodes.len() && length.max.is_none_or(|max| hops < max) {
            let end = nodes.len();
            for place in next..end {
                for before in self.nodes_before(slot, nodes[place], step.ways)? {
                    if seen.insert(before) {
                        nodes.push(before);
                    }
                }
            }
            (next, hops) = (end, hops + 1);
        }
        starts.extend(nodes.into_iter().map(|node| Start {
            bound: bit(step.from),
            first: node.into(),
            rest: Vec::new(),
        }));
        Ok(())
    }

    /// The nodes that lie one edge of a path before a node.
    fn nodes_before(
        &self,
        slot: usize,
        node: NodeRef,
        ways: Ways,
    ) -> Result<Vec<NodeRef>, Exhausted> {
        let mut nodes = Vec::new();
        let mut add = |edge: EdgeRef| {
            self.count_step()?;
            let view = self.world.at(edge.into()).expect("what a world lists is there");
            let (from, to) = view.ends().expect("an edge has ends");
            if self.program.fits_type(slot, view.type_name()) {
                nodes.push(if from == node { to } else { from });
            }
            Ok(())
        };
        if ways != Ways::Backward {
            self.world.in_edges(node, None).try_for_each(&mut add)?;
        }
        if ways != Ways::Forward {
            self.world.out_edges(node, None).try_for_each(&mut add)?;
        }
        Ok(nodes)
    }

    /// Finds the matches of a scope from a start inside it, and notes what each binds outside.
    fn starts_outside(
        &mut self,
        scope: usize,
        start: &Start,
        outside: &mut Vec<Start>,
    ) -> Result<(), Exhausted> {
        self.put(start);
        if !self.admits(start.bound) {
            return Ok(());
        }
        let own = self.program.scopes[scope].own;
        let task = Task { scope, aim: Aim::Seeds };
        let run = self.run(task, start.bound, &mut |search, bound| {
            let bound = bound & !own;
            let mut elements = slots_of(bound).map(|slot| search.frame[slot]);
            // An `EXISTS` that shares nothing with what is around it binds nothing there.
            let first = elements.next().unwrap_or(ElementRef::Node(NodeRef(0)));
            outside.push(Start { bound, first, rest: elements.collect() });
            Ok(())
        });
        match run {
            Ok(()) | Err(Halt::Enough) => Ok(()),
            Err(Halt::Exhausted(exhausted)) => Err(exhausted),
        }
    }
}
