//! Parts of a pattern that a query bound before: they are put in their slots at the start.

use super::{Halt, Search, Sink, Task};
use crate::graph::ElementRef;
use crate::pattern::program::{Kind, SlotSet, Ways, bit};
use crate::pattern::steps::Exhausted;
use crate::pattern::value::Val;
use crate::world::World;

impl<'a, W: World> Search<'a, W> {
    /// Binds what a scope takes from outside of the pattern; `None` if a value is null or not of
    /// the kind or type that its part must be, so that nothing can match.
    pub(crate) fn bind_given(&mut self, scope: usize) -> Result<Option<SlotSet>, Exhausted> {
        let mut bound = 0;
        for (slot, code) in &self.program.scopes[scope].given {
            match (self.program.slots[*slot].kind, self.value(code)?) {
                (Kind::Node, Val::Element(element @ ElementRef::Node(_)))
                | (Kind::Edge, Val::Element(element @ ElementRef::Edge(_))) => {
                    self.frame[*slot] = element;
                }
                (Kind::Path, Val::List(items)) => {
                    let edge = |item: &Val<'_>| match item {
                        Val::Element(ElementRef::Edge(edge)) => Some(*edge),
                        _ => None,
                    };
                    let edges: Option<Vec<_>> = items.iter().map(edge).collect();
                    let Some(edges) = edges else { return Ok(None) };
                    self.paths[*slot] = edges;
                }
                _ => return Ok(None),
            }
            bound |= bit(*slot);
        }
        Ok(self.admits(bound).then_some(bound))
    }

    /// Binds the ends of a path that was given without them, and goes on.
    pub(super) fn place_path(
        &mut self,
        task: Task,
        edge: usize,
        bound: SlotSet,
        pending: SlotSet,
        sink: Sink<'_, 'a, W>,
    ) -> Result<(), Halt> {
        let step = &self.program.scopes[task.scope].edges[edge];
        let path = self.paths[step.slot].clone();
        let mut starts = Vec::new();
        match path.first() {
            Some(first) => {
                let (from, to) = self.ends(*first);
                match step.ways {
                    Ways::Forward => starts.push(from),
                    Ways::Backward => starts.push(to),
                    Ways::Both if from == to => starts.push(from),
                    Ways::Both => starts.extend([from, to]),
                }
            }
            // An empty path ends where it begins; without either it is nowhere.
            None => {
                let ends = [step.from, step.to];
                let known = ends.into_iter().find(|end| bound & bit(*end) != 0);
                starts.extend(known.and_then(|end| self.frame[end].node()));
            }
        }
        for start in starts {
            let mut end = start;
            for found in &path {
                let (from, to) = self.ends(*found);
                end = if from == end { to } else { from };
            }
            let Some(bound) = self.bind(task, step.from, start.into(), bound)? else { continue };
            let Some(bound) = self.bind(task, step.to, end.into(), bound)? else { continue };
            self.check_path(task, edge, bound, pending, sink)?;
        }
        Ok(())
    }
}
