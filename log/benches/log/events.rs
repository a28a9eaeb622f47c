//! The events of the bench: what a behavior's firing writes, about as large as real ones.

use std::time::Instant;

use log::{Batch, Bound, Cause, Change, Derivation, Draft, Event, Offset, Time, WriteOp};
use serde_json::{Map, Value, json};

/// Events enough for the largest batch, used again and again.
const POOL: u64 = 20_000;

/// Drafts, made before any clock runs.
pub(crate) struct Pool {
    drafts: Vec<Draft>,
    pub(crate) record_bytes: usize,
    pub(crate) json_bytes: usize,
}

/// Makes the drafts.
pub(crate) fn pool() -> Pool {
    let drafts: Vec<Draft> = (0..POOL).map(draft).collect();
    let records = drafts.iter().map(|draft| {
        let (event, _) = Event::encode(draft, Offset::ZERO).expect("the draft is in order");
        event.record().len()
    });
    let record_bytes = records.sum::<usize>() / drafts.len();
    let json_bytes = drafts.iter().map(|draft| json_of(draft).to_string().len()).sum::<usize>();
    let json_bytes = json_bytes / drafts.len();
    Pool { drafts, record_bytes, json_bytes }
}

fn draft(n: u64) -> Draft {
    let id = |what: &str, n: u64| Derivation::new().text(what).integer(n).finish();
    let mut draft = Draft::new(id("event", n), "task.planned", "behavior:plan_task@9f2c41d0");
    let words = ["review", "the", "budget", "of", "trip", "hotel", "flight", "before", "monday"];
    let title: Vec<&str> = (0..6).map(|k| words[((n * 7 + k * n / 3) % 9) as usize]).collect();
    let task = format!("Task#{}", id("task", n % 500).hex().as_str());
    draft.payload = object(json!({
        "title": title.join(" "), "attempt": n % 4, "cost": (n % 1000) as f64 / 8.0,
    }));
    draft.changes = vec![
        Change::Create {
            id: None,
            type_name: "Step".into(),
            properties: object(json!({"title": title[0], "done": false, "rank": n % 17})),
        },
        Change::Write {
            op: WriteOp::Add,
            id: task.as_str().into(),
            properties: object(json!({"steps": 1})),
            if_version: None,
        },
    ];
    draft.cause = Some(Cause::Firing {
        event: id("event", n.saturating_sub(3)),
        behavior: "plan_task".into(),
        row: vec![Bound::Element(task.into())],
    });
    draft.taken = n;
    draft.time = Time::from_ms(1_767_603_600_000 + (n * 37) as i64).expect("a time of this year");
    draft
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("the bench makes objects") };
    map
}

fn json_of(draft: &Draft) -> Value {
    let changes: Vec<Value> = draft.changes.iter().map(Change::to_json).collect();
    json!({
        "id": draft.id.to_string(), "kind": draft.kind.as_str(), "payload": draft.payload,
        "changes": changes, "actor": draft.actor.as_str(), "taken": draft.taken,
        "time": draft.time.to_string(),
        "cause": {"event": draft.id.to_string(), "behavior": "plan_task", "match": ["Task#"]},
    })
}

impl Pool {
    /// The drafts of the batch that begins at event `from`.
    pub(crate) fn batch(&self, from: u64, events: usize) -> &[Draft] {
        let start = usize::try_from(from).expect("a small number") % (self.drafts.len() - events);
        &self.drafts[start..start + events]
    }

    /// How many events one thread encodes and hashes in a second.
    pub(crate) fn encode_rate(&self) -> f64 {
        let rates = (0..10).map(|_| {
            let start = Instant::now();
            let batch = Batch::of_drafts(Offset::ZERO, &self.drafts[..10_000]);
            drop(std::hint::black_box(batch.expect("the drafts are in order")));
            10_000.0 / start.elapsed().as_secs_f64()
        });
        rates.fold(0.0, f64::max)
    }
}
