//! The plan of a search, in words: where it starts and what it takes next, with expected counts.
//!
//! A search chooses by the degrees it meets; here they are the averages of the graph, so the plan
//! shown is the one of an average element. It is the same for the same graph.

use std::fmt::Write;

use crate::graph::Graph;
use crate::pattern::program::{
    Anchor, AnchorKey, EdgeStep, Kind, Program, SlotSet, Ways, bit, slots_of,
};
use crate::world::World;

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
pub(super) fn explain(program: &Program, canonical: &str, graph: &Graph) -> String {
    let mut out = format!("{canonical}\n");
    let planner = Planner { program, graph };
    out.push_str("from nothing\n");
    planner.plan(0, 0, &mut out);
    for slot in 0..program.slots.len() {
        let name = slot_name(program, slot);
        writeln!(out, "from a change of {name}").expect("a String takes every write");
        planner.plan_change(slot, &mut out);
    }
    out
}

struct Planner<'a> {
    program: &'a Program,
    graph: &'a Graph,
}

impl Planner<'_> {
    /// The plan from a change in a slot: through its scope, then through those around it.
    fn plan_change(&self, slot: usize, out: &mut String) {
        let mut scope = self.program.slots[slot].scope;
        let step = self.program.scopes[scope].edges.iter().find(|step| step.slot == slot);
        let mut bound = match step {
            Some(step) if step.length.is_some() => bit(step.from),
            _ => bit(slot),
        };
        loop {
            bound = self.plan(scope, bound, out) & !self.program.scopes[scope].own;
            match self.program.scopes[scope].parent {
                Some(parent) => scope = parent,
                None => return,
            }
            out.push_str("  outward to the pattern around it\n");
        }
    }

    /// Writes one line for each thing taken, and gives all that is bound then.
    fn plan(&self, number: usize, start: SlotSet, out: &mut String) -> SlotSet {
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
                    let text = format!("every node{types}");
                    let better = best.as_ref().is_none_or(|(least, ..)| count < *least);
                    if better {
                        best = Some((count, bit(slot), text));
                    }
                }
            }
            let Some((cost, set, text)) = best else { break };
            let names: Vec<String> =
                slots_of(set & !bound).map(|slot| slot_name(self.program, slot)).collect();
            let what = if names.is_empty() { "check".to_owned() } else { names.join(", ") };
            writeln!(out, "  {what}: {text}, about {cost:.1}").expect("a String takes every write");
            bound |= set;
            pending.retain(|step| {
                let all = bit(step.slot) | bit(step.from) | bit(step.to);
                all & !bound != 0
            });
        }
        let filters = scope.filters.len();
        if filters > 0 {
            let inside = scope.filters.iter().filter(|filter| filter.late).count();
            writeln!(out, "  conditions: {filters}, of which {inside} with EXISTS, last")
                .expect("a String takes every write");
        }
        bound
    }

    fn edge_option(
        &self,
        step: &EdgeStep,
        bound: SlotSet,
        keep: &mut impl FnMut(f64, SlotSet, String),
    ) {
        let all = bit(step.slot) | bit(step.from) | bit(step.to);
        if step.length.is_none() && bound & bit(step.slot) != 0 {
            keep(0.0, all, "the ends of the edge".to_owned());
            return;
        }
        for end in [step.from, step.to] {
            if bound & bit(end) == 0 {
                continue;
            }
            let (edges, types) = self.count(step.slot);
            let cost = edges / self.count(end).0.max(1.0);
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
