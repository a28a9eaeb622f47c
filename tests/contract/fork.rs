//! Forks: a branch shares its prefix with its parent, at any offset, for one record.

use log::{BranchId, Head, Log, LogError, Offset, genesis, verify};

use super::Opened;
use crate::support::{append_here, name, numbered, numbered_range, numbers};

fn whole(log: &dyn Log, branch: BranchId, expected: &[u64]) {
    assert_eq!(numbers(log, branch), expected);
    let tip = log.branch(branch).expect("the branch").tip;
    assert_eq!(verify(log, branch).expect("the chain holds"), (tip.head, tip.link));
}

pub(super) fn a_fork_shares_its_prefix_at_any_cut(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    for n in 0..4 {
        append_here(log, main, &numbered_range(n * 5..n * 5 + 5));
    }
    for cut in 0..=20 {
        let made = log.fork(main, Head::of_count(cut), &name(&format!("f{cut}")), "live");
        let made = made.expect("the cut is there");
        let point = made.fork.clone().expect("it is a fork");
        assert_eq!((point.parent, point.cut.count(), &*point.serving), (main, cut, "live"));
        assert_eq!((made.tip.head.count(), made.tip.link), (cut, point.link));
        assert_eq!(point.link == genesis(), cut == 0);
        whole(log, made.id, &(0..cut).collect::<Vec<_>>());
        append_here(log, made.id, &[numbered(100), numbered(101)]);
        whole(log, made.id, &(0..cut).chain(100..102).collect::<Vec<_>>());
    }
    whole(log, main, &(0..20).collect::<Vec<_>>());
}

pub(super) fn a_fork_copies_no_event(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let head = append_here(log, main, &numbered_range(0..2000));
    let middle = Head::of_count(1500);
    let fork = log.fork(main, middle, &name("f"), "").expect("a fork");
    let blocks = log.blocks(fork.id, Offset::ZERO, usize::MAX).expect("blocks");
    let parents = log.blocks(main, Offset::ZERO, usize::MAX).expect("blocks");
    assert!(blocks.iter().all(|block| block.branch == main), "the blocks are the parent's");
    assert_eq!((blocks.len(), parents.len(), head.count()), (2, 2, 2000));
    assert_eq!(log::read_all(log, fork.id).expect("f").count(), 1500, "only up to the cut");
}

pub(super) fn parent_and_fork_go_their_own_ways(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    append_here(log, main, &numbered_range(0..4));
    let fork = log.fork(main, Head::of_count(2), &name("f"), "").expect("a fork").id;
    append_here(log, main, &[numbered(4)]);
    append_here(log, fork, &[numbered(20), numbered(30)]);
    append_here(log, main, &[numbered(5)]);
    whole(log, main, &[0, 1, 2, 3, 4, 5]);
    whole(log, fork, &[0, 1, 20, 30]);
    // The same event after the same history has the same link, on any branch.
    let twin = log.fork(main, Head::of_count(2), &name("g"), "").expect("a fork").id;
    append_here(log, twin, &[numbered(2), numbered(3)]);
    let link = |branch, count| {
        let made = log.fork(branch, Head::of_count(count), &name(&format!("{branch}")[7..]), "");
        made.expect("a fork").tip.link
    };
    assert_eq!(link(twin, 4), log.branch(twin).expect("twin").tip.link);
    assert_eq!(link(main, 4), log.branch(twin).expect("twin").tip.link);
}

pub(super) fn a_fork_of_a_fork_may_be_cut_below_it(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    append_here(log, main, &numbered_range(0..10));
    let first = log.fork(main, Head::of_count(6), &name("first"), "").expect("a fork").id;
    append_here(log, first, &numbered_range(20..23));
    for (cut, expected) in [
        (0, vec![]),
        (3, vec![0, 1, 2]),
        (6, vec![0, 1, 2, 3, 4, 5]),
        (7, vec![0, 1, 2, 3, 4, 5, 20]),
        (9, vec![0, 1, 2, 3, 4, 5, 20, 21, 22]),
    ] {
        let second = log.fork(first, Head::of_count(cut), &name(&format!("s{cut}")), "");
        let second = second.expect("a fork").id;
        whole(log, second, &expected);
        append_here(log, second, &[numbered(50)]);
        whole(log, second, &[expected, vec![50]].concat());
    }
}

pub(super) fn forks_nest_a_hundred_deep(opened: &Opened) {
    let (log, mut at) = (&*opened.log, opened.main().id);
    append_here(log, at, &numbered_range(0..3));
    let mut expected = vec![0, 1, 2];
    for depth in 1..=100 {
        let head = log.branch(at).expect("the branch").tip.head;
        // Every third is cut one event below the head.
        let cut = if depth % 3 == 0 { Head::of_count(head.count() - 1) } else { head };
        expected.truncate(usize::try_from(cut.count()).expect("a small number"));
        at = log.fork(at, cut, &name(&format!("depth{depth}")), "").expect("a fork").id;
        append_here(log, at, &[numbered(1000 + depth), numbered(2000 + depth)]);
        expected.extend([1000 + depth, 2000 + depth]);
    }
    whole(log, at, &expected);
    assert_eq!(log.branches().expect("branches").len(), 101);
}

pub(super) fn a_fork_is_refused_beyond_the_head_or_with_a_taken_name(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    append_here(log, main, &numbered_range(0..2));
    let beyond = log.fork(main, Head::of_count(3), &name("f"), "");
    assert!(matches!(beyond, Err(LogError::BeyondHead { .. })), "{beyond:?}");
    let taken = log.fork(main, Head::of_count(1), &name("main"), "");
    assert!(matches!(taken, Err(LogError::BranchExists { .. })), "{taken:?}");
    let missing = log.fork(BranchId::new(9), Head::EMPTY, &name("f"), "");
    assert!(matches!(missing, Err(LogError::NoBranch { .. })), "{missing:?}");
    assert_eq!(log.branches().expect("branches").len(), 1);
    log.fork(main, Head::of_count(2), &name("f"), "").expect("the name is still free");
}

pub(super) fn a_fork_begins_with_what_was_taken_at_its_cut(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let mut drafts = numbered_range(0..6);
    (0..).zip(&mut drafts).for_each(|(n, draft)| draft.taken = 10 * n);
    append_here(log, main, &drafts);
    let taken = |cut| {
        let made = log.fork(main, Head::of_count(cut), &name(&format!("f{cut}")), "");
        made.expect("a fork").tip.taken
    };
    assert_eq!([taken(0), taken(1), taken(4), taken(6)], [0, 0, 30, 50]);
}
