//! `fs.read`: a file of the workspace, or some of its lines, and the hash of all of it.

use std::path::Path;

use serde_json::{Value, json};

use super::local::{Done, Job, Local, Parts, nothing_to_look_for};
use crate::beneath::{self, hash};
use crate::class::Class;

pub(super) fn effect(flock: &Path) -> Local {
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["path"],
        "properties": {
            "path": {"type": "string"},
            "line": {"type": "integer", "minimum": 1, "default": 1},
            "lines": {"type": "integer", "minimum": 1, "default": 2000},
        },
    });
    Local::new(
        flock,
        Parts {
            name: "fs.read",
            class: Class::ReadOnly,
            schema,
            complete: Ok,
            act,
            look: nothing_to_look_for,
        },
    )
}

fn act(job: &Job) -> Done {
    let path = job.text("path");
    let bytes = beneath::read_all(job.beneath.file(path)?, path)?;
    let name = hash(&bytes);
    let size = bytes.len();
    let Ok(text) = String::from_utf8(bytes) else {
        let result = json!({"path": path, "hash": name, "bytes": size, "text": Value::Null});
        return Ok((result, None));
    };
    let total = text.lines().count();
    let (first, most) = (job.count("line"), job.count("lines"));
    let mut shown = String::new();
    let mut count = 0;
    for line in text.split_inclusive('\n').skip(first - 1).take(most) {
        if shown.len() + line.len() > job.limits.output_bytes {
            break;
        }
        shown.push_str(line);
        count += 1;
    }
    let result = json!({
        "path": path, "hash": name, "bytes": size, "text": shown,
        "line": first, "lines": count, "lines_total": total,
    });
    Ok((result, None))
}
