//! The search for everything that fits a scope, outward from what is bound.
//!
//! A search takes, again and again, the cheapest thing left to do: an edge at a bound node by its
//! degree there, an element that an id or an index gives, and only where nothing leads on, the
//! smallest type. Each condition is asked as soon as all it mentions is bound; an `EXISTS` comes
//! last. Every element looked at is a step.

mod choose;
mod given;
mod path;

use std::rc::Rc;

use crate::graph::{EdgeRef, ElementRef, ElementView, Graph, NodeRef, TypeId};
use crate::pattern::env::Env;
use crate::pattern::problem::Fault;
use crate::pattern::program::{
    AnchorKey, Kind, Program, SLOTS_MAX, Scope, SlotSet, Ways, bit, slots_of,
};
use crate::pattern::steps::{Exhausted, Steps};
use crate::pattern::value::Val;
use crate::world::World;
use choose::Choice;

/// What every slot is bound to; a place means something only while its slot is in the bound set.
pub(crate) type Frame = [ElementRef; SLOTS_MAX];

/// Why a search ends before it has seen everything.
pub(crate) enum Halt {
    /// Whoever asked has seen enough.
    Enough,
    /// It took too many steps.
    Exhausted(Exhausted),
}

impl From<Exhausted> for Halt {
    fn from(exhausted: Exhausted) -> Self {
        Halt::Exhausted(exhausted)
    }
}

/// What is called with every match found.
pub(crate) type Sink<'s, 'a, W> =
    &'s mut dyn FnMut(&mut Search<'a, W>, SlotSet) -> Result<(), Halt>;

/// What is searched for.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    pub(crate) scope: usize,
    pub(crate) aim: Aim,
}

/// How much of a scope must be found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// All of it; what it mentions of the scopes around it is bound.
    Match,
    /// All of it, and as much of the scopes around it as it leads to. Nothing is bound there yet,
    /// so conditions that cannot be asked are passed over: this finds too much, never too little.
    Seeds,
}

/// One search in one world.
pub(crate) struct Search<'a, W> {
    pub(super) world: &'a W,
    /// The graph as it is, for sizes: they only guide the order.
    graph: &'a Graph,
    pub(super) program: &'a Program,
    pub(super) env: &'a Env<'a>,
    pub(super) frame: Frame,
    /// The edges of each path, by slot; empty for a program without paths.
    pub(super) paths: Vec<Vec<EdgeRef>>,
    /// The numbers of the program's types in this graph, once they are needed.
    pub(super) types: Option<Rc<[Option<TypeId>]>>,
    steps: &'a Steps,
    /// The row that a query is at.
    pub(crate) row: Vec<Val<'a>>,
    /// The items of the lists that are gone through, outermost first.
    pub(super) items: Vec<Val<'a>>,
    /// Whether what cannot be computed is a fault; else it is null.
    pub(crate) strict: bool,
    /// The first thing that could not be computed.
    pub(crate) fault: Option<Fault>,
}

impl<'a, W: World> Search<'a, W> {
    pub(crate) fn new(
        world: &'a W,
        graph: &'a Graph,
        program: &'a Program,
        env: &'a Env<'a>,
        steps: &'a Steps,
    ) -> Self {
        let with_paths = program.slots.iter().any(|slot| slot.kind == Kind::Path);
        let paths = if with_paths { vec![Vec::new(); program.slots.len()] } else { Vec::new() };
        let frame = [ElementRef::Node(NodeRef(u32::MAX)); SLOTS_MAX];
        let (types, row, items, strict, fault) = (None, Vec::new(), Vec::new(), false, None);
        Search { world, graph, program, env, frame, paths, types, steps, row, items, strict, fault }
    }

    /// Counts one step of a search that is not this one's own.
    pub(crate) fn count_step(&self) -> Result<(), Exhausted> {
        self.steps.take()
    }

