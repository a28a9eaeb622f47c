//! What behaviors did without declaring it, where they declare nothing at all: told to whoever runs
//! them, and no part of the log.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use behaviors::is_runtime_kind;
use log::{ChangeRef, Event};
use serde_json::{Value, json};
use smol_str::{SmolStr, format_smolstr};

use super::Engine;
use super::fire::Staged;
use super::resolve::resolved;
use super::state::State;

/// How many firings of a behavior are looked at: what it does later it mostly did before.
const LOOKED_AT: u64 = 1000;

/// What was done and not declared, by behavior.
#[derive(Clone, Debug, Default)]
pub(super) struct Lint(BTreeMap<SmolStr, (u64, Undeclared)>);

/// What one behavior did and did not declare.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undeclared {
    /// The behavior.
    pub behavior: SmolStr,
    /// What would be in its `emits`.
    pub emits: BTreeSet<SmolStr>,
    /// What would be in its `writes`.
    pub writes: BTreeSet<SmolStr>,
}

impl fmt::Display for Undeclared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |all: &BTreeSet<SmolStr>| {
            let quoted: Vec<String> = all.iter().map(|one| format!("\"{one}\"")).collect();
            quoted.join(", ")
        };
        write!(f, "{} does not declare what it does; add", self.behavior)?;
        if !self.emits.is_empty() {
            write!(f, " emits = [{}]", list(&self.emits))?;
        }
        if !self.emits.is_empty() && !self.writes.is_empty() {
            f.write_str(",")?;
        }
        if !self.writes.is_empty() {
            write!(f, " writes = [{}]", list(&self.writes))?;
        }
        Ok(())
    }
}

impl Undeclared {
    /// The same as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let list = |all: &BTreeSet<SmolStr>| -> Value { all.iter().map(SmolStr::as_str).collect() };
        json!({
            "behavior": self.behavior.as_str(),
            "emits": list(&self.emits),
            "writes": list(&self.writes),
        })
    }
}

impl Engine {
    /// From now on what behaviors do without declaring it is kept for `undeclared`.
    pub fn note_undeclared(&mut self) {
        self.lint.get_or_insert_default();
    }

    /// What behaviors did without declaring it, by name.
    #[must_use]
    pub fn undeclared(&self) -> Vec<Undeclared> {
        let all = self.lint.iter().flat_map(|lint| lint.0.values()).map(|(_, all)| all);
        all.filter(|all| !all.emits.is_empty() || !all.writes.is_empty()).cloned().collect()
    }
}

impl Lint {
    /// Looks at what a firing is about to land.
    pub(super) fn look(&mut self, state: &State, staged: &[Staged]) {
        let Some(last) = &state.last else { return };
        let Some(subscription) = state.subscriptions.get(&last.behavior) else { return };
        let (emits, writes) = (&subscription.metadata.emits, &subscription.metadata.writes);
        if staged.is_empty() || (emits.is_some() && writes.is_some()) {
            return;
        }
        let (count, undeclared) = self.0.entry(last.behavior.clone()).or_default();
        if *count >= LOOKED_AT {
            return;
        }
        *count += 1;
        undeclared.behavior = last.behavior.clone();
        let own = staged.iter().map(|staged| &staged.event);
        for event in own.filter(|event| !is_runtime_kind(event.kind())) {
            if emits.is_none() {
                undeclared.emits.insert(event.kind().into());
            }
            if writes.is_none() {
                note_writes(state, event, &mut undeclared.writes);
            }
        }
    }
}

fn note_writes(state: &State, event: &Event, writes: &mut BTreeSet<SmolStr>) {
    for change in resolved(event) {
        let of = |names: &mut dyn Iterator<Item = &str>, writes: &mut BTreeSet<SmolStr>| {
            let Some(element) = state.graph.element(&change.target) else { return };
            let type_name = element.type_name();
            names.for_each(|name| {
                writes.insert(format_smolstr!("{type_name}.{name}"));
            });
        };
        match change.change {
            ChangeRef::Create { type_name, .. }
            | ChangeRef::Ensure { type_name, .. }
            | ChangeRef::Link { type_name, .. }
            | ChangeRef::EnsureLink { type_name, .. } => {
                writes.insert(type_name.into());
            }
            ChangeRef::Write { properties, .. } => {
                of(&mut properties.iter().map(|(name, _)| name), writes);
            }
            ChangeRef::Unset { names, .. } => of(&mut names.iter(), writes),
            ChangeRef::Remove { .. } => {
                let element = state.graph.element(&change.target);
                writes.extend(element.map(|element| SmolStr::from(element.type_name())));
            }
        }
    }
}
