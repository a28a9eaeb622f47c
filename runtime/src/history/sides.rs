//! Two or more addresses side by side: their worlds as one fold as far as they share a history, and
//! what each has done in numbers.

use log::{BranchId, Head, Log};
use smol_str::{SmolStr, ToSmolStr};

use super::first_difference;
use crate::engine::FoldError;
use crate::engine::state::State;
use crate::snapshot::Snapshots;

/// One address, folded.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) branch: BranchId,
    pub(crate) cut: Head,
    pub(crate) state: State,
}

/// Folds several places. What all of them share is folded once and hashed once, so that comparing
/// their worlds costs what differs between them.
pub(crate) fn sides(
    log: &dyn Log,
    snapshots: &Snapshots,
    places: &[(BranchId, Head)],
) -> Result<Vec<Side>, FoldError> {
    let first = places[0];
    let mut shared = first.1;
    for place in &places[1..] {
        if let Some(offset) = first_difference(log, first, *place)? {
            shared = shared.min(Head::of_count(offset.get()));
        }
    }
    let base = snapshots.fold_branch(log, first.0, shared)?;
    // A copy of the world takes the hashes along that are known.
    let _known = base.graph.state_hash();
    let side = |(branch, cut): &(BranchId, Head)| {
        let state = snapshots.fold_on(base.clone(), log, *branch, *cut)?;
        Ok(Side { branch: *branch, cut: *cut, state })
    };
    places.iter().map(side).collect()
}

/// What is counted of a side, by name.
pub(crate) type Figures = Vec<(SmolStr, u64)>;

/// What a side has done, in numbers: its size, what each behavior did, what is waiting and used.
pub(crate) fn figures(side: &Side) -> Figures {
    let state = &side.state;
    let mut figures: Figures = vec![
        ("events".into(), side.cut.count()),
        ("nodes".into(), state.graph.node_count() as u64),
        ("edges".into(), state.graph.edge_count() as u64),
        ("activations taken".into(), state.taken),
        ("activations due".into(), state.agenda.len() as u64),
    ];
    for (name, count) in &state.counts {
        figures.push((format!("{name} firings").to_smolstr(), count.firings));
        figures.push((format!("{name} events").to_smolstr(), count.events));
    }
    let bounds = state.settings.bounds;
    let limits = [("events", bounds.events), ("firings", bounds.firings)];
    let limits = limits.into_iter().filter_map(|(name, limit)| Some((name, limit?)));
    figures.extend(limits.map(|(name, limit)| (format!("bound on {name}").to_smolstr(), limit)));
    let used = state.effects.ledger.account.used;
    let used = [
        ("effects used", used.effects),
        ("tokens used", used.tokens),
        ("cost used, in millionths", used.cost_micro),
    ];
    figures
        .extend(used.into_iter().filter(|(_, used)| *used > 0).map(|(n, used)| (n.into(), used)));
    figures
}
