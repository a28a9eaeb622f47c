//! Guests: another process's log, used over a socket as if it were one's own.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use log::{
    Append, AppendError, Batch, BranchId, BranchName, Derivation, Draft, Epoch, GuestLog, Head,
    Log, LogError, LogId, MemoryLog, Offer, Offset, Server, read_all, tail, verify,
};
use serde_json::json;
use tempfile::TempDir;
use tokio_stream::StreamExt;

const MAIN: BranchId = BranchId::new(0);

/// An owner in this process, and the name under which it is found.
struct Owner {
    log: Arc<MemoryLog>,
    server: Server,
    path: PathBuf,
    _folder: TempDir,
}

fn owner() -> Owner {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lab.redb");
    let log = Arc::new(MemoryLog::new(LogId::from_bytes([7; 16])));
    log.create(&BranchName::main()).unwrap();
    let server = Server::start(log.clone(), &path, "pid 1 (the test)").unwrap();
    Owner { log, server, path, _folder: folder }
}

impl Owner {
    fn guest(&self) -> GuestLog {
        GuestLog::connect(&self.path).unwrap().expect("the owner listens")
    }
}

fn draft(number: u64, text: &str) -> Draft {
    let id = Derivation::new().text("guest").integer(number).text(text).finish();
    let mut draft = Draft::new(id, "thing.said", "user:ann");
    draft.payload.insert("text".to_owned(), json!(text));
    draft
}

fn append(number: u64, expected: u64, epoch: Epoch) -> Append {
    let expected = Head::of_count(expected);
    let batch = Batch::of_drafts(expected.next(), &[draft(number, "appended")]).unwrap();
    Append { branch: MAIN, batch, expected, epoch }
}

fn offer(number: u64, text: &str) -> Offer {
    Offer { drafts: vec![draft(number, text)], expected: None }
}

#[test]
fn appends_in_flight_land_in_order_whoever_answers() {
    let owner = owner();
    let guest = owner.guest();
    let pending: Vec<_> = (0..1000).map(|n| guest.submit(append(n, n, Epoch::UNCLAIMED))).collect();
    for (n, pending) in pending.into_iter().enumerate() {
        let appended = pending.wait().unwrap().unwrap();
        assert_eq!(appended.head, Head::of_count(n as u64 + 1));
    }
    let moved = guest.submit(append(7, 7, Epoch::UNCLAIMED)).wait().unwrap();
    let Err(AppendError::TailMoved { actual, .. }) = moved else { panic!("{moved:?}") };
    assert_eq!(actual, Head::of_count(1000));
    assert_eq!(verify(&guest, MAIN).unwrap(), verify(&*owner.log, MAIN).unwrap());
    assert_eq!(guest.id(), owner.log.id());
}

#[test]
fn long_texts_travel_with_their_events() {
    let owner = owner();
    let guest = owner.guest();
    let long = "long é ".repeat(100_000);
    guest.offer(MAIN, offer(1, &long)).wait().unwrap().unwrap();
    let batch = Batch::of_drafts(Offset::new(1), &[draft(2, &long)]).unwrap();
    let (expected, epoch) = (Head::of_count(1), Epoch::UNCLAIMED);
    guest.submit(Append { branch: MAIN, batch, expected, epoch }).wait().unwrap().unwrap();
    let hash = log::Hash::of(long.as_bytes());
    assert_eq!(guest.blob(&hash).unwrap().unwrap(), long.as_bytes());
    // The form of a reference names a text that nobody has: refused by name.
    let mut named = draft(3, "");
    let hash = log::Hash::of(b"nobody has this");
    let reference = json!({"$blob": hash.to_string(), "head": "n", "size": 5000});
    named.payload.insert("text".to_owned(), reference);
    let refused = guest.offer(MAIN, Offer { drafts: vec![named], expected: None }).wait().unwrap();
    let text = refused.unwrap_err().to_string();
    assert!(text.contains(&hash.to_string()), "{text}");
}

