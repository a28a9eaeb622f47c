//! A crowd: many threads append at once while others read, and none of them is forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use log::{AppendError, BranchId, Event, Head, Log, Offer, Offset, RedbLog, ValueRef, tail};
use tokio_stream::StreamExt;

use crate::support::{STORE, name, numbered, numbers};

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