    /// The element in a bound slot.
    pub(super) fn element(&self, slot: usize) -> ElementView<'a> {
        self.world.at(self.frame[slot]).expect("what is bound is there")
    }

    fn scope(&self, task: Task) -> &'a Scope {
        &self.program.scopes[task.scope]
    }

    /// Finds every match of a task that extends what is bound.
    pub(crate) fn run(
        &mut self,
        task: Task,
        bound: SlotSet,
        sink: Sink<'_, 'a, W>,
    ) -> Result<(), Halt> {
        if !self.may_hold(task, bound)? {
            return Ok(());
        }
        let edges = self.scope(task).edges.len();
        // A scope has at most 64 edges, each with its own slot.
        let pending = if edges == SLOTS_MAX { SlotSet::MAX } else { bit(edges) - 1 };
        self.extend(task, bound, pending, sink)
    }

    /// Whether every condition holds that can be asked of what is bound.
    pub(super) fn may_hold(&mut self, task: Task, bound: SlotSet) -> Result<bool, Exhausted> {
        for filter in &self.scope(task).filters {
            if filter.needs & !bound == 0 && !filter.late && !self.is_true(&filter.code)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether everything bound is there in this world, with a type that its slot allows.
    pub(super) fn admits(&self, bound: SlotSet) -> bool {
        slots_of(bound).all(|slot| {
            let there = |element| {
                let view = self.world.at(element);
                view.is_some_and(|view| self.program.fits_type(slot, view.type_name()))
            };
            match self.program.slots[slot].kind {
                Kind::Path => self.paths[slot].iter().all(|edge| there(ElementRef::Edge(*edge))),
                Kind::Node | Kind::Edge => there(self.frame[slot]),
            }
        })
    }

    /// Whether a scope inside the one being searched has a match.
    pub(super) fn exists(&mut self, scope: usize) -> Result<bool, Exhausted> {
        let task = Task { scope, aim: Aim::Match };
        let mut bound = self.program.scopes[scope].imports;
        if !self.program.scopes[scope].given.is_empty() {
            match self.bind_given(scope)? {
                Some(given) => bound |= given,
                None => return Ok(false),
            }
        }
        match self.run(task, bound, &mut |_, _| Err(Halt::Enough)) {
            Ok(()) => Ok(false),
            Err(Halt::Enough) => Ok(true),
            Err(Halt::Exhausted(exhausted)) => Err(exhausted),
        }
    }

    /// Binds what is left, one choice at a time.
    fn extend(
        &mut self,
        task: Task,
        bound: SlotSet,
        pending: SlotSet,
        sink: Sink<'_, 'a, W>,
    ) -> Result<(), Halt> {
        match self.choose(task, bound, pending)? {
            Choice::Done => self.complete(task, bound, sink),
            Choice::Edge(edge) => self.follow(task, edge, bound, pending, sink),
            Choice::Anchor(anchor) => self.look_up(task, anchor, bound, pending, sink),
            Choice::Nodes(slot) => {
                let world = self.world;
                let Some(types) = &self.program.slots[slot].types else {
                    for node in world.nodes() {
                        self.place(task, slot, node.into(), bound, pending, sink)?;
                    }
                    return Ok(());
                };
                for number in types {
                    let Some(type_id) = self.type_id(*number) else { continue };
                    for node in world.nodes_of_type(type_id) {
                        self.place(task, slot, node.into(), bound, pending, sink)?;
                    }
                }
                Ok(())
            }
            Choice::Edges(slot) => {
                let world = self.world;
                let Some(types) = &self.program.slots[slot].types else {
                    for edge in world.edges() {
                        self.place(task, slot, edge.into(), bound, pending, sink)?;
                    }
                    return Ok(());
                };
                for number in types {
                    let Some(type_id) = self.type_id(*number) else { continue };
                    for edge in world.edges_of_type(type_id) {
                        self.place(task, slot, edge.into(), bound, pending, sink)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Everything is bound: asks what was left for last.
    fn complete(&mut self, task: Task, bound: SlotSet, sink: Sink<'_, 'a, W>) -> Result<(), Halt> {
        if task.aim == Aim::Match {
            for filter in &self.scope(task).filters {
                if filter.late && !self.is_true(&filter.code)? {
                    return Ok(());
                }
            }
        }
        sink(self, bound)
    }

    /// Binds a slot to an element and goes on; an edge still has its ends to be bound.
    fn place(
        &mut self,
        task: Task,
        slot: usize,
        element: ElementRef,
        bound: SlotSet,
        pending: SlotSet,
        sink: Sink<'_, 'a, W>,
    ) -> Result<(), Halt> {
        self.steps.take()?;
        match self.bind(task, slot, element, bound)? {
            Some(bound) => self.extend(task, bound, pending, sink),
            None => Ok(()),
        }
    }

    /// Puts an element in a slot, unless its type or a condition forbids it.
    fn bind(
        &mut self,
        task: Task,
        slot: usize,
        element: ElementRef,
        bound: SlotSet,
    ) -> Result<Option<SlotSet>, Exhausted> {
        if bound & bit(slot) != 0 {
            return Ok((self.frame[slot] == element).then_some(bound));
        }
        if let Some(types) = &self.program.slots[slot].types {
            let view = self.world.at(element).expect("what a world lists is there");
            let type_id = Some(view.type_id());
            let known = self.types();
            if !types.iter().any(|number| known[*number] == type_id) {
                return Ok(None);
            }
        }
        self.frame[slot] = element;
        self.after_binding(task, slot, bound)
    }

    /// Asks the conditions that can be asked now that a slot is bound.
    fn after_binding(
        &mut self,
        task: Task,
        slot: usize,
        bound: SlotSet,
    ) -> Result<Option<SlotSet>, Exhausted> {
        let bound = bound | bit(slot);
        for filter in &self.scope(task).filters {
            let now = filter.needs & bit(slot) != 0 && filter.needs & !bound == 0;
            if now && !filter.late && !self.is_true(&filter.code)? {
                return Ok(None);
            }
        }
        Ok(Some(bound))
    }

    /// Binds a slot to what an anchor finds.
    fn look_up(
        &mut self,
        task: Task,
        anchor: usize,
        bound: SlotSet,
        pending: SlotSet,
        sink: Sink<'_, 'a, W>,
    ) -> Result<(), Halt> {
        let anchor = &self.scope(task).anchors[anchor];
        let value = self.value(&anchor.value)?;
        let Some(key) = value.as_key() else { return Ok(()) };
        let kind = self.program.slots[anchor.slot].kind;
        let world = self.world;
        let AnchorKey::Property(property) = &anchor.key else {
            let found = key.as_str().and_then(|id| world.find(id));
            return match found {
                Some(ElementRef::Node(_)) if kind != Kind::Node => Ok(()),
                Some(ElementRef::Edge(_)) if kind != Kind::Edge => Ok(()),
                Some(element) => self.place(task, anchor.slot, element, bound, pending, sink),
                None => Ok(()),
            };
        };
        let types = self.program.slots[anchor.slot].types.as_ref();
        for number in types.expect("an index is asked by type") {
            let Some(type_id) = self.type_id(*number) else { continue };
            if kind == Kind::Node {
                for node in world.nodes_with(type_id, property, key).into_iter().flatten() {
                    self.place(task, anchor.slot, node.into(), bound, pending, sink)?;
                }
            } else {
                for edge in world.edges_with(type_id, property, key).into_iter().flatten() {
                    self.place(task, anchor.slot, edge.into(), bound, pending, sink)?;
                }
            }
        }
        Ok(())
    }

    /// Takes an edge of the scope whose slot or one of whose ends is bound.
    fn follow(
        &mut self,
        task: Task,
        edge: usize,
        bound: SlotSet,
        pending: SlotSet,
        sink: Sink<'_, 'a, W>,
    ) -> Result<(), Halt> {
        let step = &self.scope(task).edges[edge];
        let pending = pending & !bit(edge);
        if step.length.is_some() {
            return self.follow_path(task, edge, bound, pending, sink);
        }
        if bound & bit(step.slot) != 0 {
            let found = self.frame[step.slot].edge().expect("an edge is bound to an edge");
            return self.try_edge(task, edge, found, bound, pending, sink);
        }
        // Which edges to look at: those that leave one end, or reach the other, or both.
        let (at_from, at_to) = (bound & bit(step.from) != 0, bound & bit(step.to) != 0);
        let from_here = match (at_from, at_to) {
            (true, true) => self.degree(step, step.from) <= self.degree(step, step.to),
            (here, _) => here,
        };
        let node = if from_here { step.from } else { step.to };
        let node = self.frame[node].node().expect("an edge ends at nodes");
        let both = step.ways == Ways::Both;
        let world = self.world;
        for type_id in self.type_ids(step.slot) {
            if from_here || both {
                for found in world.out_edges(node, type_id) {
                    self.try_edge(task, edge, found, bound, pending, sink)?;
                }
            }
            if !from_here || both {
                for found in world.in_edges(node, type_id) {
                    // A loop was met on its way out already.
                    if !(both && self.is_loop(found)) {
                        self.try_edge(task, edge, found, bound, pending, sink)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn is_loop(&self, edge: EdgeRef) -> bool {
        let (from, to) = self.ends(edge);
        from == to
    }

    pub(super) fn ends(&self, edge: EdgeRef) -> (NodeRef, NodeRef) {
        let view = self.world.at(edge.into()).expect("what a world lists is there");
        view.ends().expect("an edge has ends")
    }

    /// Binds an edge and its ends, whichever way it may lie.
    fn try_edge(
        &mut self,
        task: Task,
        edge: usize,
        found: EdgeRef,
        bound: SlotSet,
        pending: SlotSet,
        sink: Sink<'_, 'a, W>,
    ) -> Result<(), Halt> {
        self.steps.take()?;
        let step = &self.scope(task).edges[edge];
        if self.is_used(task, step.slot, found, bound) {
            return Ok(());
        }
        let (from, to) = self.ends(found);
        self.try_ends(task, edge, found, (from, to), bound, pending, sink)?;
        if step.ways == Ways::Both && from != to {
            self.try_ends(task, edge, found, (to, from), bound, pending, sink)?;
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "the state of a search is passed down, not kept")]
    fn try_ends(
        &mut self,
        task: Task,
        edge: usize,
        found: EdgeRef,
        (from, to): (NodeRef, NodeRef),
        bound: SlotSet,
        pending: SlotSet,
        sink: Sink<'_, 'a, W>,
    ) -> Result<(), Halt> {
        let step = &self.scope(task).edges[edge];
        // A bound end that differs is told before any condition is asked.
        let differs = |slot: usize, node: NodeRef| {
            bound & bit(slot) != 0 && self.frame[slot] != ElementRef::Node(node)
        };
        if differs(step.from, from) || differs(step.to, to) {
            return Ok(());
        }
        let mut bound = bound;
        for (slot, element) in
            [(step.slot, found.into()), (step.from, from.into()), (step.to, to.into())]
        {
            match self.bind(task, slot, element, bound)? {
                Some(more) => bound = more,
                None => return Ok(()),
            }
        }
        self.extend(task, bound, pending, sink)
    }

    /// Whether another part of the scope is bound to an edge already: no edge is matched twice.
    fn is_used(&self, task: Task, slot: usize, edge: EdgeRef, bound: SlotSet) -> bool {
        self.scope(task).edges.iter().any(|other| {
            if other.slot == slot || bound & bit(other.slot) == 0 {
                return false;
            }
            match other.length {
                Some(_) => self.paths[other.slot].contains(&edge),
                None => self.frame[other.slot] == ElementRef::Edge(edge),
            }
        })
    }

    /// The numbers of all types of the program in this graph; `None` for one that it never met.
    pub(super) fn known_type_ids(&mut self) -> Rc<[Option<TypeId>]> {
        Rc::clone(self.types())
    }

    fn types(&mut self) -> &Rc<[Option<TypeId>]> {
        let (world, program) = (self.world, self.program);
        let find = || program.types.iter().map(|name| world.type_id(name)).collect();
        self.types.get_or_insert_with(find)
    }

    /// The number of a type in this graph; `None` if it never met it.
    fn type_id(&mut self, number: usize) -> Option<TypeId> {
        self.types()[number]
    }

    /// The types to ask for at a slot, each met by the graph; `None` alone asks for any.
    fn type_ids(&mut self, slot: usize) -> TypeIds {
        let Some(types) = &self.program.slots[slot].types else {
            return TypeIds { one: Some(None), more: Vec::new() };
        };
        if let [number] = types.as_slice() {
            return TypeIds { one: self.type_id(*number).map(Some), more: Vec::new() };
        }
        let known: Vec<_> = types.iter().filter_map(|number| self.type_id(*number)).collect();
        TypeIds { one: None, more: known }
    }
}

/// Types to ask for, without allocating where there is only one.
struct TypeIds {
    one: Option<Option<TypeId>>,
    more: Vec<TypeId>,
}

impl Iterator for TypeIds {
    type Item = Option<TypeId>;

    fn next(&mut self) -> Option<Option<TypeId>> {
        self.one.take().or_else(|| self.more.pop().map(Some))
    }
}
