//! A crowd: many threads append at once while others read, and none of them is forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use log::{
    AppendError, BranchId, Draft, Event, EventError, Hash, Head, Log, LogError, Offer, Offset,
    RedbLog, ValueRef, tail, verify,
};
use serde_json::json;
use tokio_stream::StreamExt;

use crate::support::disk::Disk;
use crate::support::{STORE, append_here, append_of, draft, name, numbered, numbers};

const THREADS: u64 = 16;
const OFFERS_EACH: u64 = 40;

/// Offers one event after the other. Gives where each landed.
fn offer_all(log: &dyn Log, main: BranchId, thread: u64) -> Vec<(Offset, u64)> {
    let mut landed = Vec::new();
    for nth in 0..OFFERS_EACH {
        let n = thread * OFFERS_EACH + nth;
        let mut draft = numbered(n);
        draft.key = (nth % 3 == 0).then(|| format!("key {n}").into());
        // Every tenth demands an empty branch, which it is no longer.
        let expected = (nth % 10 == 9).then_some(Head::EMPTY);
        let offer = Offer { drafts: vec![draft.clone()], expected };
        match log.offer(main, offer).wait().expect("the log answers") {
            Ok(appended) => {
                assert!(expected.is_none(), "the branch is not empty");
                assert_eq!(appended.landed.len(), 1);
                assert!(!appended.landed[0].repeated);
                landed.push((appended.landed[0].offset, n));
            }
            Err(AppendError::TailMoved { .. }) => assert_eq!(expected, Some(Head::EMPTY)),
            Err(other) => panic!("the offer {n}: {other}"),
        }
        if nth % 3 == 0 && expected.is_none() {
            // The same again, as after an answer that was lost.
            let again = Offer { drafts: vec![draft], expected: None };
            let again = log.offer(main, again).wait().expect("the log answers");
            let again = again.expect("the same content").landed[0];
            assert_eq!((again.offset, again.repeated), (landed[landed.len() - 1].0, true));
        }
    }
    landed
}

fn number(event: &Event) -> u64 {
    let n = event.payload().get("n").and_then(ValueRef::as_i64).expect("it has a number");
    u64::try_from(n).expect("the number is small")
}

/// Each offer lands once or is refused by name, in one order that all readers see.
#[test]
fn sixteen_threads_offer_while_readers_follow() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let log = RedbLog::create(&folder.path().join("store.log"), STORE).expect("a store is made");
    let log: Arc<dyn Log> = Arc::new(log);
    let main = log.create(&name("main")).expect("a branch is made").id;
    let landing = (0..OFFERS_EACH).filter(|nth| nth % 10 != 9).count() as u64 * THREADS;
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let tokio = tokio.expect("threads can be started");
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let log = Arc::clone(&log);
            tokio.spawn(async move {
                let events = tail(log, main, Offset::ZERO).expect("main is there");
                let events = events.take(landing as usize).map(|event| event.expect("it is sound"));
                let seen = events.map(|event| (event.offset(), number(&event))).collect::<Vec<_>>();
                tokio::time::timeout(Duration::from_secs(120), seen).await.expect("all arrive")
            })
        })
        .collect();
    let mut landed = BTreeMap::new();
    std::thread::scope(|scope| {
        let log = &*log;
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || offer_all(log, main, thread))).collect();
        for thread in threads {
            for (offset, n) in thread.join().expect("every offer is answered") {
                assert_eq!(landed.insert(offset, n), None, "two events at {offset}");
            }
        }
    });
    let landed: Vec<(Offset, u64)> = landed.into_iter().collect();
    let expected = (0..).map(Offset::new).zip(numbers(&*log, main));
    assert_eq!(landed, expected.collect::<Vec<_>>(), "everybody was told where it landed");
    assert_eq!(landed.len() as u64, landing);
    for reader in readers {
        assert_eq!(tokio.block_on(reader).expect("no reader panics"), landed);
    }
}

fn keyed(n: u64, key: &str) -> Draft {
    Draft { key: Some(key.into()), ..numbered(n) }
}

/// Appends that wait together land in one commit, each of them whole or not at all.
#[test]
fn a_refused_member_of_a_group_leaves_nothing() {
    let disk = Disk::new(512);
    let log = RedbLog::create_backend(disk.clone(), STORE).expect("the disk is well");
    let main = log.create(&name("main")).expect("a branch is made").id;
    append_here(&log, main, &[keyed(0, "a")]);
    let at = Head::of_count;
    let hash = Hash::of(b"nobody has given this text");
    let naming =
        json!({"text": {"$blob": hash.to_string(), "head": "n".repeat(256), "size": 5000}});
    disk.shut_gate();
    let first = log.submit(append_of(main, at(1), &[numbered(1)]));
    disk.wait_for_someone();
    let group = [
        append_of(main, at(2), &[numbered(2)]),
        append_of(main, at(3), &[keyed(8, "left"), draft(9, &naming)]),
        append_of(main, at(3), &[keyed(8, "left"), keyed(7, "a")]),
        append_of(main, at(9), &[keyed(8, "left")]),
        append_of(main, at(3), &[numbered(3)]),
    ];
    let group = group.map(|append| log.submit(append));
    disk.open_gate();
    first.wait().expect("the log answers").expect("it lands");
    let answers = group.map(|answer| answer.wait().expect("the log answers"));
    let [lands, no_text, conflict, moved, lands_too] = &answers;
    assert!(lands.is_ok() && lands_too.is_ok(), "{answers:?}");
    let named = AppendError::from(EventError::NoBlob { hash }).to_string();
    assert!(matches!(no_text, Err(error) if error.to_string() == named), "{no_text:?}");
    assert!(matches!(conflict, Err(AppendError::KeyConflict { .. })), "{conflict:?}");
    assert!(matches!(moved, Err(AppendError::TailMoved { .. })), "{moved:?}");
    let check = |log: &dyn Log| -> Result<(), LogError> {
        assert_eq!(numbers(log, main), [0, 1, 2, 3]);
        assert_eq!(log.find_key(main, "left")?, None, "a key of a refused batch");
        verify(log, main).map(drop)
    };
    check(&log).expect("the log is well");
    append_here(&log, main, &[numbered(4)]);
    drop(log);
    let log = RedbLog::open_backend(disk).expect("the disk is well");
    assert_eq!(numbers(&log, main), [0, 1, 2, 3, 4]);
}