#[test]
fn offers_reach_the_engine_that_claimed_the_branch_in_another_process() {
    let owner = owner();
    let (engine, other) = (owner.guest(), owner.guest());
    let mut claim = engine.claim(MAIN, "pid 7 (starling run)").unwrap();
    let refused = other.claim(MAIN, "pid 8").unwrap_err();
    assert!(matches!(&refused, LogError::Claimed { owner, .. } if owner == "pid 7 (starling run)"));

    let pending = other.offer(MAIN, offer(1, "hello"));
    let delivery = claim.inbox.blocking_recv().unwrap();
    let text = delivery.offer.drafts[0].payload["text"].as_str().unwrap();
    assert_eq!(text, "hello");
    let batch = Batch::of_drafts(Offset::ZERO, &delivery.offer.drafts).unwrap();
    let (expected, epoch) = (Head::EMPTY, claim.epoch);
    let landed = engine.submit(Append { branch: MAIN, batch, expected, epoch }).wait().unwrap();
    delivery.answer.send(landed).unwrap();
    assert_eq!(pending.wait().unwrap().unwrap().head, Head::of_count(1));

    // An engine that lets go of an offer leaves its sender without an answer, not without an end.
    let pending = other.offer(MAIN, offer(2, "hello"));
    drop(claim.inbox.blocking_recv().unwrap());
    assert!(pending.wait().is_none());
}

#[test]
fn a_claim_ends_with_its_inbox_with_its_release_and_with_its_guest() {
    let owner = owner();
    let guest = owner.guest();
    for _ in 0..50 {
        let claim = guest.claim(MAIN, "pid 7").unwrap();
        drop(claim);
        let claim = guest.claim(MAIN, "pid 7").unwrap();
        guest.release(MAIN, claim.epoch);
        // Offers are not lost with a claim: they land directly.
        guest.offer(MAIN, offer(1, "x")).wait().unwrap().unwrap();
    }
    let claim = guest.claim(MAIN, "pid 7").unwrap();
    let head = guest.branch(MAIN).unwrap().tip.head.count();
    drop(guest);
    let other = owner.guest();
    let again = loop {
        match other.claim(MAIN, "pid 8") {
            Ok(claim) => break claim,
            Err(LogError::Claimed { .. }) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    assert!(again.epoch > claim.epoch);
    let old = other.submit(append(1, head, claim.epoch)).wait().unwrap();
    assert!(matches!(old, Err(AppendError::Superseded { .. })), "{old:?}");
    let mut inbox = claim.inbox;
    assert!(inbox.blocking_recv().is_none(), "the inbox of a lost claim ends");
}

#[test]
fn a_guest_follows_what_others_write() {
    let owner = owner();
    let guest: Arc<dyn Log> = Arc::new(owner.guest());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let follow = async {
        let mut events = tail(Arc::clone(&guest), MAIN, Offset::ZERO).unwrap();
        for n in 0..2_000 {
            let event = events.next().await.unwrap().unwrap();
            assert_eq!(event.offset(), Offset::new(n));
        }
    };
    let log = Arc::clone(&owner.log);
    let writer = std::thread::spawn(move || {
        for n in 0..2_000 {
            log.submit(append(n, n, Epoch::UNCLAIMED)).wait().unwrap().unwrap();
        }
    });
    runtime.block_on(follow);
    writer.join().unwrap();
}

#[test]
fn when_the_owner_stops_its_guests_are_told() {
    let owner = owner();
    let guest = owner.guest();
    let mut claim = guest.claim(MAIN, "pid 7").unwrap();
    let pending = guest.offer(MAIN, offer(1, "x"));
    assert!(claim.inbox.blocking_recv().is_some());
    owner.server.stop();
    assert!(pending.wait().is_none());
    assert!(claim.inbox.blocking_recv().is_none());
    let error = guest.branches().unwrap_err();
    let LogError::Stopped { what } = error else { panic!("{error}") };
    assert_eq!(what, "pid 1 (the test), which owned the store, has left");
    assert!(guest.is_lost());
    assert!(GuestLog::connect(&owner.path).unwrap().is_none(), "nobody listens any more");
    assert!(owner.log.branches().is_ok(), "the log itself goes on");
}

#[test]
fn a_socket_left_behind_is_replaced_and_is_this_users_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lab.redb");
    let socket = folder.path().join("lab.redb.sock");
    drop(UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    assert!(GuestLog::connect(&path).unwrap().is_none());
    let log = Arc::new(MemoryLog::new(LogId::ZERO));
    let server = Server::start(log, &path, "pid 1").unwrap();
    assert!(GuestLog::connect(&path).unwrap().is_some());
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    drop(server);
    assert!(!socket.exists());
}

#[test]
fn a_path_too_long_for_a_socket_is_served_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a".repeat(120));
    std::fs::create_dir(&deep).unwrap();
    let path = deep.join("lab.redb");
    let log = Arc::new(MemoryLog::new(LogId::from_bytes([3; 16])));
    let server = Server::start(log, &path, "pid 1").unwrap();
    let place = server.place().to_owned();
    let mode = place.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    let guest = GuestLog::connect(&path).unwrap().unwrap();
    assert_eq!(guest.id(), LogId::from_bytes([3; 16]));
    drop(server);
    assert!(!place.exists());
}

/// Greets as a guest does, and leaves the rest to the caller.
fn greeted(owner: &Owner) -> UnixStream {
    let mut stream = UnixStream::connect(owner.server.place()).unwrap();
    stream.write_all(b"\x09\0\0\0starling\x01").unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut welcome = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut welcome).unwrap();
    assert_eq!(welcome[0], 0, "welcome");
    stream
}

