//! Appending: whole batches, at exactly the expected head, in one order.

use std::sync::Arc;
use std::thread;

use log::{
    AppendError, Batch, BatchId, Bound, BranchId, Cause, Change, Event, EventId, Head, LogError,
    Offer, Offset, Time, find_batch, read, read_all, read_one, verify,
};
use serde_json::{Map, json};

use super::Opened;
use crate::support::{
    append, append_here, append_of, draft, name, numbered, numbered_range, numbers,
};

/// Every field has something in it.
fn full_draft() -> log::Draft {
    let mut draft = draft(1, &json!({"text": "é", "list": [1, 2.5, null, {"a": true}]}));
    let properties: Map<_, _> = json!({"name": "a", "size": 3}).as_object().expect("map").clone();
    draft.changes = vec![
        Change::Create { id: None, type_name: "Task".into(), properties: properties.clone() },
        Change::EnsureLink {
            type_name: "OWNS".into(),
            from: "#0".into(),
            to: "trip:x".into(),
            properties,
        },
        Change::Unset { id: "trip:x".into(), names: vec!["a".into(), "b".into()] },
        Change::Remove { id: "trip:y".into() },
    ];
    draft.key = Some("key 1".into());
    draft.cause = Some(Cause::Firing {
        event: EventId::from_bytes([7; 16]),
        behavior: "guard_budget".into(),
        row: vec![Bound::Element("a".into()), Bound::Path(vec!["b".into(), "c".into()])],
    });
    draft.taken = 12;
    draft.time = Time::from_ms(1_767_603_600_123).expect("a time");
    draft
}

pub(super) fn a_batch_lands_whole_and_reads_as_it_was_written(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main());
    assert_eq!(main.tip.head, Head::EMPTY);
    let drafts = vec![numbered(0), full_draft(), numbered(2)];
    let appended = append(log, main.id, Head::EMPTY, &drafts).expect("the branch is empty");
    assert_eq!(appended.head, Head::of_count(3));
    let landed: Vec<_> = appended.landed.iter().map(|l| (l.offset.get(), l.repeated)).collect();
    assert_eq!(landed, [(0, false), (1, false), (2, false)]);
    let events: Vec<Event> =
        read_all(log, main.id).expect("main").collect::<Result<_, _>>().expect("events");
    for (event, draft) in events.iter().zip(&drafts) {
        let read = event.to_draft();
        assert_eq!((read.salt.is_some(), draft.salt), (true, None), "the salt was derived");
        assert_eq!(log::Draft { salt: None, ..read }, *draft);
    }
    let tip = log.branch(main.id).expect("main").tip;
    assert_eq!((tip.head, tip.link, tip.taken), (appended.head, appended.link, 0));
    assert_eq!(verify(log, main.id).expect("the chain holds"), (tip.head, tip.link));
}

