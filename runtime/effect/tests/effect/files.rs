//! Files of the workspace: read, written from a base to a result, listed, searched and patched; and
//! five hundred paths that want to lead out of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use effect::builtin::{self, Policy};
use effect::{Answer, Executor, Sandbox, Seen};
use serde_json::{Value, json};

use crate::support::{Flock, act, block_on, failed, long, result};

/// A built-in effect of a flock.
pub(crate) fn built_in(flock: &Flock, name: &str, sandbox: Sandbox) -> Arc<dyn Executor> {
    let policy =
        Policy { flock: flock.path(), sandbox, hosts: Vec::new(), local_hosts: Vec::new() };
    let found = builtin::all(&policy).into_iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("{name} is built in")).1
}

fn run(flock: &Flock, name: &str, args: Value) -> Answer {
    let executor = built_in(flock, name, Sandbox::Off);
    block_on(act(&*executor, flock.call(name, args)))
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn put(flock: &Flock, path: &str, text: &str) {
    let path = flock.work().join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

fn at(flock: &Flock, path: &str) -> String {
    fs::read_to_string(flock.work().join(path)).expect("it is there")
}

#[test]
fn a_file_is_read_by_lines_with_the_hash_of_all_of_it() {
    let flock = Flock::new();
    put(&flock, "src/a.txt", "one\ntwo\nthree\nfour\n");
    let read = result(run(&flock, "fs.read", json!({"path": "src/a.txt", "line": 2, "lines": 2})));
    assert_eq!((&read["text"], &read["lines_total"]), (&json!("two\nthree\n"), &json!(4)));
    assert_eq!(read["hash"], json!(hash("one\ntwo\nthree\nfour\n")));
    let missing = failed(run(&flock, "fs.read", json!({"path": "src/b.txt"})));
    assert_eq!(missing.kind, "path.missing");
}

/// A write lands on its base or not at all; what it made can be told from what was there before.
#[test]
fn a_write_goes_from_its_base_to_its_result_or_nowhere() {
    let flock = Flock::new();
    let write = built_in(&flock, "fs.write", Sandbox::Off);
    let first = json!({"path": "new/a.txt", "text": "one", "base": null});
    let answer = run(&flock, "fs.write", first.clone());
    let Answer::Succeeded { fingerprint: Some(fingerprint), .. } = answer else {
        panic!("it lands")
    };
    assert_eq!((fingerprint.base, fingerprint.result), (None, Some(hash("one"))));
    // The file is there by now, and nobody's work is overwritten.
    assert_eq!(failed(run(&flock, "fs.write", first)).kind, "write.conflict");
    let stale = json!({"path": "new/a.txt", "text": "three", "base": hash("two")});
    assert_eq!(failed(run(&flock, "fs.write", stale)).kind, "write.conflict");
    assert_eq!(at(&flock, "new/a.txt"), "one");
    let second = json!({"path": "new/a.txt", "text": "two", "base": hash("one")});
    let mut call = flock.call("fs.write", write.check(&second).expect("it fits"));
    assert_eq!(block_on(write.look(&call, &json!(null))), Seen::Absent, "at its base");
    assert!(matches!(block_on(write.run(&call)), Answer::Succeeded { .. }));
    assert!(matches!(block_on(write.look(&call, &json!(null))), Seen::Found(_)), "at its result");
    put(&flock, "new/a.txt", "somebody else");
    assert!(matches!(block_on(write.look(&call, &json!(null))), Seen::Conflict(_)));
    call.workspace = Some("/no/such/folder".into());
    assert!(matches!(block_on(write.look(&call, &json!(null))), Seen::Unreachable(_)));
    let left = fs::read_dir(flock.work().join("new")).expect("there").count();
    assert_eq!(left, 1, "nothing is left beside the file");
}

/// Whoever writes between the look and the exchange is not lost.
#[test]
fn two_writers_never_overwrite_each_other() {
    let flock = Arc::new(Flock::new());
    put(&flock, "count.txt", "0");
    let write = built_in(&flock, "fs.write", Sandbox::Off);
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let (flock, write) = (Arc::clone(&flock), Arc::clone(&write));
            thread::spawn(move || {
                let mut landed = 0;
                while landed < 25 {
                    let seen = at(&flock, "count.txt");
                    let next = (seen.parse::<u64>().expect("a number") + 1).to_string();
                    let args = json!({"path": "count.txt", "text": next, "base": hash(&seen)});
                    let mut call = flock.call("fs.write", write.check(&args).expect("it fits"));
                    call.action = format!("{:?}", thread::current().id()).replace(['(', ')'], "");
                    if matches!(block_on(write.run(&call)), Answer::Succeeded { .. }) {
                        landed += 1;
                    }
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().expect("it ends"));
    assert_eq!(at(&flock, "count.txt"), "100", "each of a hundred steps is counted");
}

#[test]
fn a_folder_is_listed_and_searched_without_what_is_ignored() {
    let flock = Flock::new();
    put(&flock, ".gitignore", "target/\n");
    put(&flock, "src/a.rs", "fn main() {\n    needle();\n}\n");
    put(&flock, "target/b.rs", "needle\n");
    put(&flock, "notes.md", "a needle, and another needle\n");
    put(&flock, "image.bin", "needle\0needle");
    let list = result(run(&flock, "fs.list", json!({"depth": 3})));
    let entries = list["entries"].as_array().expect("a list");
    let paths: Vec<&str> = entries.iter().filter_map(|entry| entry["path"].as_str()).collect();
    assert_eq!(paths, [".gitignore", "image.bin", "notes.md", "src", "src/a.rs"]);
    let found = result(run(&flock, "search", json!({"pattern": "need[l]e"})));
    let expected = json!([
        {"path": "notes.md", "line": 1, "text": "a needle, and another needle"},
        {"path": "src/a.rs", "line": 2, "text": "    needle();"},
    ]);
    assert_eq!(found["matches"], expected);
    let one = result(run(&flock, "search", json!({"pattern": "needle", "glob": "*.rs"})));
    assert_eq!(one["matches"].as_array().map(Vec::len), Some(1));
    let evil = failed(run(&flock, "search", json!({"pattern": "(a{1000}){1000}"})));
    assert_eq!(evil.kind, "arguments.pattern");
}

const PATCH: &str = "\
--- a/one.txt
+++ b/one.txt
@@ -1,2 +1,2 @@
 first
-second
+SECOND
--- /dev/null
+++ b/three.txt
@@ -0,0 +1 @@
+third
--- a/two.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
";

#[test]
fn a_patch_changes_all_its_files_or_none() {
    let flock = Flock::new();
    put(&flock, "one.txt", "first\nsecond\n");
    put(&flock, "two.txt", "gone\n");
    let patch = built_in(&flock, "apply_patch", Sandbox::Off);
    let bases =
        json!({"one.txt": hash("first\nsecond\n"), "two.txt": hash("gone\n"), "three.txt": null});
    let args = patch.check(&json!({"patch": PATCH, "bases": bases})).expect("it fits");
    let call = flock.call("apply_patch", args);
    // One file has moved on: none is changed.
    put(&flock, "two.txt", "still here\n");
    assert_eq!(failed(block_on(patch.run(&call))).kind, "write.conflict");
    assert_eq!(at(&flock, "one.txt"), "first\nsecond\n");
    put(&flock, "two.txt", "gone\n");
    assert_eq!(block_on(patch.look(&call, &json!(null))), Seen::Absent);
    let done = result(block_on(patch.run(&call)));
    assert_eq!(done["files"]["one.txt"], json!(hash("first\nSECOND\n")));
    assert_eq!(
        (at(&flock, "one.txt"), at(&flock, "three.txt")),
        ("first\nSECOND\n".into(), "third\n".into())
    );
    assert!(!flock.work().join("two.txt").exists());
    assert!(matches!(block_on(patch.look(&call, &json!(null))), Seen::Found(_)));
    // As a kill in the middle leaves it.
    fs::remove_file(flock.work().join("three.txt")).expect("removed");
    let Seen::Conflict(error) = block_on(patch.look(&call, &json!(null))) else { panic!("half") };
    assert!(error.message.contains("not patched: three.txt"), "{error}");
}

/// The second file may not be written, and the first is as it was.
#[test]
fn a_patch_that_fails_midway_is_put_back() {
    let flock = Flock::new();
    put(&flock, "one.txt", "first\nsecond\n");
    let text = "--- a/one.txt\n+++ b/one.txt\n@@ -1,2 +1,2 @@\n first\n-second\n+SECOND\n\
                --- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+out\n";
    let bases = json!({"one.txt": hash("first\nsecond\n"), ".git/hooks/pre-commit": null});
    let error = failed(run(&flock, "apply_patch", json!({"patch": text, "bases": bases})));
    assert_eq!(error.kind, "path.protected", "{error}");
    assert_eq!(at(&flock, "one.txt"), "first\nsecond\n");
}

/// Whatever decides what runs is not written by a tool, whichever way it is named.
#[test]
fn the_rules_of_a_flock_are_not_written() {
    let flock = Flock::new();
    for folder in ["behaviors", ".starling", "work/.git/hooks"] {
        fs::create_dir_all(flock.path().join(folder)).expect("made");
    }
    fs::write(flock.path().join("flock.toml"), "name = \"it\"").expect("written");
    symlink(flock.path().join("behaviors"), flock.path().join("door")).expect("linked");
    let paths = [
        "flock.toml",
        "behaviors/new.star",
        "tools/new.toml",
        "tools/deep/new.toml",
        "tools",
        ".starling/store.redb",
        "answers.jsonl",
        "door/new.star",
        "./behaviors/./new.star",
        "work/.git/config",
        "work/.git/hooks/pre-commit",
        ".git/hooks/post-checkout",
    ];
    let write = built_in(&flock, "fs.write", Sandbox::Off);
    for path in paths {
        let args = write.check(&json!({"path": path, "text": "evil", "base": null})).expect("fits");
        let mut call = flock.call("fs.write", args);
        call.workspace = Some(flock.path());
        let error = failed(block_on(write.run(&call)));
        assert!(
            ["path.protected", "path.outside"].contains(&error.kind.as_str()),
            "{path}: {error}"
        );
    }
}

/// The outside: a folder with a secret that nobody may see and where nothing may appear.
fn outside() -> tempfile::TempDir {
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("secret"), SECRET).expect("written");
    fs::create_dir(outside.path().join("only-outside")).expect("made");
    outside
}

const SECRET: &str = "the-canary-that-must-not-be-seen";

fn links(flock: &Flock, outside: &Path) {
    let link = |to: &Path, name: &str| symlink(to, flock.work().join(name)).expect("linked");
    link(&outside.join("secret"), "absolute");
    link(outside, "folder");
    link(Path::new("folder"), "chain1");
    link(Path::new("chain1"), "chain2");
    link(Path::new("chain2"), "chain3");
    link(Path::new("loop"), "loop");
    link(Path::new(".."), "up");
    link(Path::new("../.."), "upup");
    link(Path::new("/"), "root");
    link(Path::new("/proc/self/root"), "procroot");
    link(Path::new("/proc/self/cwd"), "proccwd");
    link(Path::new("/proc/self/fd"), "procfd");
    link(Path::new("/dev/fd"), "devfd");
    fs::create_dir_all(flock.work().join("a/b/c")).expect("made");
    symlink("../../..", flock.work().join("a/b/back")).expect("linked");
    symlink("../../../..", flock.work().join("a/b/out")).expect("linked");
}

/// Over five hundred names of things outside.
fn escapes(flock: &Flock, outside: &Path) -> Vec<String> {
    let inside = outside.display().to_string();
    let inside = inside.trim_start_matches('/');
    let doors = [
        "",
        "/",
        "//",
        "./",
        "folder/",
        "chain1/",
        "chain2/",
        "chain3/",
        "root/",
        "procroot/",
        "proccwd/",
        "procfd/3/",
        "devfd/3/",
        "up/",
        "upup/",
        "loop/",
        "a/b/out/",
        "a/b/back/",
        "a/../",
        "a/b/../../",
        "/proc/self/root/",
        "/proc/self/cwd/",
        "/proc/1/root/",
        "..%2f",
        "%2e%2e/",
        "..\\",
        "．．/",
        "‥/",
        "..\u{0}/",
        "a\u{0}/",
        "~/",
        "~root/",
        "file://",
        "\\\\?\\",
        "$HOME/",
        "`/`",
    ];
    let ups = ["", "../", "../../", "../../../", "../../../../../../../../../../"];
    let ends = [inside.to_owned(), format!("{inside}/secret"), "secret".to_owned()];
    let mut found: Vec<String> = Vec::new();
    for door in doors {
        for up in ups {
            found.extend(ends.iter().map(|end| format!("{door}{up}{end}")));
        }
    }
    found.extend(["absolute", "loop", "..", "../", "/", "/etc/passwd", ".", ""].map(str::to_owned));
    found.push(format!("{}secret", "./".repeat(3000)));
    found.push(format!("{}{inside}/secret", "../".repeat(1000)));
    found.push("x".repeat(5000));
    found.push(flock.work().join("../tools").display().to_string());
    found
}

#[test]
fn five_hundred_paths_lead_nowhere() {
    let (flock, outside) = (Flock::new(), outside());
    let outside = outside.path().canonicalize().expect("there");
    links(&flock, &outside);
    let paths = escapes(&flock, &outside);
    assert!(paths.len() >= 500, "{} paths", paths.len());
    let effects = ["fs.read", "fs.list", "search", "fs.write"];
    let executors = effects.map(|name| (name, built_in(&flock, name, Sandbox::Off)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    for path in &paths {
        for (name, executor) in &executors {
            let args = match *name {
                "search" => json!({"path": path, "pattern": "canary", "all": true}),
                "fs.write" => json!({"path": format!("{path}/new"), "text": "x", "base": null}),
                _ => json!({"path": path}),
            };
            let said = format!("{:?}", runtime.block_on(act(&**executor, flock.call(name, args))));
            let shown: String = path.chars().take(80).collect();
            assert!(!said.contains(SECRET), "{name} {shown:?} shows the secret: {said}");
            assert!(!said.contains("only-outside"), "{name} {shown:?} lists the outside: {said}");
        }
    }
    let mut left: Vec<_> = fs::read_dir(&outside).expect("there").flatten().collect();
    left.sort_by_key(fs::DirEntry::file_name);
    let names: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["only-outside", "secret"], "nothing appeared outside");
    assert_eq!(fs::read_dir(outside.join("only-outside")).expect("there").count(), 0);
}

/// One swaps a folder for a link to the outside as fast as it can; the others read and write
/// through it.
#[test]
fn a_link_that_is_swapped_at_the_wrong_moment_leads_nowhere() {
    let (flock, outside) = (Flock::new(), outside());
    let outside = outside.path().canonicalize().expect("there");
    put(&flock, "door/secret", "harmless");
    symlink(&outside, flock.work().join("trap")).expect("linked");
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (stop, work) = (Arc::clone(&stop), fs::File::open(flock.work()).expect("open"));
        thread::spawn(move || {
            let mut swaps = 0u64;
            while !stop.load(Ordering::Relaxed) {
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(&work, "door", &work, "trap", exchange).expect("swapped");
                swaps += 1;
            }
            swaps
        })
    };
    let span = Duration::from_secs(if long() { 60 } else { 3 });
    let begun = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let read = built_in(&flock, "fs.read", Sandbox::Off);
    let write = built_in(&flock, "fs.write", Sandbox::Off);
    let search = built_in(&flock, "search", Sandbox::Off);
    let (mut inside, mut refused, mut turn) = (0, 0, 0u64);
    while begun.elapsed() < span {
        turn += 1;
        let call = flock.call("fs.read", json!({"path": "door/secret"}));
        match runtime.block_on(act(&*read, call)) {
            Answer::Succeeded { result, .. } => {
                assert_eq!(result["text"], json!("harmless"));
                inside += 1;
            }
            _ => refused += 1,
        }
        let args = json!({"path": format!("door/new{turn}"), "text": "x", "base": null});
        drop(runtime.block_on(act(&*write, flock.call("fs.write", args))));
        if turn.is_multiple_of(16) {
            let args = json!({"pattern": "canary", "all": true});
            let found = runtime.block_on(act(&*search, flock.call("search", args)));
            assert!(!format!("{found:?}").contains(SECRET), "{found:?}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    let swaps = swapper.join().expect("it ends");
    assert!(inside > 0 && refused > 0, "both were met: {inside} inside, {refused} refused");
    assert!(swaps > 100, "it was swapped {swaps} times");
    let mut names: Vec<_> =
        fs::read_dir(&outside).expect("there").flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(names, ["only-outside", "secret"], "nothing appeared outside");
}