#[test]
fn a_bad_guest_is_hung_up_on_and_harms_nobody() {
    let owner = owner();
    let guest = owner.guest();
    let mut batch = Vec::new();
    let mut state = 1u64;
    for _ in 0..200 {
        let mut stream = greeted(&owner);
        // Rubbish of any kind, as a frame of its own length.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let length = (state >> 33) as usize % 200;
        batch.clear();
        batch.extend_from_slice(&(length as u32).to_le_bytes());
        for _ in 0..length {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            batch.push((state >> 60) as u8 ^ (state >> 40) as u8);
        }
        stream.write_all(&batch).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    // A length over the limit, and one that nothing follows.
    let mut stream = greeted(&owner);
    stream.write_all(&u32::MAX.to_le_bytes()).unwrap();
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    let mut half = greeted(&owner);
    half.write_all(&(200u32 << 20).to_le_bytes()).unwrap();
    // A greeting in another version is told why.
    let mut old = UnixStream::connect(owner.server.place()).unwrap();
    old.write_all(b"\x09\0\0\0starling\x02").unwrap();
    let mut told = Vec::new();
    old.read_to_end(&mut told).unwrap();
    assert!(String::from_utf8_lossy(&told).contains("speaks version 1 to guests, not 2"));
    for n in 0..100 {
        guest.submit(append(n, n, Epoch::UNCLAIMED)).wait().unwrap().unwrap();
    }
    assert_eq!(read_all(&guest, MAIN).unwrap().count(), 100);
}

/// A guest that asks for much and reads nothing is hung up on, and nothing else slows down.
#[test]
fn a_guest_that_does_not_read_holds_nobody_up() {
    let owner = owner();
    let guest = owner.guest();
    let drafts: Vec<Draft> = (0..1000).map(|n| draft(n, &"x".repeat(4000))).collect();
    guest.offer(MAIN, Offer { drafts, expected: None }).wait().unwrap().unwrap();
    let mut deaf = greeted(&owner);
    deaf.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    // Call 8 asks for the blocks from offset 0, as many as there are.
    let asked =
        (0..10_000).take_while(|_| deaf.write_all(b"\x07\0\0\0\x01\x08\0\0\xff\xff\x03").is_ok());
    let asked = asked.count();
    assert!(asked < 10_000, "calls are not read while their answers are not");
    let blocks = guest.blocks(MAIN, Offset::ZERO, usize::MAX).unwrap();
    assert!(blocks.iter().map(|block| block.count).sum::<u64>() >= 1000);
}
