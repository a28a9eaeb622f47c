//! The store file: how it is made, opened, owned and recognised.

use std::fs;
use std::path::Path;

use log::{Head, Log, LogError, LogId, RedbLog, verify};

use crate::support::{STORE, append, append_here, append_of, name, numbered_range, numbers};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

/// A store with the branch `main` and so many events.
fn store(path: &Path, events: u64) {
    let log = RedbLog::create(path, STORE).expect("a store is made");
    let main = log.create(&name("main")).expect("a branch is made").id;
    append_here(&log, main, &numbered_range(0..events));
    log.close().expect("the store closes");
}

fn anchor(path: &Path) -> std::path::PathBuf {
    path.with_extension("log.anchor")
}

#[test]
fn what_was_appended_is_there_after_reopening() {
    let folder = folder();
    let path = folder.path().join("a.log");
    store(&path, 3000);
    let log = RedbLog::open(&path).expect("the store opens");
    let main = log.branches().expect("branches")[0].clone();
    assert_eq!((log.id(), main.tip.head), (STORE, Head::of_count(3000)));
    assert_eq!(numbers(&log, main.id), (0..3000).collect::<Vec<_>>());
    let (head, link) = verify(&log, main.id).expect("the chain holds");
    assert_eq!((head, link), (main.tip.head, main.tip.link));
    let files = fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(files, 2, "only the store and its anchor are left");
}

#[test]
fn opening_never_makes_a_store() {
    let folder = folder();
    let path = folder.path().join("a.log");
    let opened = RedbLog::open(&path);
    assert!(matches!(opened, Err(LogError::Missing { .. })), "{opened:?}");
    assert!(!path.exists());
    fs::write(&path, b"").expect("a file is written");
    let text = RedbLog::open(&path).expect_err("an empty file is no store").to_string();
    assert!(text.contains("it is empty"), "{text}");
    fs::write(&path, vec![7; 100_000]).expect("a file is written");
    let text = RedbLog::open(&path).expect_err("other bytes are no store").to_string();
    assert!(text.contains("not a store of starling"), "{text}");
    fs::remove_file(&path).expect("the file goes");
    drop(redb::Database::create(&path).expect("another program makes a file"));
    let text = RedbLog::open(&path).expect_err("it is of another program").to_string();
    assert!(text.contains("a redb file, but not a store"), "{text}");
}

#[test]
fn creating_never_replaces_a_store() {
    let folder = folder();
    let path = folder.path().join("a.log");
    store(&path, 1);
    let made = RedbLog::create(&path, LogId::ZERO);
    assert!(matches!(made, Err(LogError::Exists { .. })), "{made:?}");
    fs::remove_file(&path).expect("the store goes");
    let made = RedbLog::create(&path, LogId::ZERO);
    assert!(matches!(made, Err(LogError::Lost { anchored: 2, .. })), "{made:?}");
    fs::remove_file(anchor(&path)).expect("the anchor goes");
    RedbLog::create(&path, LogId::ZERO).expect("nothing remembers the old store");
}

#[test]
fn leftovers_of_an_interrupted_creation_are_removed() {
    let folder = folder();
    let path = folder.path().join("a.log");
    let left = folder.path().join("a.log.new-00112233445566778899aabbccddeeff");
    fs::write(&left, b"half a store").expect("a file is written");
    let busy = folder.path().join("a.log.new-ffeeddccbbaa99887766554433221100");
    let creating = fs::File::create(&busy).expect("a file is made");
    creating.lock().expect("nobody else has it");
    store(&path, 1);
    assert!(!left.exists(), "the leftover is gone");
    assert!(busy.exists(), "a creation that is under way is left alone");
}

#[test]
fn a_store_is_open_once() {
    let folder = folder();
    let path = folder.path().join("a.log");
    store(&path, 1);
    let first = RedbLog::open(&path).expect("the store opens");
    let second = RedbLog::open(&path);
    assert!(matches!(second, Err(LogError::Owned { .. })), "{second:?}");
    let text = second.expect_err("it is open").to_string();
    assert!(text.ends_with(
        "is open in another process, and was not let go within 2s; end that process, or use the store \
         through it"
    ));
    first.close().expect("the store closes");
    RedbLog::open(&path).expect("the store is free again");
}

/// A host that was killed while it started a program held its store a moment longer, and the next
/// host ended with an error.
#[test]
fn a_successor_waits_for_an_owner_that_is_leaving() {
    let folder = folder();
    let path = folder.path().join("a.log");
    store(&path, 1);
    for _ in 0..20 {
        let first = RedbLog::open(&path).expect("the store opens");
        let successor = std::thread::scope(|scope| {
            let (asks, asked) = std::sync::mpsc::channel();
            let path = &path;
            let successor = scope.spawn(move || {
                asks.send(()).expect("somebody listens");
                RedbLog::open(path)
            });
            asked.recv().expect("it asks");
            drop(first);
            successor.join().expect("it does not panic")
        });
        successor.expect("the store is let go in time");
    }
}

