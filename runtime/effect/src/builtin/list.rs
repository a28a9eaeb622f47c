//! `fs.list`: what is in a folder of the workspace, in the order of names.

use std::path::Path;

use ignore::WalkBuilder;
use rustix::fs::{FileType, OFlags};
use serde_json::{Value, json};

use super::local::{Done, Job, Local, Parts, nothing_to_look_for, stop_if_cancelled};
use crate::class::Class;
use crate::error::EffectError;

/// The most entries of one answer.
const ENTRIES_MAX: usize = 5000;

pub(super) fn effect(flock: &Path) -> Local {
    let schema = json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "path": {"type": "string", "default": "."},
            "depth": {"type": "integer", "minimum": 1, "maximum": 64, "default": 1},
            "all": {"type": "boolean", "default": false},
        },
    });
    Local::new(
        flock,
        Parts {
            name: "fs.list",
            class: Class::ReadOnly,
            schema,
            complete: Ok,
            act,
            look: nothing_to_look_for,
        },
    )
}

fn act(job: &Job) -> Done {
    let mut entries = Vec::new();
    let mut cut = false;
    each_path(job, job.text("path"), Some(job.count("depth")), job.flag("all"), |path| {
        if entries.len() == ENTRIES_MAX {
            cut = true;
            return Ok(false);
        }
        entries.extend(entry(job, path));
        Ok(true)
    })?;
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    let entries: Vec<Value> = entries.into_iter().map(|(_, entry)| entry).collect();
    Ok((json!({"entries": entries, "cut": cut}), None))
}

/// Walks a folder by name, leaving out what the repository ignores unless `all` is wanted. A name
/// is only a suggestion: whoever uses it opens it through the workspace, where it may lead nowhere.
pub(super) fn each_path(
    job: &Job,
    path: &str,
    depth: Option<usize>,
    all: bool,
    mut take: impl FnMut(&str) -> Result<bool, EffectError>,
) -> Result<(), EffectError> {
    // The folder itself must be beneath before it is walked.
    job.beneath.at(path, OFlags::PATH)?;
    let root = job.beneath.path();
    let mut walk = WalkBuilder::new(root.join(path));
    walk.standard_filters(!all).hidden(false).require_git(false).follow_links(false);
    // What applies above the workspace, or to this user, is not the workspace's.
    walk.parents(false).git_global(false).max_depth(depth);
    walk.sort_by_file_name(Ord::cmp);
    walk.filter_entry(|entry| entry.file_name() != ".git" && entry.file_name() != ".starling");
    for entry in walk.build().flatten() {
        stop_if_cancelled(job)?;
        let inside = entry.path().strip_prefix(root).ok().and_then(Path::to_str);
        let inside = inside.map(|path| path.trim_start_matches("./"));
        let Some(inside) = inside.filter(|path| !path.is_empty()) else { continue };
        if entry.depth() == 0 && entry.file_type().is_some_and(|kind| kind.is_dir()) {
            continue;
        }
        if !take(inside)? {
            break;
        }
    }
    Ok(())
}

/// What a path is; nothing if it leads out of the workspace by now.
fn entry(job: &Job, path: &str) -> Option<(String, Value)> {
    let fd = job.beneath.at(path, OFlags::PATH | OFlags::NOFOLLOW).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => "folder",
        FileType::RegularFile => "file",
        FileType::Symlink => "link",
        _ => "other",
    };
    let mut entry = json!({"path": path, "kind": kind});
    if kind == "file" {
        entry["bytes"] = json!(stat.st_size);
    }
    Some((path.to_owned(), entry))
}
