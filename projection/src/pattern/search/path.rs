//! Paths of variable length: edges followed one after the other, none twice.

use super::{Halt, Search, Sink, Task};
use crate::graph::{EdgeRef, ElementRef, NodeRef};
use crate::pattern::program::{EdgeStep, SlotSet, Ways, bit};
use crate::pattern::steps::Exhausted;
use crate::pattern::value::{Val, equal};
use crate::world::World;

/// Where a path is on its way: which step it is, and from which end it grows.
#[derive(Clone, Copy)]
struct Walk {
    task: Task,
    edge: usize,
    /// From `from` to `to`, or the other way round.
    forward: bool,
    bound: SlotSet,
    pending: SlotSet,
}

impl<'a, W: World> Search<'a, W> {
    /// Binds a path, one end of which is bound, or which is bound itself.
    pub(super) fn follow_path(
        &mut self,
        task: Task,
        edge: usize,
        bound: SlotSet,
        pending: SlotSet,
        sink: Sink<'_, 'a, W>,
    ) -> Result<(), Halt> {
        let step = &self.program.scopes[task.scope].edges[edge];
        if bound & bit(step.slot) != 0 {
            let ends = bit(step.from) | bit(step.to);
            return match bound & ends == ends {
                true => self.check_path(task, edge, bound, pending, sink),
                false => self.place_path(task, edge, bound, pending, sink),
            };
        }
        let forward = bound & bit(step.from) != 0;
        let start = self.frame[if forward { step.from } else { step.to }];
        let start = start.node().expect("a path starts at a node");
        self.paths[step.slot].clear();
        self.walk(Walk { task, edge, forward, bound, pending }, start, sink)
    }

    /// Takes the path so far if it is long enough, then every longer one.
    fn walk(&mut self, walk: Walk, node: NodeRef, sink: Sink<'_, 'a, W>) -> Result<(), Halt> {
        let step = &self.program.scopes[walk.task.scope].edges[walk.edge];
        let length = step.length.expect("a path has a length");
        let edges = self.paths[step.slot].len();
        if edges >= length.min as usize {
            self.end_path(walk, step, node, sink)?;
        }
        if length.max.is_some_and(|max| edges >= max as usize) {
            return Ok(());
        }
        let (outward, inward) = match (step.ways, walk.forward) {
            (Ways::Both, _) => (true, true),
            (Ways::Forward, forward) => (forward, !forward),
            (Ways::Backward, forward) => (!forward, forward),
        };
        let world = self.world;
        for type_id in self.type_ids(step.slot) {
            if outward {
                for found in world.out_edges(node, type_id) {
                    self.walk_edge(walk, node, found, sink)?;
                }
            }
            if inward {
                for found in world.in_edges(node, type_id) {
                    if !(outward && self.is_loop(found)) {
                        self.walk_edge(walk, node, found, sink)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn walk_edge(
        &mut self,
        walk: Walk,
        node: NodeRef,
        found: EdgeRef,
        sink: Sink<'_, 'a, W>,
    ) -> Result<(), Halt> {
        self.steps.take()?;
        let step = &self.program.scopes[walk.task.scope].edges[walk.edge];
        let again = self.paths[step.slot].contains(&found);
        if again
            || self.is_used(walk.task, step.slot, found, walk.bound)
            || !self.fits_path(step, found)?
        {
            return Ok(());
        }
        let (from, to) = self.ends(found);
        let next = if from == node { to } else { from };
        self.paths[step.slot].push(found);
        self.walk(walk, next, sink)?;
        self.paths[step.slot].pop();
        Ok(())
    }

    /// Goes on with the path as it is, if it may end at this node.
    fn end_path(
        &mut self,
        walk: Walk,
        step: &'a EdgeStep,
        node: NodeRef,
        sink: Sink<'_, 'a, W>,
    ) -> Result<(), Halt> {
        let end = if walk.forward { step.to } else { step.from };
        let Some(bound) = self.bind(walk.task, end, node.into(), walk.bound)? else {
            return Ok(());
        };
        // The list runs from `from` to `to`, whichever end it grew from.
        if !walk.forward {
            self.paths[step.slot].reverse();
        }
        if let Some(bound) = self.after_binding(walk.task, step.slot, bound)? {
            self.extend(walk.task, bound, walk.pending, sink)?;
        }
        if !walk.forward {
            self.paths[step.slot].reverse();
        }
        Ok(())
    }

    /// Whether an edge has the properties that each edge of a path must have.
    fn fits_path(&mut self, step: &'a EdgeStep, found: EdgeRef) -> Result<bool, Exhausted> {
        let view = self.world.at(found.into()).expect("what a world lists is there");
        for (name, code) in &step.each {
            let wanted = self.value(code)?;
            let has = view.property(name).map_or(Val::Null, Val::from);
            if equal(&has, &wanted) != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a path that is bound is one: its edges join, and lead from end to end.
    pub(super) fn check_path(
        &mut self,
        task: Task,
        edge: usize,
        bound: SlotSet,
        pending: SlotSet,
        sink: Sink<'_, 'a, W>,
    ) -> Result<(), Halt> {
        let step = &self.program.scopes[task.scope].edges[edge];
        let length = step.length.expect("a path has a length");
        let path = self.paths[step.slot].clone();
        let (ElementRef::Node(mut node), ElementRef::Node(end)) =
            (self.frame[step.from], self.frame[step.to])
        else {
            return Ok(());
        };
        let long_enough = path.len() >= length.min as usize;
        if !long_enough || length.max.is_some_and(|max| path.len() > max as usize) {
            return Ok(());
        }
        for (place, found) in path.iter().enumerate() {
            self.steps.take()?;
            let (from, to) = self.ends(*found);
            let next = match step.ways {
                Ways::Forward | Ways::Both if from == node => to,
                Ways::Backward | Ways::Both if to == node => from,
                _ => return Ok(()),
            };
            let twice =
                path[..place].contains(found) || self.is_used(task, step.slot, *found, bound);
            if twice || !self.fits_path(step, *found)? {
                return Ok(());
            }
            node = next;
        }
        if node == end { self.extend(task, bound, pending, sink) } else { Ok(()) }
    }
}
