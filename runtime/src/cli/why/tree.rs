//! A proof as a tree: each change, below it what its firing was shown, below that its cause.

use std::collections::BTreeSet;

use log::{Branch, Event, Offset};
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::sentence::what;
use crate::engine::{Saw, Shown};
use crate::history::{Changed, Proof, cause_of};

/// How many causes are told below one change.
const CAUSES_MAX: usize = 20;
/// How many elements of a match or a read are told.
const ELEMENTS_MAX: usize = 8;

/// Tells a proof, each event once.
pub(super) struct Tree<'p> {
    branch: &'p Branch,
    proof: &'p Proof,
    all: bool,
    told: BTreeSet<Offset>,
}

impl<'p> Tree<'p> {
    pub(super) fn new(branch: &'p Branch, proof: &'p Proof, all: bool) -> Self {
        Tree { branch, proof, all, told: BTreeSet::new() }
    }

    fn address(&self, offset: Offset) -> String {
        format!("{}@{offset}", self.branch.name)
    }

    /// An event and all that it followed from, up to what came from outside.
    fn chain(&self, event: &Event) -> Vec<&'p Event> {
        let mut chain: Vec<&Event> = self.proof.events.get(&event.id()).into_iter().collect();
        while let Some(cause) =
            chain.last().and_then(|last| self.proof.events.get(&cause_of(last)?))
        {
            chain.push(cause);
        }
        chain
    }

    /// The offsets of the last change and its causes.
    pub(super) fn causes(&self, changes: &[Changed]) -> Vec<u64> {
        let last = changes.last().map(|changed| self.chain(&changed.event)).unwrap_or_default();
        last.into_iter().map(|event| event.offset().get()).collect()
    }

    /// One change and what led to it, as lines.
    pub(super) fn tell(
        &mut self,
        changed: &Changed,
        line: &mut dyn FnMut(String) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let most = if self.all { usize::MAX } else { CAUSES_MAX };
        let chain = self.chain(&changed.event);
        for (depth, event) in chain.iter().enumerate() {
            let indent = "  ".repeat(depth.min(CAUSES_MAX) + 1);
            let arrow = if depth == 0 { "" } else { "<- " };
            let address = self.address(event.offset());
            if depth == most {
                let more = chain.len() - depth;
                return line(format!("{indent}… {more} causes more; --all tells them"));
            }
            if !self.told.insert(event.offset()) {
                return line(format!("{indent}{arrow}{address}, told above"));
            }
            let values = if depth == 0 { values(changed) } else { String::new() };
            line(format!(
                "{indent}{arrow}{address}  {}  {}  {values}{}",
                event.actor(),
                event.kind(),
                if values.is_empty() { what(event) } else { String::new() }
            ))?;
            if let Some(shown) = self.proof.shown.get(&event.offset()) {
                for told in self.shown(shown) {
                    line(format!("{indent}   {told}"))?;
                }
            } else if cause_of(event).is_none() {
                line(format!("{indent}   from outside"))?;
            }
        }
        Ok(())
    }

    /// What a firing was shown: its file, its match, what it read.
    fn shown(&self, shown: &Shown) -> Vec<String> {
        let hash = shown.hash.get(..8).unwrap_or(&shown.hash);
        let from = if shown.path.is_empty() { "no file" } else { &shown.path };
        let mut lines = vec![format!("by {} of {from} ({hash})", shown.behavior)];
        let bound: Vec<String> = shown
            .bound
            .iter()
            .map(|(name, saw)| self.named(name.as_deref().unwrap_or("_"), saw))
            .collect();
        if !bound.is_empty() {
            lines.push(format!("on {}", bound.join(", ")));
        }
        lines.extend(
            shown.reads.iter().map(|(name, saw)| format!("read {}", self.named(name, saw))),
        );
        lines
    }

    fn named(&self, name: &str, saw: &[Saw]) -> String {
        let mut told: Vec<String> = saw
            .iter()
            .take(ELEMENTS_MAX)
            .map(|saw| match saw.changed {
                Some(changed) => format!("{} ({})", saw.id, self.address(changed)),
                None => format!("{} (gone)", saw.id),
            })
            .collect();
        if saw.len() > ELEMENTS_MAX {
            told.push(format!("… {} more", saw.len() - ELEMENTS_MAX));
        }
        let told = if told.is_empty() { "nothing".to_owned() } else { told.join(", ") };
        format!("{name} = {told}")
    }

    /// One change and what led to it, as JSON.
    pub(super) fn to_json(&self, changed: &Changed) -> Value {
        let saw = |saw: &[Saw]| -> Value {
            let element = |saw: &Saw| json!({"id": saw.id, "changed": saw.changed.map(|offset| self.address(offset))});
            saw.iter().map(element).collect()
        };
        let shown = |shown: &Shown| {
            let bound =
                shown.bound.iter().map(|(name, of)| json!({"name": name, "elements": saw(of)}));
            let reads =
                shown.reads.iter().map(|(name, of)| json!({"name": name, "elements": saw(of)}));
            json!({
                "behavior": shown.behavior, "hash": shown.hash, "path": shown.path,
                "match": bound.collect::<Vec<_>>(), "reads": reads.collect::<Vec<_>>(),
            })
        };
        let causes = self.chain(&changed.event).into_iter().map(|event| {
            json!({
                "address": self.address(event.offset()), "id": event.id().to_string(),
                "kind": event.kind(), "actor": event.actor(),
                "firing": self.proof.shown.get(&event.offset()).map(shown),
            })
        });
        let values = changed.values.iter().map(
            |(name, before, after)| json!({"property": name, "before": before, "after": after}),
        );
        json!({"values": values.collect::<Vec<_>>(), "chain": causes.collect::<Vec<_>>()})
    }
}

/// What a change changed: `tau 1 -> 2`.
fn values(changed: &Changed) -> String {
    let text = |value: &Option<Value>| value.as_ref().map_or("nothing".into(), Value::to_string);
    let told = changed
        .values
        .iter()
        .map(|(name, before, after)| format!("{name} {} -> {}", text(before), text(after)));
    told.collect::<Vec<_>>().join(", ")
}
