//! Closes a task when the last of its parts is done, so a tree of tasks closes from its leaves.
//!
//! Parts are joined by `(part)-[:PART_OF]->(task)`; a task is done when its `status` is `done`.

use serde_json::json;

use crate::{Firing, MetadataError, Proposals, ReactError, RustBehavior};

pub(super) fn behavior() -> Result<RustBehavior, MetadataError> {
    RustBehavior::new(
        &json!({
            "name": "close_finished_task",
            "description": "Closes a task when the last of its parts is done.",
            "match": "(part:Task {status: 'done'})-[:PART_OF]->(task:Task {status: 'open'})",
            "reads": {"parts": "(parts:Task)-[:PART_OF]->(task)"},
            "emits": ["task.finished"],
            "writes": ["Task.status"],
            // Closing a task may finish the task that it is part of.
            "wakes_self": true,
        }),
        react,
    )
}

fn react(firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
    let task = firing.element("task")?;
    let mut parts = firing.read("parts")?.elements();
    if parts.all(|part| part.text("status") == Some("done")) {
        out.emit("task.finished", json!({"task": task.id})).set(task.id, json!({"status": "done"}));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    fn scene(last: &str) -> serde_json::Value {
        let task = |id: &str, status: &str| {
            let properties = json!({"status": status});
            json!({"id": id, "type": "Task", "properties": properties})
        };
        json!({
            "bound": {"part": task("t:1", "done"), "task": task("t", "open")},
            "reads": {"parts": [task("t:1", "done"), task("t:2", last)]},
        })
    }

    #[test]
    fn a_task_closes_when_its_last_part_is_done() {
        let closed = r#"
            task.finished {"task":"t"}
              {"properties":{"status":"done"},"set":"t"}
        "#;
        check(&behavior().expect("metadata"), scene("done"), closed);
    }

    #[test]
    fn a_task_with_an_open_part_stays_open() {
        check(&behavior().expect("metadata"), scene("open"), "");
    }
}
