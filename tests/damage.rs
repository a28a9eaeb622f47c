//! Damage at rest: whatever happens to the file, an event is read as it was written or an error
//! names it, and nothing panics.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use log::{Head, Log, LogError, RedbLog, read_all, verify};

use crate::support::disk::Disk;
use crate::support::ledger::{Ledger, Line};
use crate::support::random::Random;
use crate::support::workload::User;
use crate::support::{STORE, append, append_here, long, name, numbered_range};

const PAGE: usize = 4096;
/// The part of the first page that redb uses.
const HEADER: usize = 320;

/// What a damaged store came to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// Nothing that matters was hit.
    Whole,
    /// An error says what is wrong.
    Named(String),
    /// It looks like a sound store of an earlier time. Only an anchor can tell.
    Earlier,
}

/// A store with a history, before its last commits and after, and what it acknowledged.
struct Store {
    before: Vec<u8>,
    bytes: Vec<u8>,
    ledger: Ledger,
}

/// How a store was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Closed,
    /// As after kill -9: everything is on the disk, and nobody tidied up.
    Killed,
}

fn store(left: Left) -> Store {
    let disk = Disk::new(512);
    let (mut ledger, mut random) = (Ledger::default(), Random::new(5));
    let log = RedbLog::create_backend(disk.clone(), STORE).expect("the disk is well");
    let mut user = User { log: &log, disk: &disk, ledger: &mut ledger, random: &mut random };
    user.use_everything().expect("the disk is well");
    let before = disk.live();
    user.append_here(2).expect("the disk is well");
    user.look_back().expect("the disk is well");
    let bytes = if left == Left::Killed { disk.live() } else { Vec::new() };
    log.close().expect("the disk is well");
    let bytes = if left == Left::Closed { disk.live() } else { bytes };
    Store { before, bytes, ledger }
}

/// Opens what is left of a store and reads all of it.
fn examine(bytes: Vec<u8>, ledger: &Ledger) -> Found {
    let opened = catch_unwind(|| RedbLog::open_backend(Disk::holding(bytes, 512)));
    let log = match opened.expect("opening does not panic") {
        Ok(log) => log,
        Err(error) => return named(&error),
    };
    let read = catch_unwind(AssertUnwindSafe(|| compare(&log, ledger)));
    match read.expect("nothing read differs from what was written, and nothing panics") {
        Ok(found) => found,
        Err(error) => named(&error),
    }
}

fn named(error: &LogError) -> Found {
    Found::Named(error.to_string())
}

/// Reads everything, also after the first error; panics where something differs.
fn compare(log: &RedbLog, ledger: &Ledger) -> Result<Found, LogError> {
    let branches = log.branches()?;
    let tips = branches.iter().zip(&ledger.lines);
    let earlier = branches.len() < ledger.lines.len()
        || tips
            .clone()
            .any(|(branch, line)| (branch.tip.head, branch.tip.epoch) < (line.head(), line.epoch));
    let mut found = if earlier { Found::Earlier } else { Found::Whole };
    for (branch, line) in tips {
        assert_eq!(branch.name, line.name);
        assert!(branch.tip.head <= line.head() && branch.tip.epoch <= line.epoch, "{branch:?}");
        let read = compare_line(log, line);
        let verified = verify(log, line.id);
        if let Err(error) = read.and(verified.map(drop)) {
            found = named(&error);
        }
        if earlier {
            continue;
        }
        for event in line.events.iter().filter(|event| event.key().is_some()) {
            match log.find_key(line.id, event.key().expect("it has one")) {
                Ok(offset) => assert_eq!(offset, Some(event.offset())),
                Err(error) => found = named(&error),
            }
        }
    }
    for (hash, bytes) in ledger.blobs.iter().filter(|_| !earlier) {
        match log.blob(hash) {
            Ok(blob) => assert_eq!(blob.as_ref(), Some(bytes), "{hash}"),
            Err(error) => found = named(&error),
        }
    }
    Ok(found)
}

/// Compares each event that can be read.
fn compare_line(log: &RedbLog, line: &Line) -> Result<(), LogError> {
    for (place, event) in read_all(log, line.id)?.enumerate() {
        assert_eq!(event?, line.events[place], "an event of {}", line.name);
    }
    Ok(())
}

