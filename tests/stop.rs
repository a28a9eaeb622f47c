//! Failing stop: an append whose outcome nobody knows stops the log, and reopening settles it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use log::{AppendError, Batch, Head, Log, LogError, RedbLog, find_batch};
use redb::StorageBackend;

use crate::support::{STORE, append, append_here, name, numbered_range, numbers};

/// A disk in memory that can be told to fail, or to panic, at a later sync.
#[derive(Clone, Debug, Default)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    syncs_left: Arc<AtomicU64>,
    panics: Arc<AtomicBool>,
}

impl Disk {
    fn new() -> Disk {
        let disk = Disk::default();
        disk.fail_after(u64::MAX);
        disk
    }

    fn fail_after(&self, syncs: u64) {
        self.syncs_left.store(syncs, Ordering::SeqCst);
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().expect("no panic").len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).expect("a small disk");
        let bytes = self.bytes.lock().expect("no panic");
        let found = bytes.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).expect("a small disk");
        self.bytes.lock().expect("no panic").resize(length, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let left = self.syncs_left.load(Ordering::SeqCst);
        if left > 0 {
            self.syncs_left.store(left - 1, Ordering::SeqCst);
            return Ok(());
        }
        assert!(!self.panics.load(Ordering::SeqCst), "the disk panics");
        Err(io::Error::other("the disk fails"))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let start = usize::try_from(offset).expect("a small disk");
        self.bytes.lock().expect("no panic")[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// Appends while the disk fails at sync number `syncs`, and reopens. Gives whether it had landed.
fn fail_at(syncs: u64, panics: bool) -> bool {
    let disk = Disk::new();
    let log = RedbLog::create_backend(disk.clone(), STORE).expect("the disk is well");
    let main = log.create(&name("main")).expect("a branch").id;
    let head = append_here(&log, main, &numbered_range(0..5));
    let watch = log.watch(main).expect("main");
    disk.panics.store(panics, Ordering::SeqCst);
    disk.fail_after(syncs);
    let batch = Batch::of_drafts(head.next(), &numbered_range(5..8)).expect("drafts");
    let refused = append(&log, main, head, &numbered_range(5..8));
    let Err(AppendError::Unknown { batch: named, what }) = refused else { panic!("{refused:?}") };
    assert_eq!(named, batch.id(main, head));
    assert!(what.contains(if panics { "the disk panics" } else { "the disk fails" }), "{what}");
    assert_eq!(*watch.borrow(), head, "nothing is announced that may not be there");
    let later = append(&log, main, head, &numbered_range(5..8));
    assert!(matches!(later, Err(AppendError::Log(LogError::Stopped { .. }))), "{later:?}");
    assert!(matches!(log.branch(main), Err(LogError::Stopped { .. })), "reads stop, too");
    assert!(matches!(log.blocks(main, head.next(), 1), Err(LogError::Stopped { .. })));
    assert!(matches!(log.close(), Err(LogError::Stopped { .. })), "it is no good close");
    drop(log);

    disk.fail_after(u64::MAX);
    let log = RedbLog::open_backend(disk).expect("the disk is well again");
    let landed = find_batch(&log, main, head, named).expect("main can be read");
    let expected = if landed.is_some() { 8 } else { 5 };
    assert_eq!(landed, landed.and(Some(Head::of_count(8))));
    assert_eq!(numbers(&log, main), (0..expected).collect::<Vec<_>>(), "all of it or nothing");
    append_here(&log, main, &numbered_range(expected..20));
    assert_eq!(numbers(&log, main), (0..20).collect::<Vec<_>>());
    landed.is_some()
}

/// A commit has two syncs. After the first the batch has not landed; a failure of the second can
/// come too late.
#[test]
fn a_failed_sync_stops_the_log_and_reopening_settles_the_batch() {
    for panics in [false, true] {
        assert!(!fail_at(0, panics), "nothing points to the batch yet");
        assert!(fail_at(1, panics), "in memory, what was written is there");
    }
}

#[test]
fn an_empty_storage_is_no_store() {
    let text = RedbLog::open_backend(Disk::new()).expect_err("it is empty").to_string();
    assert!(text.contains("it is empty"), "{text}");
}
