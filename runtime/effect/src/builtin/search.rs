//! `search`: lines of the workspace's files that a pattern matches, as ripgrep finds them.

use std::path::Path;

use grep_regex::RegexMatcherBuilder;
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, SearcherBuilder};
use ignore::overrides::OverrideBuilder;
use serde_json::{Value, json};

use super::list::each_path;
use super::local::{Done, Job, Local, Parts, nothing_to_look_for};
use crate::class::Class;
use crate::error::{Blame, EffectError};

/// The longest line that is shown.
const LINE_CHARS_MAX: usize = 500;

/// The largest compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;

pub(super) fn effect(flock: &Path) -> Local {
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["pattern"],
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "maxLength": 1024},
            "path": {"type": "string", "default": "."},
            "glob": {"type": "string"},
            "fixed": {"type": "boolean", "default": false},
            "ignore_case": {"type": "boolean", "default": false},
            "all": {"type": "boolean", "default": false},
            "most": {"type": "integer", "minimum": 1, "maximum": 5000, "default": 200},
        },
    });
    Local::new(
        flock,
        Parts {
            name: "search",
            class: Class::ReadOnly,
            schema,
            complete: Ok,
            act,
            look: nothing_to_look_for,
        },
    )
}

fn wrong(field: &str, why: impl std::fmt::Display) -> EffectError {
    let what = format!("`{field}` cannot be used: {why}");
    EffectError::new("arguments.pattern", Blame::Caller, what, "correct it")
}

fn act(job: &Job) -> Done {
    let matcher = RegexMatcherBuilder::new()
        .fixed_strings(job.flag("fixed"))
        .case_insensitive(job.flag("ignore_case"))
        .line_terminator(Some(b'\n'))
        .size_limit(PATTERN_BYTES_MAX)
        .build(job.text("pattern"))
        .map_err(|error| wrong("pattern", error))?;
    let mut globs = OverrideBuilder::new(job.beneath.path());
    if let Some(glob) = job.args.get("glob").and_then(Value::as_str) {
        globs.add(glob).map_err(|error| wrong("glob", error))?;
    }
    let globs = globs.build().map_err(|error| wrong("glob", error))?;
    let mut searcher =
        SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).line_number(true).build();
    let (most, mut found, mut cut, mut files) = (job.count("most"), Vec::new(), false, 0u64);
    each_path(job, job.text("path"), None, job.flag("all"), |path| {
        if globs.matched(path, false).is_ignore() {
            return Ok(true);
        }
        // A folder, a pipe, or something that leads out by now: there is nothing to search.
        let Ok(file) = job.beneath.file(path) else { return Ok(true) };
        files += 1;
        let sink = Lossy(|line, text| {
            cut = found.len() == most;
            if !cut {
                let text: String = text.trim_end().chars().take(LINE_CHARS_MAX).collect();
                found.push(json!({"path": path, "line": line, "text": text}));
            }
            Ok(!cut)
        });
        // A file that cannot be read to its end gave what it gave.
        drop(searcher.search_file(&matcher, &file, sink));
        Ok(!cut)
    })?;
    Ok((json!({"matches": found, "files": files, "cut": cut}), None))
}
