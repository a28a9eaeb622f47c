//! The plan of a search: where it starts, what it takes next, and how many elements it looks at.
//!
//! A search chooses by the degrees it meets; here they are the averages of the graph, so the plan
//! shown is the one of an average element. It is the same for the same graph.

use std::fmt;

use crate::graph::Graph;
use crate::pattern::program::{
    Anchor, AnchorKey, Code, EdgeStep, Kind, Program, SlotSet, Ways, bit, slots_of,
};
use crate::world::World;

/// How far a path without an upper bound is counted.
const PATH_GUESS: u32 = 4;

/// How a pattern is searched for in one graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The pattern in its canonical form.
    pub pattern: String,
    /// The search from nothing, then one for each part whose change can make or undo a match.
    pub searches: Vec<SearchPlan>,
}

/// One search: where it starts and what follows.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchPlan {
    /// `nothing`, or the part that changes.
    pub from: String,
    /// What is done, in order.
    pub stages: Vec<Stage>,
    /// How many steps all of it takes: elements looked at, on average.
    pub steps: f64,
}

/// One thing that a search does.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// What is bound by it; nothing if something bound is only checked.
    pub binds: Vec<String>,
    /// How: through which edges, by which index.
    pub by: String,
    /// How many elements are found for each row so far, on average.
    pub each: f64,
    /// How many `EXISTS` stand around it.
    pub depth: usize,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.pattern)?;
        for search in &self.searches {
            writeln!(f, "from {}: about {:.1} steps", search.from, search.steps)?;
            for stage in &search.stages {
                let indent = "  ".repeat(stage.depth + 1);
                let binds = match stage.binds.is_empty() {
                    true => "check".to_owned(),
                    false => stage.binds.join(", "),
                };
                writeln!(f, "{indent}{binds}: {}, about {:.1} each", stage.by, stage.each)?;
            }
        }
        Ok(())
    }
}

/// How a slot is called in messages: its name, or what it is.
pub(super) fn slot_name(program: &Program, slot: usize) -> String {
    let found = &program.slots[slot];
    if let Some(name) = &found.name {
        return format!("`{name}`");
    }
    let kind = match found.kind {
        Kind::Node => "node",
        Kind::Edge => "edge",
        Kind::Path => "path",
    };
    let types = program.type_names(slot).unwrap_or_default();
    if types.is_empty() {
        format!("the {kind} at place {}", slot + 1)
    } else {
        format!("the {kind} :{}", types.join("|"))
    }
}

/// The plan from nothing, and from a change in each slot.
pub(super) fn explain(program: &Program, canonical: &str, graph: &Graph) -> Explanation {
    let mut searches = Vec::with_capacity(program.slots.len() + 1);
    let mut planner = Planner::new(program, graph);
    planner.plan(0, 0);
    searches.push(planner.finish("nothing".to_owned()));
    for slot in 0..program.slots.len() {
        let mut planner = Planner::new(program, graph);
        planner.plan_change(slot);
        searches.push(planner.finish(format!("a change of {}", slot_name(program, slot))));
    }
    Explanation { pattern: canonical.to_owned(), searches }
}

struct Planner<'a> {
    program: &'a Program,
    graph: &'a Graph,
    stages: Vec<Stage>,
    /// How many rows there are so far, and how many elements were looked at for them.
    rows: f64,
    steps: f64,
    depth: usize,
}

impl<'a> Planner<'a> {
    fn new(program: &'a Program, graph: &'a Graph) -> Self {
        Planner { program, graph, stages: Vec::new(), rows: 1.0, steps: 0.0, depth: 0 }
    }

    fn finish(self, from: String) -> SearchPlan {
        SearchPlan { from, stages: self.stages, steps: self.steps }
    }

    /// The plan from a change in a slot: through its scope, then through those around it.
    fn plan_change(&mut self, slot: usize) {
        // The element itself.
        self.steps += 1.0;
        let mut scope = self.program.slots[slot].scope;
        let step = self.program.scopes[scope].edges.iter().find(|step| step.slot == slot);
        let mut bound = match step {
            Some(step) if step.length.is_some() => {
                let by = format!("every start of a path through {}", slot_name(self.program, slot));
                let (edges, nodes) = (self.count(slot).0, self.count(step.from).0.max(1.0));
                let before = step.length.and_then(|length| length.max).unwrap_or(PATH_GUESS);
                self.take(bit(step.from), 0, by, paths(edges / nodes, before.max(1) - 1) + 1.0);
                bit(step.from)
            }
            _ => bit(slot),
        };
        loop {
            bound = self.plan(scope, bound) & !self.program.scopes[scope].own;
            match self.program.scopes[scope].parent {
                Some(parent) => scope = parent,
                None => return,
            }
        }
    }