/// Counts what several kinds of damage came to.
#[derive(Debug, Default)]
struct Count {
    whole: u64,
    named: u64,
    earlier: Vec<String>,
    caught: u64,
}

impl Count {
    fn add(&mut self, what: &str, found: &Found) {
        match found {
            Found::Whole => self.whole += 1,
            Found::Named(text) => {
                assert!(!text.is_empty(), "an error says something");
                self.named += 1;
                self.caught += u64::from(text.contains("panic"));
            }
            Found::Earlier => self.earlier.push(what.to_owned()),
        }
    }

    /// Shows the count, and demands that no damage looks like an earlier time.
    fn none_is_earlier(&self, what: &str) {
        let Count { whole, named, earlier, caught } = self;
        println!("{what}: {named} named ({caught} caught in redb), {whole} harmless");
        assert!(earlier.is_empty(), "silently rolled back: {earlier:?}");
        assert!(*named > 0, "damage is found");
    }
}

/// Opens a store by its path, beside the anchor that remembers `ledger`'s last commit.
fn open_with_anchor(folder: &Path, store: &Store, damaged: &[u8]) -> Result<RedbLog, LogError> {
    let path = folder.join("store.log");
    fs::write(&path, &store.bytes).expect("the folder can be written");
    let kept = fs::read(folder.join("kept.anchor")).ok();
    let anchor = folder.join("store.log.anchor");
    match kept {
        Some(kept) => fs::write(&anchor, kept).expect("the folder can be written"),
        None => {
            // Opening writes the anchor of what is there.
            drop(RedbLog::open(&path).expect("the store is sound"));
            fs::copy(&anchor, folder.join("kept.anchor")).expect("there is an anchor");
        }
    }
    fs::write(&path, damaged).expect("the folder can be written");
    RedbLog::open(&path)
}

/// One bit decides which of two roots is in force: flipped, the file is a perfect store of the
/// commit before. The anchor remembers the later one.
#[test]
fn every_bit_of_the_header_may_flip() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for left in [Left::Closed, Left::Killed] {
        let store = store(left);
        let mut count = Count::default();
        let mut earlier = Vec::new();
        for bit in 0..HEADER * 8 {
            let mut damaged = store.bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let found = examine(damaged.clone(), &store.ledger);
            if found == Found::Earlier {
                earlier.push(bit);
                assert!(earlier.len() < 2, "more than the bit that chooses the root: {earlier:?}");
                let opened = open_with_anchor(folder.path(), &store, &damaged);
                assert!(matches!(opened, Err(LogError::RolledBack { .. })), "{bit}: {opened:?}");
            } else {
                count.add("", &found);
            }
        }
        println!("{left:?}: bits that only the anchor notices: {earlier:?}");
        count.none_is_earlier("bits of the header");
        fs::remove_file(folder.path().join("kept.anchor")).ok();
    }
}

#[test]
fn any_bit_of_any_page_may_flip() {
    let flips = if long() { 40 } else { 6 };
    for left in [Left::Closed, Left::Killed] {
        let store = store(left);
        let (mut count, mut random) = (Count::default(), Random::new(6));
        for page in 1..store.bytes.len() / PAGE {
            for _ in 0..flips {
                let bit = page * PAGE * 8 + random.place(PAGE * 8);
                let mut damaged = store.bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                count.add(&format!("bit {bit}"), &examine(damaged, &store.ledger));
            }
        }
        count.none_is_earlier(&format!("{left:?}, {flips} bits a page"));
    }
}

#[test]
fn any_page_may_be_zero_or_older() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for left in [Left::Closed, Left::Killed] {
        let store = store(left);
        let mut count = Count::default();
        for page in 0..store.bytes.len() / PAGE {
            let range = page * PAGE..(page + 1) * PAGE;
            let mut zeroed = store.bytes.clone();
            zeroed[range.clone()].fill(0);
            count.add(&format!("page {page} zeroed"), &examine(zeroed, &store.ledger));
            let Some(old) = store.before.get(range.clone()) else { continue };
            let mut stale = store.bytes.clone();
            stale[range].copy_from_slice(old);
            let found = examine(stale.clone(), &store.ledger);
            if page == 0 && found == Found::Earlier {
                // The roots are in this page: all of the store is older.
                let opened = open_with_anchor(folder.path(), &store, &stale);
                assert!(matches!(opened, Err(LogError::RolledBack { .. })), "{opened:?}");
            } else {
                count.add(&format!("page {page} stale"), &found);
            }
        }
        count.none_is_earlier(&format!("{left:?}, zeroed and stale pages"));
        fs::remove_file(folder.path().join("kept.anchor")).ok();
    }
}

