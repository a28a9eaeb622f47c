//! Events on the wire: their records, and the long texts that moved out of them.
//!
//! The side that receives them reads the records anew and works out for itself which blobs they
//! name, so that a peer cannot slip in what an append of its own would not let pass.

use std::collections::HashMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::batch::Batch;
use crate::change::{Change, ChangeRef};
use crate::error::EventError;
use crate::event::{Draft, Event};
use crate::id::{Hash, Offset};
use crate::value::{Blobs, MapRef, NamedBlob, ValueRef};

/// Consecutive events.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Sent {
    records: Vec<Bytes>,
    /// The long texts that were given with them.
    given: Vec<Bytes>,
}

impl Sent {
    pub(super) fn of_batch(batch: &Batch) -> Sent {
        let (events, blobs) = batch.parts();
        let records = events.iter().map(|(event, _)| event.record().clone()).collect();
        Sent { records, given: blobs.given.iter().map(|(_, text)| text.clone()).collect() }
    }

    pub(super) fn of_drafts(drafts: &[Draft]) -> Result<Sent, EventError> {
        Batch::of_drafts(Offset::ZERO, drafts).map(|batch| Sent::of_batch(&batch))
    }

    /// How many events there are.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// The batch whose first event stands at `first`.
    pub(super) fn batch(self, first: Offset) -> Result<Batch, &'static str> {
        let given: Vec<_> = self.given.into_iter().map(|text| (Hash::of(&text), text)).collect();
        let mut batch = Batch::new();
        for (nth, record) in self.records.into_iter().enumerate() {
            let event = Event::from_record(record, first.plus(nth as u64))?;
            if event.has_dropped_part() {
                return Err("a new event of which a part was dropped");
            }
            let mut named = Vec::new();
            blobs_of(&event, &mut named);
            let given = if nth == 0 { given.clone() } else { Vec::new() };
            batch.push(event, Blobs { given, named });
        }
        Ok(batch)
    }

    /// The events as drafts, with their long texts in them.
    pub(super) fn drafts(self) -> Result<Vec<Draft>, &'static str> {
        let mut texts = HashMap::new();
        for bytes in self.given {
            let hash = Hash::of(&bytes);
            let text = String::from_utf8(bytes.into()).map_err(|_| "a text that is not UTF-8")?;
            texts.insert(hash.to_string(), text);
        }
        let mut drafts = Vec::with_capacity(self.records.len());
        for record in self.records {
            let mut draft = Event::from_record(record, Offset::ZERO)?.to_draft();
            put_back(&mut draft.payload, &texts);
            put_back(&mut draft.extra, &texts);
            draft.changes.iter_mut().for_each(|change| put_back_in(change, &texts));
            drafts.push(draft);
        }
        Ok(drafts)
    }
}

fn blobs_of(event: &Event, found: &mut Vec<NamedBlob>) {
    blobs_in(event.payload(), found);
    blobs_in(event.extra(), found);
    for change in event.changes().iter() {
        match change {
            ChangeRef::Create { properties, .. }
            | ChangeRef::Ensure { properties, .. }
            | ChangeRef::Link { properties, .. }
            | ChangeRef::EnsureLink { properties, .. }
            | ChangeRef::Write { properties, .. } => blobs_in(properties, found),
            ChangeRef::Unset { .. } | ChangeRef::Remove { .. } => {}
        }
    }
}

fn blobs_in(map: MapRef<'_>, found: &mut Vec<NamedBlob>) {
    map.iter().for_each(|(_, value)| blobs_in_value(value, found));
}

fn blobs_in_value(value: ValueRef<'_>, found: &mut Vec<NamedBlob>) {
    match value {
        ValueRef::Blob(blob) => {
            let (hash, size, head) = (blob.hash, blob.size, blob.head.to_owned());
            found.push(NamedBlob { hash, size, head });
        }
        ValueRef::List(list) => list.iter().for_each(|item| blobs_in_value(item, found)),
        ValueRef::Map(map) => blobs_in(map, found),
        _ => {}
    }
}

fn put_back_in(change: &mut Change, texts: &HashMap<String, String>) {
    match change {
        Change::Create { properties, .. }
        | Change::Ensure { properties, .. }
        | Change::Link { properties, .. }
        | Change::EnsureLink { properties, .. }
        | Change::Write { properties, .. } => put_back(properties, texts),
        Change::Unset { .. } | Change::Remove { .. } => {}
    }
}

/// Puts long texts back where their references stand.
fn put_back(map: &mut Map<String, Value>, texts: &HashMap<String, String>) {
    if texts.is_empty() {
        return;
    }
    map.values_mut().for_each(|value| put_back_value(value, texts));
}

fn put_back_value(value: &mut Value, texts: &HashMap<String, String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| put_back_value(item, texts)),
        Value::Object(map) => {
            let hash = map.get("$blob").and_then(Value::as_str).filter(|_| map.len() == 3);
            match hash.and_then(|hash| texts.get(hash)) {
                Some(text) => *value = Value::String(text.clone()),
                None => map.values_mut().for_each(|value| put_back_value(value, texts)),
            }
        }
        _ => {}
    }
}
