//! The events of a promotion: the keys that travel, the changes, and last the marker that says how
//! far the branch was promoted. They land as one batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use log::{Batch, Branch, BranchId, Change, Derivation, Draft, Event, EventId, link_at};
use log::{Head, Log, LogError, Offset, read_one};
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::conflict::{Disagreement, Side};
use super::wakes::{Woken, sorted};
use super::{PromoteError, Promoted, Promotion, Sides};
use crate::engine::append_once;
use crate::engine::catching::Past;
use crate::engine::state::State;

/// The last event of a promotion.
pub(super) const MARKER: &str = "branch.promoted";
/// Changes of a promotion that are too many for one event.
pub(super) const PART: &str = "branch.promoting";
/// A durable key that took effect on a promoted branch.
pub(crate) const KEY_TAKEN: &str = "branch.key_taken";

/// About how many bytes of changes one event carries.
const PART_BYTES: usize = 256 << 10;

/// Whether an event brings changes of another branch.
pub(crate) fn is_promoting(event: &Event) -> bool {
    event.is_kind(MARKER) || event.is_kind(PART)
}

/// The event at an offset, which has a durable key; for one that came with a promotion, the event
/// that used the key on its branch, as if it stood here. One that was imported from another store,
/// where that branch is not, stands for itself: its key is taken, with other content.
///
/// # Errors
/// The log cannot be read.
pub(crate) fn keyed_at(log: &dyn Log, branch: BranchId, offset: Offset) -> Result<Event, LogError> {
    let mut at = read_one(log, branch, offset)?;
    while at.is_kind(KEY_TAKEN) {
        let payload = at.payload();
        let number = |name: &str| payload.get(name).and_then(|n| n.as_i64());
        let Some((number, place)) = number("branch").zip(number("offset")) else { break };
        let place = Offset::new(place.unsigned_abs());
        let from = log.branches()?.into_iter().find(|b| i64::from(b.id.get()) == number);
        let Some(from) = from.filter(|from| place < from.tip.head.next()) else { break };
        let used = read_one(log, from.id, place)?;
        let id = used.id().to_string();
        if payload.get("event").and_then(|event| event.as_str()) != Some(&id) {
            break;
        }
        at = used;
    }
    Ok(at.at(offset))
}

/// The marker of the last promotion of one branch into another, and how many there are. A marker
/// names a branch by its number in a store and the link up to which it went: one that came with an
/// import may name another branch, whose link is another.
pub(super) fn last_marker(
    log: &dyn Log,
    from: &Branch,
    into: &Branch,
) -> Result<(Option<Event>, u64), LogError> {
    let (mut last, mut count) = (None, 0);
    while let Some(offset) = log.find_key(into.id, &marker_key(from, count))? {
        let marker = read_one(log, into.id, offset)?;
        if is_of(log, from, &marker)? {
            last = Some(marker);
        }
        count += 1;
    }
    Ok((last, count))
}

/// Whether a marker is about this branch of this store.
fn is_of(log: &dyn Log, from: &Branch, marker: &Event) -> Result<bool, LogError> {
    let payload = marker.payload();
    let head = payload.get("head").and_then(|head| head.as_i64());
    let head = head.map(|head| Head::of_count(head.unsigned_abs()));
    let Some(head) = head.filter(|head| *head <= from.tip.head) else { return Ok(false) };
    let link = link_at(log, from.id, head)?.to_string();
    Ok(payload.get("link").and_then(|link| link.as_str()) == Some(&link))
}

/// How far a branch is promoted, as a marker says.
pub(super) fn base_of(marker: &Event) -> Option<Head> {
    let base = marker.payload().get("base")?.as_i64()?;
    Some(Head::of_count(base.unsigned_abs()))
}

fn marker_key(from: &Branch, nth: u64) -> String {
    format!("{MARKER} {} {nth}", from.id.get())
}

/// What is to land.
pub(super) struct Landing {
    parts: Vec<Vec<Change>>,
    keys: Vec<Event>,
}

/// What can land.
pub(super) struct Staged {
    batch: Batch,
    expected: Head,
    changes: usize,
    keys: Vec<String>,
    wakes: BTreeMap<SmolStr, usize>,
    quiet: usize,
}

impl Landing {
    pub(super) fn of(changes: Vec<Change>, keys: Vec<Event>) -> Landing {
        let mut parts: Vec<Vec<Change>> = Vec::new();
        let mut bytes = PART_BYTES;
        for change in changes {
            let size = change.to_json().to_string().len();
            if bytes + size > PART_BYTES {
                parts.push(Vec::new());
                bytes = 0;
            }
            bytes += size;
            parts.last_mut().expect("there is a part").push(change);
        }
        Landing { parts, keys }
    }