#[test]
fn a_rolled_back_copy_is_noticed() {
    let folder = folder();
    let (path, old) = (folder.path().join("a.log"), folder.path().join("old"));
    store(&path, 10);
    fs::copy(&path, &old).expect("a copy is made");
    let log = RedbLog::open(&path).expect("the store opens");
    append_here(&log, log.branches().expect("branches")[0].id, &numbered_range(10..11));
    log.close().expect("the store closes");
    fs::copy(&old, &path).expect("the old copy is put back");
    let opened = RedbLog::open(&path);
    assert!(
        matches!(opened, Err(LogError::RolledBack { anchored: 3, found: 2, .. })),
        "{opened:?}"
    );
    // A copy that went its own way has as many commits, but another history.
    let lone = folder.path().join("b.log");
    fs::copy(&old, &lone).expect("a copy is made");
    let log = RedbLog::open(&lone).expect("a copy without anchor opens");
    let main = log.branches().expect("branches")[0].id;
    append_here(&log, main, &numbered_range(20..22));
    append_here(&log, main, &numbered_range(22..24));
    log.close().expect("the store closes");
    fs::copy(&lone, &path).expect("the other copy is put in place");
    let text = RedbLog::open(&path).expect_err("it is another history").to_string();
    assert!(text.contains("is not the one that its anchor remembers"), "{text}");
}

#[test]
fn another_store_in_its_place_and_a_damaged_anchor_are_noticed() {
    let folder = folder();
    let (path, other) = (folder.path().join("a.log"), folder.path().join("b.log"));
    store(&path, 10);
    RedbLog::create(&other, LogId::ZERO).expect("a store is made").close().expect("it closes");
    let ours = fs::read(&path).expect("the store");
    fs::copy(&other, &path).expect("the other store is put in place");
    let opened = RedbLog::open(&path);
    assert!(matches!(opened, Err(LogError::Replaced { .. })), "{opened:?}");
    fs::write(&path, ours).expect("ours is put back");
    RedbLog::open(&path).expect("ours opens");
    let mut bytes = fs::read(anchor(&path)).expect("the anchor");
    bytes[30] ^= 1;
    fs::write(anchor(&path), bytes).expect("the anchor is damaged");
    let opened = RedbLog::open(&path);
    assert!(matches!(opened, Err(LogError::Anchor { .. })), "{opened:?}");
    fs::remove_file(anchor(&path)).expect("the anchor goes");
    RedbLog::open(&path).expect("without an anchor, nothing is compared");
}

/// redb itself goes on writing to a deleted file, and a second process makes a new one: both think
/// that they own the store.
#[test]
fn a_file_that_was_moved_away_stops_the_log() {
    let folder = folder();
    let path = folder.path().join("a.log");
    store(&path, 1);
    let log = RedbLog::open(&path).expect("the store opens");
    let main = log.branches().expect("branches")[0].id;
    let moved = folder.path().join("moved");
    fs::rename(&path, &moved).expect("the file is moved");
    let refused = append(&log, main, Head::of_count(1), &numbered_range(1..2));
    let text = refused.expect_err("the file is gone").to_string();
    assert!(text.contains("moved or deleted while it was open"), "{text}");
    let later = log.branch(main);
    assert!(matches!(later, Err(LogError::Stopped { .. })), "{later:?}");
    fs::rename(&moved, &path).expect("the file is moved back");
    let log = RedbLog::open(&path).expect("the store opens");
    assert_eq!(numbers(&log, main), [0]);
}

#[test]
fn a_closed_log_says_so() {
    let folder = folder();
    let path = folder.path().join("a.log");
    store(&path, 1);
    let log = RedbLog::open(&path).expect("the store opens");
    let main = log.branches().expect("branches")[0].id;
    let append = append_of(main, Head::of_count(1), &numbered_range(1..2));
    log.close().expect("the store closes");
    let stopped = |error: LogError| assert!(matches!(error, LogError::Stopped { .. }), "{error}");
    stopped(log.branches().expect_err("closed"));
    stopped(log.create(&name("x")).expect_err("closed"));
    stopped(log.blocks(main, log::Offset::ZERO, 1).expect_err("closed"));
    stopped(log.close().expect_err("closed"));
    let answer = log.submit(append).wait().expect("the log answers");
    assert!(answer.expect_err("closed").to_string().contains("it was closed"));
}
