//! Tampering: what redb's own checks cannot find, because it was written through redb, the hash
//! chain finds.

use std::fs;
use std::path::{Path, PathBuf};

use log::{Corruption, Head, Log, LogError, Offset, RedbLog, read_all, verify};
use redb::{Database, ReadableTable, TableDefinition};
use serde_json::json;

use crate::support::random::Random;
use crate::support::{STORE, append_here, draft, name};

const BLOCKS: TableDefinition<'_, (u32, u64, u8), &[u8]> = TableDefinition::new("blocks");
const TIPS: TableDefinition<'_, u32, &[u8; 56]> = TableDefinition::new("tips");
const BLOBS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("blobs");

/// Three batches of two small events, which are stored as they are.
fn store(folder: &Path) -> PathBuf {
    let path = folder.join("store.log");
    let log = RedbLog::create(&path, STORE).expect("a store is made");
    let main = log.create(&name("main")).expect("a branch is made").id;
    for batch in 0..3 {
        let drafts = [2 * batch, 2 * batch + 1];
        append_here(&log, main, &drafts.map(|n| draft(n, &json!({"n": n}))));
    }
    log.close().expect("the store closes");
    path
}

/// The first offset, the piece and the bytes.
type Row = (u64, u8, Vec<u8>);

/// Rewrites the rows of the only branch through redb. No anchor remembers how it was.
fn rewrite(path: &Path, change: impl FnOnce(&mut Vec<Row>)) {
    fs::remove_file(path.with_extension("log.anchor")).ok();
    let database = Database::open(path).expect("it is a redb file");
    let transaction = database.begin_write().expect("nobody else writes");
    {
        let mut table = transaction.open_table(BLOCKS).expect("there is a table of blocks");
        let rows = table.iter().expect("it can be read").map(|row| row.expect("it can be read"));
        let mut rows: Vec<Row> = rows
            .map(|(key, value)| (key.value().1, key.value().2, value.value().to_vec()))
            .collect();
        table.retain(|_, _| false).expect("it can be written");
        change(&mut rows);
        for (first, piece, bytes) in rows {
            table.insert((0, first, piece), bytes.as_slice()).expect("it can be written");
        }
    }
    transaction.commit().expect("it can be written");
}

/// Verifies the only branch, and gives the first offset that is not believed.
fn first_damage(path: &Path) -> Option<Offset> {
    let log = RedbLog::open(path).expect("redb finds nothing wrong");
    let main = log.branches().expect("the branch is there")[0].id;
    verify(&log, main).err().map(offset)
}

/// As `first_damage`, where reading must stumble at the same offset.
fn first_damage_read(path: &Path) -> Option<Offset> {
    let log = RedbLog::open(path).expect("redb finds nothing wrong");
    let main = log.branches().expect("the branch is there")[0].id;
    let read = read_all(&log, main).expect("the branch is there").find_map(Result::err);
    drop(log);
    let verified = first_damage(path);
    assert_eq!(read.map(offset), verified, "reading and verifying agree");
    verified
}

fn offset(error: LogError) -> Offset {
    match error {
        LogError::Corrupt(Corruption { offset, .. }) => offset,
        other => panic!("the damage is named otherwise: {other}"),
    }
}

/// Each in turn: the middle batch's bytes flipped one by one. Only its own two events are doubted.
#[test]
fn an_edited_byte_of_a_block_is_reported_with_its_offset() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = store(folder.path());
    let sound = fs::read(&path).expect("the file can be read");
    let mut bytes = 0;
    rewrite(&path, |rows| bytes = rows[1].2.len());
    // The batch's id, 16 bytes behind the first of the header, is no part of the history.
    for at in (0..bytes).filter(|at| !(4..21).contains(at)).step_by(3) {
        fs::write(&path, &sound).expect("the file can be written");
        rewrite(&path, |rows| rows[1].2[at] ^= 1);
        let found = first_damage_read(&path);
        let expected = [2, 3, 4].map(|offset| Some(Offset::new(offset)));
        assert!(expected.contains(&found), "byte {at} of {bytes}: {found:?}");
    }
}