#[test]
fn the_file_may_end_anywhere() {
    for left in [Left::Closed, Left::Killed] {
        let store = store(left);
        let mut count = Count::default();
        for length in (0..store.bytes.len()).step_by(512) {
            let found = examine(store.bytes[..length].to_vec(), &store.ledger);
            count.add(&format!("cut at {length}"), &found);
        }
        count.none_is_earlier(&format!("{left:?}, cut every 512 bytes"));
    }
}

/// redb checks its pages when it opens a file and trusts them then, so a key or a text may be
/// missed until the next opening; but no event is ever another.
#[test]
fn any_page_may_rot_while_the_log_is_open() {
    let store = store(Left::Closed);
    let (mut random, mut named_pages) = (Random::new(7), 0);
    for page in 0..store.bytes.len() / PAGE {
        let disk = Disk::holding(store.bytes.clone(), 512);
        let log = RedbLog::open_backend(disk.clone()).expect("the store is sound");
        for _ in 0..20 {
            disk.flip(page * PAGE * 8 + random.place(PAGE * 8));
        }
        for line in &store.ledger.lines {
            let read = catch_unwind(AssertUnwindSafe(|| compare_line(&log, line)));
            let read = read.expect("no event read is another, and nothing panics");
            named_pages += u64::from(read.is_err());
        }
        for (hash, bytes) in &store.ledger.blobs {
            let blob = catch_unwind(AssertUnwindSafe(|| log.blob(hash)));
            let blob = blob.expect("nothing panics").ok().flatten();
            assert!(blob.is_none_or(|blob| blob == bytes), "no text is another");
        }
        drop(log);
        let found = examine(disk.live(), &store.ledger);
        assert!(found != Found::Earlier, "page {page}");
    }
    assert!(named_pages > 0, "what rots is read");
}

/// A copy of any earlier time is a perfect store.
#[test]
fn every_older_copy_is_noticed() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("store.log");
    let log = RedbLog::create(&path, STORE).expect("a store is made");
    let (mut ledger, mut random) = (Ledger::default(), Random::new(8));
    let mut copies = Vec::new();
    let disk = &Disk::new(512);
    let mut user = User { log: &log, disk, ledger: &mut ledger, random: &mut random };
    user.use_everything().expect("the disk is well");
    for _ in 0..8 {
        user.append_here(1).expect("the disk is well");
        copies.push(fs::read(&path).expect("the file can be read"));
    }
    log.close().expect("the store closes");
    let newest = fs::read(&path).expect("the file can be read");
    for (place, copy) in copies[..7].iter().enumerate() {
        fs::write(&path, copy).expect("the file can be written");
        let opened = RedbLog::open(&path);
        assert!(matches!(opened, Err(LogError::RolledBack { .. })), "{place}: {opened:?}");
    }
    fs::write(&path, newest).expect("the file can be written");
    ledger.check(&RedbLog::open(&path).expect("this is the right one")).expect("all is there");
}

/// redb goes on writing to a file that has no name, or another's name, and would acknowledge that.
#[test]
fn a_file_that_is_deleted_or_replaced_under_the_writer_stops_it() {
    for replaced in [false, true] {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("store.log");
        let log = RedbLog::create(&path, STORE).expect("a store is made");
        let main = log.create(&name("main")).expect("a branch").id;
        append_here(&log, main, &numbered_range(0..3));
        if replaced {
            let other = folder.path().join("other");
            fs::copy(&path, &other).expect("a copy is made");
            fs::rename(&other, &path).expect("the copy is put in its place");
        } else {
            fs::remove_file(&path).expect("the file is deleted");
        }
        let head = Head::of_count(3);
        let refused = append(&log, main, head, &numbered_range(3..4));
        let text = refused.expect_err("the file is not ours").to_string();
        let said = if replaced { "another file was put in its place" } else { "moved or deleted" };
        assert!(text.contains(said), "{text}");
        assert!(matches!(log.branch(main), Err(LogError::Stopped { .. })));
        assert!(matches!(log.close(), Err(LogError::Stopped { .. })));
    }
}