pub(super) fn a_moved_tail_refuses_the_batch_and_tells_the_head(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    append_here(log, main, &numbered_range(0..3));
    for wrong in [0, 1, 2, 4, 1000] {
        let refused = append(log, main, Head::of_count(wrong), &numbered_range(9..11));
        let Err(AppendError::TailMoved { branch, expected, actual }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((branch, expected.count(), actual.count()), (main, wrong, 3));
    }
    assert_eq!(numbers(log, main), [0, 1, 2], "a refused batch leaves nothing");
    let missing = append(log, BranchId::new(7), Head::EMPTY, &numbered_range(0..1));
    assert!(matches!(missing, Err(AppendError::Log(LogError::NoBranch { .. }))), "{missing:?}");
}

pub(super) fn an_empty_batch_writes_nothing(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    append_here(log, main, &numbered_range(0..1));
    let before = log.branch(main).expect("main");
    let appended = append(log, main, Head::of_count(1), &[]).expect("at the head");
    assert_eq!((appended.head, appended.landed.len()), (Head::of_count(1), 0));
    assert_eq!(log.branch(main).expect("main"), before);
    let refused = append(log, main, Head::EMPTY, &[]);
    assert!(matches!(refused, Err(AppendError::TailMoved { .. })), "{refused:?}");
}

pub(super) fn a_batch_may_be_larger_than_a_block(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let many = append_here(log, main, &numbered_range(0..3000));
    assert_eq!(many, Head::of_count(3000));
    let wide = "x".repeat(4000);
    let wide = |n| draft(n, &json!({"n": n, "parts": vec![&wide; 100]}));
    append_here(log, main, &(3000..3010).map(wide).collect::<Vec<_>>());
    assert_eq!(numbers(log, main), (0..3010).collect::<Vec<_>>());
    let found = log.blocks(main, Offset::ZERO, usize::MAX).expect("blocks");
    assert!(found.len() > 5, "it was cut into blocks");
}

pub(super) fn what_one_thread_submits_lands_in_order(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let submit = |n: u64| {
        let expected = Head::of_count(n * 3);
        log.submit(append_of(main, expected, &numbered_range(n * 3..n * 3 + 3)))
    };
    let pending: Vec<_> = (0..100).map(submit).collect();
    for (n, pending) in (0..).zip(pending) {
        let appended = pending.wait().expect("the log answers").expect("each follows the last");
        assert_eq!(appended.head, Head::of_count(n * 3 + 3));
    }
    assert_eq!(numbers(log, main), (0..300).collect::<Vec<_>>());
}

/// Half of the threads retry at whatever head they find, half offer without looking.
pub(super) fn sixteen_threads_append_at_once(opened: &Opened) {
    const EACH: u64 = 30;
    let main = opened.main().id;
    let insist = |n: u64| {
        let mut head = Head::EMPTY;
        loop {
            match append(&*opened.log, main, head, &[numbered(n)]) {
                Err(AppendError::TailMoved { actual, .. }) => head = actual,
                landed => return landed.expect("nothing else is in the way").landed[0].offset,
            }
        }
    };
    let offer = |n: u64| {
        let offer = Offer { drafts: vec![numbered(n)], expected: None };
        let answer = opened.log.offer(main, offer).wait().expect("the log answers");
        answer.expect("an offer lands").landed[0].offset
    };
    thread::scope(|scope| {
        for number in 0..16 {
            scope.spawn(move || {
                let mut last = None;
                for n in number * EACH..(number + 1) * EACH {
                    let at = if number % 2 == 0 { insist(n) } else { offer(n) };
                    assert!(last < Some(at), "what a thread appends later stands later");
                    last = Some(at);
                }
            });
        }
    });
    let mut found = numbers(&*opened.log, main);
    for number in 0..16 {
        let range = number * EACH..(number + 1) * EACH;
        let ours: Vec<u64> = found.iter().copied().filter(|n| range.contains(n)).collect();
        assert_eq!(ours, range.collect::<Vec<_>>(), "each event landed once, in order");
    }
    found.sort_unstable();
    assert_eq!(found, (0..16 * EACH).collect::<Vec<_>>());
    verify(&*opened.log, main).expect("the chain holds");
}

pub(super) fn a_lost_answer_is_found_by_its_batch(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    append_here(log, main, &numbered_range(0..2));
    let expected = Head::of_count(2);
    let batch = Batch::of_drafts(expected.next(), &numbered_range(2..3002)).expect("drafts");
    let id = batch.id(main, expected);
    let find = |id: BatchId, at| find_batch(log, main, at, id).expect("the branch can be read");
    assert_eq!(find(id, expected), None, "it has not landed yet");
    append_here(log, main, &numbered_range(2..3002));
    append_here(log, main, &numbered_range(3002..3003));
    assert_eq!(find(id, expected), Some(Head::of_count(3002)));
    assert_eq!(find(id, Head::EMPTY), None, "it did not land there");
    let other = Batch::of_drafts(expected.next(), &numbered_range(5..6)).expect("drafts");
    assert_eq!(find(other.id(main, expected), expected), None);
    assert_ne!(id, batch.id(main, Head::EMPTY), "elsewhere it would be another append");
}

pub(super) fn reading_starts_anywhere_and_ends_at_the_head(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    for n in 0..5 {
        append_here(log, main, &numbered_range(n * 7..n * 7 + 7));
    }
    for from in 0..36 {
        for to in [from, from + 1, from + 9, 1000] {
            let events = read(log, main, Offset::new(from)..Offset::new(to)).expect("main");
            let found: Vec<u64> =
                events.map(|event| event.expect("an event").offset().get()).collect();
            assert_eq!(found, (from..to.min(35)).collect::<Vec<_>>());
        }
    }
    let one = read_one(log, main, Offset::new(17)).expect("an event");
    assert_eq!(one.to_draft().payload, numbered(17).payload);
    let beyond = read_one(log, main, Offset::new(35));
    assert!(matches!(beyond, Err(LogError::BeyondHead { .. })), "{beyond:?}");
    assert!(log.blocks(main, Offset::new(35), 1).expect("main").is_empty());
}

pub(super) fn branches_are_named_once(opened: &Opened) {
    let log = Arc::clone(&opened.log);
    let main = opened.main();
    let again = log.create(&name("main"));
    assert!(matches!(again, Err(LogError::BranchExists { .. })), "{again:?}");
    let other = log.create(&name("other/one.2")).expect("the name is free");
    assert_eq!(log.branches().expect("branches"), [main, other.clone()]);
    assert_eq!(log.branch(other.id).expect("other"), other);
    let missing = log.branch(BranchId::new(2));
    assert!(matches!(missing, Err(LogError::NoBranch { .. })), "{missing:?}");
}

pub(super) fn a_closed_log_says_so(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let late = append_of(main, Head::EMPTY, &numbered_range(0..1));
    log.close().expect("the log closes");
    let stopped = |error: LogError| assert!(matches!(error, LogError::Stopped { .. }), "{error}");
    stopped(log.branches().expect_err("closed"));
    stopped(log.branch(main).expect_err("closed"));
    stopped(log.create(&name("x")).expect_err("closed"));
    stopped(log.fork(main, Head::EMPTY, &name("x"), "").expect_err("closed"));
    stopped(log.claim(main, "test").expect_err("closed"));
    stopped(log.blocks(main, Offset::ZERO, 1).expect_err("closed"));
    stopped(log.find_key(main, "k").expect_err("closed"));
    stopped(log.put_blob("x".into()).expect_err("closed"));
    stopped(log.blob(&log::Hash::ZERO).expect_err("closed"));
    stopped(log.watch(main).expect_err("closed"));
    stopped(log.close().expect_err("closed"));
    let refused = log.submit(late).wait().expect("the log answers");
    assert!(matches!(refused, Err(AppendError::Log(LogError::Stopped { .. }))), "{refused:?}");
    let offer = Offer { drafts: numbered_range(0..1), expected: None };
    let refused = log.offer(main, offer).wait().expect("the log answers");
    assert!(matches!(refused, Err(AppendError::Log(LogError::Stopped { .. }))), "{refused:?}");
}