#[test]
fn missing_reordered_repeated_and_longer_blocks_are_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = store(folder.path());
    let sound = fs::read(&path).expect("the file can be read");
    type Change = fn(&mut Vec<Row>);
    let longer: Change = |rows| rows[1].2.push(0);
    // The header counts the byte, so only the events can tell that it is none of theirs.
    let counted: Change = |rows| {
        rows[1].2[3] = rows[1].2[3].checked_add(1).expect("a small block");
        let last = rows[1].2.len();
        rows[1].2.insert(last, 0);
    };
    // So does the event.
    let inside: Change = |rows| {
        let bytes = &mut rows[1].2;
        // The length of the records takes one byte or two; a link is 32 long, and a batch's id 16.
        let body = if bytes[3] < 128 { 84 } else { 85 };
        let record = bytes[body];
        assert!(record < 127, "a small event");
        bytes[3] = bytes[3].checked_add(1).expect("a small block");
        bytes[body] += 1;
        bytes.insert(body + 1 + usize::from(record), 0);
    };
    let changes: [(&str, Change, u64); 8] = [
        ("the first is gone", |rows| drop(rows.remove(0)), 0),
        ("one is gone", |rows| drop(rows.remove(1)), 2),
        ("the last is gone", |rows| drop(rows.remove(2)), 4),
        ("two are swapped", |rows| (rows[0].0, rows[1].0) = (rows[1].0, rows[0].0), 0),
        ("one stands twice", |rows| rows[1].2 = rows[0].2.clone(), 2),
        ("one is longer", longer, 2),
        ("one is longer and says so", counted, 3),
        ("its first event is longer, too", inside, 2),
    ];
    for (what, change, offset) in changes {
        fs::write(&path, &sound).expect("the file can be written");
        rewrite(&path, change);
        assert_eq!(first_damage_read(&path), Some(Offset::new(offset)), "{what}");
    }
}

/// Blocks that are sound in themselves, of a history that has the same length.
#[test]
fn a_block_of_another_history_is_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = store(folder.path());
    let other = folder.path().join("other.log");
    let log = RedbLog::create(&other, STORE).expect("a store is made");
    let main = log.create(&name("main")).expect("a branch is made").id;
    for n in [10, 12, 14] {
        append_here(&log, main, &[n, n + 1].map(|n| draft(n, &json!({"n": n}))));
    }
    log.close().expect("the store closes");
    let mut rows = Vec::new();
    rewrite(&other, |others| rows.clone_from(others));
    let sound = fs::read(&path).expect("the file can be read");
    // From the first on, it is a whole history; only the tip knows better.
    for first in 1..3 {
        fs::write(&path, &sound).expect("the file can be written");
        rewrite(&path, |ours| ours[first..].clone_from_slice(&rows[first..]));
        assert_eq!(first_damage_read(&path), Some(Offset::new(2 * first as u64)));
    }
    fs::write(&path, &sound).expect("the file can be written");
    rewrite(&path, |ours| *ours = rows);
    assert_eq!(first_damage(&path), Some(Offset::new(6)));
}

/// A large block is cut into pieces, each a row of its own.
#[test]
fn a_missing_piece_of_a_block_is_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("store.log");
    let log = RedbLog::create(&path, STORE).expect("a store is made");
    let main = log.create(&name("main")).expect("a branch is made").id;
    let text = |n| Random::new(n).text(3000);
    let drafts: Vec<_> = (0..10).map(|n| draft(n, &json!({"text": text(n)}))).collect();
    append_here(&log, main, &drafts);
    log.close().expect("the store closes");
    let sound = fs::read(&path).expect("the file can be read");
    let mut pieces = 0;
    rewrite(&path, |rows| pieces = rows.len());
    assert!(pieces > 2, "{pieces}");
    for piece in 0..pieces {
        fs::write(&path, &sound).expect("the file can be written");
        rewrite(&path, |rows| drop(rows.remove(piece)));
        assert_eq!(first_damage_read(&path), Some(Offset::ZERO), "piece {piece} of {pieces}");
    }
}