    /// Makes the events, each on the world that the ones before it leave. What is refused there is
    /// a conflict: a schema that only our side has.
    pub(super) fn stage(
        self,
        promotion: &Promotion<'_>,
        sides: &Sides,
    ) -> Result<Staged, PromoteError> {
        let mut staged = Staged {
            batch: Batch::new(),
            expected: sides.ours.head,
            changes: self.parts.iter().map(Vec::len).sum(),
            keys: self.keys.iter().filter_map(|event| event.key().map(str::to_owned)).collect(),
            wakes: BTreeMap::new(),
            quiet: 0,
        };
        if self.parts.is_empty() && self.keys.is_empty() {
            return Ok(staged);
        }
        let mut ours = sides.ours.clone();
        for key in &self.keys {
            let draft = key_taken(promotion, key);
            staged.push(&mut ours, sides, draft)?;
        }
        let mut parts = self.parts;
        let last = parts.pop().unwrap_or_default();
        let id = promotion.id(sides);
        for (nth, changes) in (0u64..).zip(parts) {
            let id = Derivation::new().id(&id).integer(nth).finish();
            let mut draft = promotion.draft(id, PART);
            draft.changes = changes;
            staged.push(&mut ours, sides, draft)?;
        }
        let mut marker = promotion.marker(id, sides);
        marker.changes = last;
        staged.push(&mut ours, sides, marker)?;
        Ok(staged)
    }
}

impl Promotion<'_> {
    fn id(&self, sides: &Sides) -> EventId {
        let tip = &self.from.tip;
        let id = Derivation::new().text(MARKER).integer(self.from.id.get().into());
        let id = id.integer(tip.head.count()).integer(sides.ours.head.count());
        id.text(&tip.link.to_string()).finish()
    }

    fn draft(&self, id: EventId, kind: &str) -> Draft {
        let mut draft = Draft::new(id, kind, "runtime");
        draft.payload.insert("from".to_owned(), json!(self.from.name.as_str()));
        draft.payload.insert("by".to_owned(), json!(self.who));
        draft.time = self.now;
        draft
    }

    fn marker(&self, id: EventId, sides: &Sides) -> Draft {
        let mut draft = self.draft(id, MARKER);
        let head = self.from.tip.head.count();
        // What was left out is still to be promoted, so its base stays where it was.
        let base = if self.only.is_some() { sides.since.count() } else { head };
        draft.key = Some(marker_key(self.from, sides.nth).into());
        draft.payload.insert("head".to_owned(), json!(head));
        draft.payload.insert("link".to_owned(), json!(self.from.tip.link.to_string()));
        draft.payload.insert("base".to_owned(), json!(base));
        if let Some(only) = self.only {
            draft.payload.insert("only".to_owned(), json!(only.canonical()));
        }
        draft
    }
}

fn key_taken(promotion: &Promotion<'_>, event: &Event) -> Draft {
    let key = event.key().expect("it has a key");
    let id = Derivation::new().text(KEY_TAKEN).text(key).id(&event.id()).finish();
    let mut draft = promotion.draft(id, KEY_TAKEN);
    draft.payload.insert("branch".to_owned(), json!(promotion.from.id.get()));
    draft.payload.insert("offset".to_owned(), json!(event.offset().get()));
    draft.payload.insert("event".to_owned(), json!(event.id().to_string()));
    draft.key = Some(key.into());
    draft
}

impl Staged {
    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    fn push(
        &mut self,
        ours: &mut State,
        sides: &Sides,
        mut draft: Draft,
    ) -> Result<(), PromoteError> {
        draft.taken = ours.taken;
        ours.end_round();
        let offset = ours.head.next();
        let (event, _) = Event::encode(&draft, offset).map_err(LogError::from)?;
        let refused = |refusal: projection::Refusal| {
            let why = refusal.to_string();
            let (ours, theirs) = (Side::default(), Side::default());
            let what = "the changes together".to_owned();
            PromoteError::Conflicts(vec![Disagreement { kind: "schema", what, why, ours, theirs }])
        };
        let delta = ours.graph.apply(&event).map_err(refused)?;
        let Woken { wakes, quiet, quiet_count } = sorted(ours, sides, &event, &delta);
        ours.graph.undo(delta);
        for (name, count) in wakes {
            *self.wakes.entry(name).or_default() += count;
        }
        self.quiet += quiet_count;
        if !quiet.is_empty() {
            draft.payload.insert("quiet".to_owned(), Value::Object(quiet));
        }
        let (event, blobs) = Event::encode(&draft, offset).map_err(LogError::from)?;
        ours.fold(&event, Past::None)?;
        self.batch.push(event, blobs);
        Ok(())
    }

    pub(super) fn told(&self, since: Head) -> Promoted {
        Promoted {
            changes: self.changes,
            keys: self.keys.clone(),
            wakes: self.wakes.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
            quiet: self.quiet,
            since,
            landed: None,
        }
    }

    pub(super) fn land(
        self,
        log: &Arc<dyn Log>,
        into: &Branch,
        owner: &str,
    ) -> Result<Offset, PromoteError> {
        let landed = append_once(&**log, into.id, self.batch, self.expected, owner)?;
        Ok(landed.head.last().expect("something was just appended"))
    }
}