    /// Notes one stage that binds `set` beside what is bound.
    fn take(&mut self, set: SlotSet, bound: SlotSet, by: String, each: f64) {
        let binds: Vec<String> =
            slots_of(set & !bound).map(|slot| slot_name(self.program, slot)).collect();
        let only_checks = binds.is_empty();
        self.stages.push(Stage { binds, by, each, depth: self.depth });
        self.steps += self.rows * each.max(1.0);
        if !only_checks {
            self.rows *= each;
        }
    }

    /// Notes everything taken in a scope, and gives all that is bound then.
    fn plan(&mut self, number: usize, start: SlotSet) -> SlotSet {
        let scope = &self.program.scopes[number];
        let mut bound = start;
        let mut pending: Vec<&EdgeStep> = scope.edges.iter().collect();
        loop {
            let mut best: Option<(f64, SlotSet, String)> = None;
            let mut keep = |cost: f64, set: SlotSet, text: String| {
                if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                    best = Some((cost, set, text));
                }
            };
            for step in &pending {
                self.edge_option(step, bound, &mut keep);
            }
            for anchor in &scope.anchors {
                self.anchor_option(anchor, bound, &mut keep);
            }
            if best.is_none() {
                for slot in slots_of(scope.nodes & !bound) {
                    let (count, types) = self.count(slot);
                    let better = best.as_ref().is_none_or(|(least, ..)| count < *least);
                    if better {
                        best = Some((count, bit(slot), format!("every node{types}")));
                    }
                }
            }
            let Some((each, set, by)) = best else { break };
            self.take(set, bound, by, each);
            bound |= set;
            pending.retain(|step| {
                let all = bit(step.slot) | bit(step.from) | bit(step.to);
                all & !bound != 0
            });
        }
        self.exists(number, bound);
        bound
    }

    /// What the `EXISTS` of a scope take for each row, at most: they end at their first match.
    fn exists(&mut self, number: usize, bound: SlotSet) {
        for filter in &self.program.scopes[number].filters {
            let mut inside = Vec::new();
            filter.code.visit(&mut |part| {
                if let Code::Exists(scope) = part {
                    inside.push(*scope);
                }
            });
            for scope in inside {
                let rows = self.rows;
                self.depth += 1;
                self.plan(scope, bound);
                self.depth -= 1;
                self.rows = rows;
            }
        }
    }

    fn edge_option(
        &self,
        step: &EdgeStep,
        bound: SlotSet,
        keep: &mut impl FnMut(f64, SlotSet, String),
    ) {
        let all = bit(step.slot) | bit(step.from) | bit(step.to);
        if step.length.is_none() && bound & bit(step.slot) != 0 {
            keep(1.0, all, "the ends of the edge".to_owned());
            return;
        }
        for end in [step.from, step.to] {
            if bound & bit(end) == 0 {
                continue;
            }
            let (edges, types) = self.count(step.slot);
            let degree = edges / self.count(end).0.max(1.0);
            let cost = match step.length {
                Some(length) => paths(degree, length.max.unwrap_or(PATH_GUESS)),
                None => degree,
            };
            let way = match (step.ways, end == step.from) {
                (Ways::Both, _) => "edges either way",
                (Ways::Forward, true) | (Ways::Backward, false) => "edges out",
                _ => "edges in",
            };
            let path = if step.length.is_some() { "paths of " } else { "" };
            keep(cost, all, format!("{path}{way}{types} of {}", slot_name(self.program, end)));
        }
    }

    fn anchor_option(
        &self,
        anchor: &Anchor,
        bound: SlotSet,
        keep: &mut impl FnMut(f64, SlotSet, String),
    ) {
        if bound & bit(anchor.slot) != 0 || anchor.needs & !bound != 0 {
            return;
        }
        match &anchor.key {
            AnchorKey::Id => keep(1.0, bit(anchor.slot), "by its id".to_owned()),
            AnchorKey::Property(property) => {
                let names = self.program.type_names(anchor.slot).unwrap_or_default();
                if names.iter().all(|name| self.graph.has_index(name, property)) {
                    // How often a value occurs is not known before it is looked up.
                    let cost = self.count(anchor.slot).0.sqrt();
                    keep(cost, bit(anchor.slot), format!("by the index of {property}"));
                }
            }
        }
    }

    /// How many elements may stand in a slot, and its types in words.
    fn count(&self, slot: usize) -> (f64, String) {
        let node = self.program.slots[slot].kind == Kind::Node;
        let Some(names) = self.program.type_names(slot) else {
            let all = if node { self.graph.node_count() } else { self.graph.edge_count() };
            return (all as f64, String::new());
        };
        let known = names.iter().filter_map(|name| self.graph.type_id(name));
        let counts = known.map(|type_id| match node {
            true => self.graph.node_count_of_type(type_id),
            false => self.graph.edge_count_of_type(type_id),
        });
        (counts.sum::<usize>() as f64, format!(" :{}", names.join("|")))
    }
}

/// How many paths of up to so many edges leave a node, each of which goes on by `degree` edges.
fn paths(degree: f64, most: u32) -> f64 {
    (1..=most.min(64)).map(|edges| degree.powi(edges as i32)).sum()
}