/// The last link is in the tip, so a history that was rewritten as a whole is noticed by it.
#[test]
fn an_edited_tip_is_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = store(folder.path());
    let sound = fs::read(&path).expect("the file can be read");
    // The head, and the link.
    for at in [0, 8, 39] {
        fs::write(&path, &sound).expect("the file can be written");
        fs::remove_file(path.with_extension("log.anchor")).ok();
        let database = Database::open(&path).expect("it is a redb file");
        let transaction = database.begin_write().expect("nobody else writes");
        {
            let mut table = transaction.open_table(TIPS).expect("there is a table of tips");
            let mut tip = *table.get(0).expect("it can be read").expect("a tip").value();
            tip[at] ^= 1;
            table.insert(0, &tip).expect("it can be written");
        }
        transaction.commit().expect("it can be written");
        drop(database);
        assert!(first_damage(&path).is_some(), "byte {at} of the tip");
    }
}

#[test]
fn an_edited_blob_is_named_by_its_hash() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("store.log");
    let log = RedbLog::create(&path, STORE).expect("a store is made");
    let texts = ["a short text".to_owned(), "a long text ".repeat(2000)];
    let hashes = texts.map(|text| log.put_blob(text.into()).expect("it is stored"));
    log.close().expect("the store closes");
    let sound = fs::read(&path).expect("the file can be read");
    for hash in hashes {
        for at in 0..20 {
            fs::write(&path, &sound).expect("the file can be written");
            let database = Database::open(&path).expect("it is a redb file");
            let transaction = database.begin_write().expect("nobody else writes");
            {
                let mut table = transaction.open_table(BLOBS).expect("there is a table of blobs");
                let row = table.get(hash.as_bytes()).expect("it can be read");
                let mut row = row.expect("a blob").value().to_vec();
                let at = at % row.len();
                row[at] ^= 1;
                table.insert(hash.as_bytes(), row.as_slice()).expect("it can be written");
            }
            transaction.commit().expect("it can be written");
            drop(database);
            let log = RedbLog::open(&path).expect("redb finds nothing wrong");
            let read = log.blob(&hash);
            assert!(
                matches!(&read, Err(LogError::Blob { hash: named, .. }) if *named == hash),
                "byte {at}: {read:?}"
            );
        }
    }
}

/// A copy that lost its end through redb, its tip included, is sound in itself; its anchor knows
/// more.
#[test]
fn a_shortened_branch_is_noticed_by_the_anchor() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = store(folder.path());
    let anchor = fs::read(path.with_extension("log.anchor")).expect("there is an anchor");
    let log = RedbLog::open(&path).expect("the store opens");
    let main = log.branches().expect("the branch is there")[0].id;
    let block = &log.blocks(main, Offset::new(2), 1).expect("a block")[0];
    let (head, link) = (block.head(), block.after);
    log.close().expect("the store closes");
    rewrite(&path, |rows| drop(rows.pop()));
    let database = Database::open(&path).expect("it is a redb file");
    let transaction = database.begin_write().expect("nobody else writes");
    {
        let mut table = transaction.open_table(TIPS).expect("there is a table of tips");
        let mut tip = *table.get(0).expect("it can be read").expect("a tip").value();
        tip[..8].copy_from_slice(&head.count().to_le_bytes());
        tip[8..40].copy_from_slice(link.as_bytes());
        table.insert(0, &tip).expect("it can be written");
    }
    transaction.commit().expect("it can be written");
    drop(database);
    let shortened = fs::read(&path).expect("the file can be read");
    assert_eq!(first_damage(&path), None, "in itself it is sound");
    fs::write(&path, shortened).expect("the file can be written");
    fs::write(path.with_extension("log.anchor"), anchor).expect("the folder can be written");
    let opened = RedbLog::open(&path);
    assert!(matches!(opened, Err(LogError::RolledBack { .. })), "{opened:?}");
    assert_eq!(head, Head::of_count(4));
}
