//! Durable keys: each takes effect once along a branch and its ancestors.

use log::{AppendError, Appended, Draft, Head, Offset};
use serde_json::json;

use super::Opened;
use crate::support::{append, append_here, draft, name, numbered, numbers};

/// An event with a key whose content is `n`; `id` and `time` are no part of that.
fn keyed(key: &str, n: u64) -> Draft {
    let mut draft = numbered(n);
    draft.key = Some(key.into());
    draft
}

fn landed(appended: &Appended) -> Vec<(u64, bool)> {
    appended.landed.iter().map(|landed| (landed.offset.get(), landed.repeated)).collect()
}

pub(super) fn the_same_again_is_a_no_op(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let head = append_here(log, main, &[numbered(0), keyed("a", 1), numbered(2)]);
    let before = log.branch(main).expect("main");
    let mut again = keyed("a", 1);
    again.id = draft(99, &json!({})).id;
    again.time = log::Time::from_ms(5).expect("a time");
    again.actor = "user:bob".into();
    let appended = append(log, main, head, &[again]).expect("the same again");
    assert_eq!((landed(&appended), appended.head), (vec![(1, true)], head));
    assert_eq!(log.branch(main).expect("main"), before, "nothing was written");
    assert_eq!(log.find_key(main, "a").expect("main"), Some(Offset::new(1)));
    assert_eq!(log.find_key(main, "b").expect("main"), None);
}

pub(super) fn a_repeat_is_left_out_and_the_rest_lands(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let head = append_here(log, main, &[keyed("a", 0), keyed("b", 1)]);
    let drafts = [numbered(2), keyed("b", 1), keyed("c", 3), keyed("a", 0), numbered(4)];
    let appended = append(log, main, head, &drafts).expect("the rest lands");
    assert_eq!(landed(&appended), [(2, false), (1, true), (3, false), (0, true), (4, false)]);
    assert_eq!(appended.head, Head::of_count(5));
    assert_eq!(numbers(log, main), [0, 1, 2, 3, 4]);
    assert_eq!(log.find_key(main, "c").expect("main"), Some(Offset::new(3)));
    log::verify(log, main).expect("the chain holds");
}

pub(super) fn a_repeat_inside_its_own_batch_is_left_out(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let drafts = [keyed("a", 0), numbered(1), keyed("a", 0), numbered(2)];
    let appended = append(log, main, Head::EMPTY, &drafts).expect("the rest lands");
    assert_eq!(landed(&appended), [(0, false), (1, false), (0, true), (2, false)]);
    assert_eq!(numbers(log, main), [0, 1, 2]);
    let refused = append(log, main, appended.head, &[keyed("d", 5), keyed("d", 6)]);
    assert!(matches!(refused, Err(AppendError::KeyConflict { .. })), "{refused:?}");
    assert_eq!(log.find_key(main, "d").expect("main"), None);
}

pub(super) fn other_content_refuses_the_whole_batch(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let head = append_here(log, main, &[keyed("a", 0), numbered(1)]);
    let mut kind = keyed("a", 0);
    kind.kind = "test.other".into();
    let mut changed = keyed("a", 0);
    changed.changes = vec![log::Change::Remove { id: "x".into() }];
    for other in [keyed("a", 7), kind, changed] {
        let refused = append(log, main, head, &[numbered(2), keyed("z", 3), other]);
        let Err(AppendError::KeyConflict { branch, key, first }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((branch, key.as_str(), first), (main, "a", Offset::ZERO));
    }
    assert_eq!(numbers(log, main), [0, 1]);
    assert_eq!(log.find_key(main, "z").expect("main"), None, "nothing of the batch landed");
}

pub(super) fn a_key_holds_along_the_ancestry(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let head = append_here(log, main, &[numbered(0), keyed("a", 1), numbered(2)]);
    let sees = log.fork(main, head, &name("sees"), "").expect("a fork").id;
    let before = log.fork(main, Head::of_count(1), &name("before"), "").expect("a fork").id;
    assert_eq!(log.find_key(sees, "a").expect("sees"), Some(Offset::new(1)));
    assert_eq!(log.find_key(before, "a").expect("before"), None);
    let appended = append(log, sees, head, &[keyed("a", 1), numbered(3)]).expect("a repeat");
    assert_eq!(landed(&appended), [(1, true), (3, false)]);
    let refused = append(log, sees, appended.head, &[keyed("a", 9)]);
    assert!(matches!(refused, Err(AppendError::KeyConflict { .. })), "{refused:?}");
    append(log, before, Head::of_count(1), &[keyed("a", 9)]).expect("the key is free there");
    assert_eq!(log.find_key(before, "a").expect("before"), Some(Offset::new(1)));
    append_here(log, sees, &[keyed("own", 4)]);
    assert_eq!(log.find_key(main, "own").expect("main"), None, "a fork's keys are its own");
}

pub(super) fn thousands_of_keys_in_one_batch(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let drafts: Vec<Draft> = (0..5000).map(|n| keyed(&format!("key {n}"), n)).collect();
    append_here(log, main, &drafts);
    let appended = append(log, main, Head::of_count(5000), &drafts[..200]).expect("repeats");
    assert!(appended.landed.iter().all(|landed| landed.repeated));
    for n in [0, 1, 1023, 1024, 4999] {
        let found = log.find_key(main, &format!("key {n}")).expect("main");
        assert_eq!(found, Some(Offset::new(n)));
    }
    assert_eq!(numbers(log, main).len(), 5000);
}
