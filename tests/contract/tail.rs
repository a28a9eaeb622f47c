//! Following a branch: from any offset, then live, missing nothing and holding up nobody.

use std::sync::Arc;

use log::{BranchId, Event, Head, LogError, Offset, tail};
use tokio_stream::{Stream, StreamExt};

use super::Opened;
use crate::support::{append_here, name, numbered, numbered_range};

type Item = Result<Event, LogError>;

/// Runs a test on the threads of an async runtime, and fails it if it does not end.
fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_time().build().expect("a runtime starts");
    let limit = std::time::Duration::from_secs(600);
    runtime.block_on(async { tokio::time::timeout(limit, test).await.expect("the test ends") });
}

async fn next(stream: &mut (impl Stream<Item = Item> + Unpin)) -> u64 {
    let event = stream.next().await.expect("a tail has no end").expect("no event is damaged");
    event.offset().get()
}

pub(super) fn a_tail_starts_anywhere_and_goes_on_live(opened: &Opened) {
    let main = opened.main().id;
    append_here(&*opened.log, main, &numbered_range(0..2500));
    run(async {
        for from in [0, 1, 1023, 1024, 2499, 2500, 2503] {
            let head = opened.log.branch(main).expect("main").tip.head.count();
            let log = Arc::clone(&opened.log);
            let mut stream = tail(log, main, Offset::new(from)).expect("main");
            for offset in from..head {
                assert_eq!(next(&mut stream).await, offset);
            }
            let log = Arc::clone(&opened.log);
            let append = move || append_here(&*log, main, &numbered_range(head..head + 5));
            tokio::task::spawn_blocking(append).await.expect("the append ends");
            for offset in head.max(from)..head + 5 {
                assert_eq!(next(&mut stream).await, offset);
            }
        }
        let missing = tail(Arc::clone(&opened.log), BranchId::new(9), Offset::ZERO);
        assert!(matches!(missing, Err(LogError::NoBranch { .. })));
    });
}

pub(super) fn a_slow_reader_misses_nothing_and_blocks_nobody(opened: &Opened) {
    let main = opened.main().id;
    run(async {
        let log = || Arc::clone(&opened.log);
        let mut slow = tail(log(), main, Offset::ZERO).expect("main");
        let mut quick = tail(log(), main, Offset::ZERO).expect("main");
        let writer = log();
        let write = move || {
            for n in 0..20 {
                append_here(&*writer, main, &numbered_range(n * 500..n * 500 + 500));
            }
        };
        // The slow reader reads nothing at all until everything was written and read by the other.
        let writing = tokio::task::spawn_blocking(write);
        for offset in 0..10_000 {
            assert_eq!(next(&mut quick).await, offset);
        }
        writing.await.expect("the writer ends");
        for offset in 0..10_000 {
            assert_eq!(next(&mut slow).await, offset);
        }
    });
}

pub(super) fn a_tail_reads_through_a_fork(opened: &Opened) {
    let main = opened.main().id;
    append_here(&*opened.log, main, &numbered_range(0..10));
    let fork = opened.log.fork(main, Head::of_count(6), &name("f"), "").expect("a fork").id;
    run(async {
        let mut stream = tail(Arc::clone(&opened.log), fork, Offset::new(4)).expect("fork");
        assert_eq!([next(&mut stream).await, next(&mut stream).await], [4, 5]);
        let log = Arc::clone(&opened.log);
        let append = move || {
            append_here(&*log, main, &[numbered(10)]);
            append_here(&*log, fork, &[numbered(60)]);
        };
        tokio::task::spawn_blocking(append).await.expect("the append ends");
        let event = stream.next().await.expect("an event").expect("it is whole");
        assert_eq!((event.offset(), event.id()), (Offset::new(6), numbered(60).id));
    });
}

pub(super) fn a_watch_tells_the_head(opened: &Opened) {
    let main = opened.main().id;
    let early = opened.log.watch(main).expect("main");
    assert_eq!(*early.borrow(), Head::EMPTY);
    append_here(&*opened.log, main, &numbered_range(0..3));
    let late = opened.log.watch(main).expect("main");
    assert_eq!((*early.borrow(), *late.borrow()), (Head::of_count(3), Head::of_count(3)));
    append_here(&*opened.log, main, &numbered_range(3..4));
    assert_eq!((*early.borrow(), *late.borrow()), (Head::of_count(4), Head::of_count(4)));
    let missing = opened.log.watch(BranchId::new(9));
    assert!(matches!(missing, Err(LogError::NoBranch { .. })), "{missing:?}");
}
