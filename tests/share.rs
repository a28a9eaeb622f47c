//! A store and the processes that share it: one owns it, the others go on when that one leaves.
//! Here they are stores opened side by side; `runtime/tests/process/cli.rs` kills real processes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use log::{
    Append, AppendError, Head, Log, LogError, Missing, Offer, Offset, Store, read_all, tail, verify,
};
use tempfile::TempDir;
use tokio_stream::StreamExt;

use crate::support::{append_here, append_of, name, numbered, numbered_range, numbers};

struct Place {
    path: PathBuf,
    _folder: TempDir,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    Place { path: folder.path().join("lab.redb"), _folder: folder }
}

impl Place {
    fn open(&self, me: &str) -> Arc<Store> {
        Store::open(&self.path, Missing::Create, me).unwrap()
    }
}

fn offer(n: u64) -> Offer {
    Offer { drafts: vec![numbered(n)], expected: None }
}

#[test]
fn a_store_is_made_once_however_many_open_it() {
    let place = place();
    let refused = Store::open(&place.path, Missing::Refuse, "pid 1").unwrap_err();
    assert!(matches!(refused, LogError::Missing { .. }), "{refused}");
    assert!(!place.path.exists());
    let opened = thread::scope(|scope| {
        let open = || place.open("pid 1");
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let ids: Vec<_> = opened.iter().map(|store| store.id()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(opened.iter().filter(|store| store.owner().is_none()).count(), 1);
}

#[test]
fn a_guest_goes_on_when_the_owner_leaves() {
    let place = place();
    let owner = place.open("pid 1 (starling run)");
    let main = owner.create(&name("main")).unwrap().id;
    append_here(&*owner, main, &numbered_range(0..10));
    let guest = place.open("pid 2");
    assert_eq!(guest.owner().as_deref(), Some("pid 1 (starling run)"));
    let mut heads = guest.watch(main).unwrap();
    assert_eq!(*heads.borrow_and_update(), Head::of_count(10));
    assert_eq!(numbers(&*guest, main).len(), 10);
    owner.close().unwrap();
    drop(owner);

    guest.offer(main, offer(10)).wait().unwrap().unwrap();
    assert_eq!(guest.owner(), None, "the guest is the owner now");
    assert_eq!(numbers(&*guest, main), (0..11).collect::<Vec<_>>());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(heads.wait_for(|head| *head == Head::of_count(11))).unwrap();
    let late = place.open("pid 3");
    assert_eq!(late.owner().as_deref(), Some("pid 2"));
    let fork = late.fork(main, Head::of_count(5), &name("side"), "").unwrap();
    assert_eq!(numbers(&*guest, fork.id), (0..5).collect::<Vec<_>>());
}

/// The owner leaves in the middle of many offers, again and again; each lands once and is answered.
#[test]
fn offers_and_appends_in_flight_land_once_when_the_owner_leaves() {
    for round in 0..10 {
        let place = place();
        let owner = place.open("pid 1");
        let (main, side) =
            (owner.create(&name("main")).unwrap().id, owner.create(&name("side")).unwrap().id);
        let guest = place.open("pid 2");
        let leaving = {
            let guest = Arc::clone(&guest);
            thread::spawn(move || {
                let enough = Head::of_count(20 * (round + 1));
                let mut heads = guest.watch(main).unwrap();
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(heads.wait_for(|head| *head >= enough)).unwrap();
                owner.close().unwrap();
            })
        };
        let mut pending = Vec::new();
        for n in 0..400 {
            pending.push((n, guest.offer(main, offer(n))));
            let append = append_of(side, Head::of_count(n), &[numbered(n)]);
            pending.push((n, guest.submit(append)));
        }
        for (nth, (n, pending)) in pending.into_iter().enumerate() {
            let appended = pending.wait().unwrap_or_else(|| panic!("{nth} is answered"));
            match appended {
                Ok(appended) => {
                    let offset = appended.landed[0].offset;
                    let branch = if nth % 2 == 0 { main } else { side };
                    let event = log::read_one(&*guest, branch, offset).unwrap();
                    assert_eq!(event.id(), numbered(n).id);
                    assert_eq!(appended.head, Head::after(offset));
                }
                // An append that overtook those before it, made again meanwhile.
                Err(AppendError::TailMoved { .. }) if nth % 2 == 1 => {}
                Err(error) => panic!("{nth}: {error}"),
            }
        }
        leaving.join().unwrap();
        let mut times: HashMap<u64, u32> = HashMap::new();
        numbers(&*guest, main).into_iter().for_each(|n| *times.entry(n).or_default() += 1);
        assert_eq!(times.len(), 400);
        assert!(times.values().all(|times| *times == 1), "each offer landed once");
        let there = numbers(&*guest, side);
        assert_eq!(there, (0..there.len() as u64).collect::<Vec<_>>(), "in order, without a gap");
        verify(&*guest, main).unwrap();
    }
}

#[test]
fn a_claim_does_not_outlive_the_owner_that_granted_it() {
    let place = place();
    let owner = place.open("pid 1");
    let main = owner.create(&name("main")).unwrap().id;
    let engine = place.open("pid 2");
    let mut claim = engine.claim(main, "pid 2 (starling run)").unwrap();
    let refused = owner.claim(main, "pid 1 (starling run)").unwrap_err().to_string();
    assert!(refused.contains("is being run by pid 2 (starling run)"), "{refused}");
    owner.close().unwrap();
    drop(owner);
    assert!(claim.inbox.blocking_recv().is_none(), "the engine learns of it");
    let append = |epoch| Append { epoch, ..append_of(main, Head::EMPTY, &[numbered(0)]) };
    let old = engine.submit(append(claim.epoch)).wait().unwrap();
    assert!(matches!(old, Err(AppendError::Superseded { .. })), "{old:?}");
    let again = engine.claim(main, "pid 2 (starling run)").unwrap();
    engine.submit(append(again.epoch)).wait().unwrap().unwrap();
}

#[test]
fn many_guests_find_one_new_owner_and_miss_nothing() {
    let place = place();
    let owner = place.open("pid 0");
    let main = owner.create(&name("main")).unwrap().id;
    append_here(&*owner, main, &numbered_range(0..100));
    let guests: Vec<_> = (1..=4).map(|n| place.open(&format!("pid {n}"))).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let tails: Vec<_> = guests
        .iter()
        .map(|guest| {
            let log: Arc<dyn Log> = guest.clone();
            let _inside = runtime.enter();
            let mut events = tail(log, main, Offset::ZERO).unwrap();
            runtime.spawn(async move {
                for n in 0..500 {
                    let event = events.next().await.unwrap().unwrap();
                    assert_eq!(event.offset(), Offset::new(n));
                }
            })
        })
        .collect();
    owner.close().unwrap();
    drop(owner);
    thread::scope(|scope| {
        for (place, guest) in guests.iter().enumerate() {
            scope.spawn(move || {
                for n in 0..100 {
                    let n = 1000 * (place as u64 + 1) + n;
                    guest.offer(main, offer(n)).wait().unwrap().unwrap();
                }
            });
        }
    });
    for tail in tails {
        runtime.block_on(tail).unwrap();
    }
    assert_eq!(guests.iter().filter(|guest| guest.owner().is_none()).count(), 1);
    assert_eq!(read_all(&*guests[3], main).unwrap().count(), 500);
}
