//! Counts the events of each kind: the node `count:KIND` has the number as `n`.
//!
//! Its own events are not counted, for they do not wake it.

use serde_json::json;

use crate::{Firing, MetadataError, Proposals, ReactError, RustBehavior};

pub(super) fn behavior() -> Result<RustBehavior, MetadataError> {
    RustBehavior::new(
        &json!({
            "name": "count_events",
            "description": "Counts the events of each kind in a node of its own.",
            "on": "*",
            "emits": ["event.counted"],
            "writes": ["Count", "Count.n"],
        }),
        react,
    )
}

fn react(firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
    let kind = firing.event.kind;
    let id = format!("count:{kind}");
    let mut counted = out.emit("event.counted", json!({"kind": kind}));
    counted.ensure("Count", &id, json!({"kind": kind}));
    counted.add(&id, json!({"n": 1}));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    #[test]
    fn an_event_adds_one_to_the_count_of_its_kind() {
        check(
            &behavior().expect("metadata"),
            json!({"event": {"kind": "trip.opened"}}),
            r#"
            event.counted {"kind":"trip.opened"}
              {"ensure":"count:trip.opened","properties":{"kind":"trip.opened"},"type":"Count"}
              {"add":"count:trip.opened","properties":{"n":1}}
            "#,
        );
    }
}
