//! Claims: at most one engine writes a branch, and events from outside go through it.

use log::{Append, AppendError, Batch, BranchId, Claim, Draft, Epoch, Head, Log, LogError, Offer};

use super::Opened;
use crate::support::{append, append_here, name, numbered, numbered_range, numbers};

fn append_under(
    log: &dyn Log,
    branch: BranchId,
    claim: &Claim,
    drafts: &[Draft],
) -> Result<log::Appended, AppendError> {
    let expected = log.branch(branch).expect("the branch").tip.head;
    let batch = Batch::of_drafts(expected.next(), drafts).expect("drafts");
    let append = Append { branch, batch, expected, epoch: claim.epoch };
    log.submit(append).wait().expect("the log answers")
}

pub(super) fn an_engine_appends_under_its_claim(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    append_here(log, main, &numbered_range(0..2));
    let claim = log.claim(main, "engine 1").expect("nobody has it");
    assert_eq!(log.branch(main).expect("main").tip.epoch, claim.epoch);
    append_under(log, main, &claim, &numbered_range(2..4)).expect("the claim holds");
    let refused = append(log, main, Head::of_count(4), &[numbered(9)]);
    let Err(AppendError::Superseded { branch, held, current }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((branch, held, current), (main, Epoch::UNCLAIMED, claim.epoch));
    assert_eq!(numbers(log, main), [0, 1, 2, 3]);
    let other = log.create(&name("other")).expect("a branch").id;
    append_here(log, other, &[numbered(0)]);
}

pub(super) fn a_second_engine_is_refused_while_the_first_lives(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let first = log.claim(main, "pid 7 on host a").expect("nobody has it");
    let refused = log.claim(main, "pid 8");
    let Err(LogError::Claimed { branch, owner }) = refused else { panic!("{refused:?}") };
    assert_eq!((branch, owner.as_str()), (main, "pid 7 on host a"));
    append_under(log, main, &first, &[numbered(0)]).expect("the first is undisturbed");
    log.release(main, first.epoch);
    let second = log.claim(main, "pid 8").expect("it was given back");
    assert!(second.epoch > first.epoch);
    log.release(main, first.epoch);
    let third = log.claim(main, "pid 9");
    assert!(matches!(third, Err(LogError::Claimed { .. })), "an old release changes nothing");
    drop(second);
    log.claim(main, "pid 9").expect("a claim lives while its inbox does");
    let missing = log.claim(BranchId::new(5), "pid 9");
    assert!(matches!(missing, Err(LogError::NoBranch { .. })), "{missing:?}");
}

pub(super) fn a_later_claim_ends_the_older_one(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let first = log.claim(main, "engine 1").expect("nobody has it");
    let epoch = first.epoch;
    drop(first);
    let second = log.claim(main, "engine 2").expect("the first is gone");
    assert_eq!(second.epoch, epoch.next());
    let late = Batch::of_drafts(Head::EMPTY.next(), &[numbered(0)]).expect("a draft");
    let late = Append { branch: main, batch: late, expected: Head::EMPTY, epoch };
    let refused = log.submit(late).wait().expect("the log answers");
    assert!(matches!(refused, Err(AppendError::Superseded { .. })), "{refused:?}");
    append_under(log, main, &second, &[numbered(1)]).expect("the second holds");
    assert_eq!(numbers(log, main), [1]);
}

pub(super) fn offers_go_to_the_engine_that_runs_the_branch(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let mut claim = log.claim(main, "engine").expect("nobody has it");
    let first = log.offer(main, Offer { drafts: vec![numbered(0)], expected: None });
    let expected = Some(Head::of_count(8));
    let second = log.offer(main, Offer { drafts: vec![numbered(1)], expected });
    assert_eq!(log.branch(main).expect("main").tip.head, Head::EMPTY, "the engine decides");
    let delivery = claim.inbox.blocking_recv().expect("the first offer was delivered");
    let mut drafts = delivery.offer.drafts;
    drafts[0].taken = 5;
    let appended = append_under(log, main, &claim, &drafts);
    delivery.answer.send(appended).expect("somebody waits");
    let delivery = claim.inbox.blocking_recv().expect("the second offer was delivered");
    assert_eq!(delivery.offer.expected, expected);
    let (branch, actual) = (main, Head::of_count(1));
    let moved = AppendError::TailMoved { branch, expected: Head::of_count(8), actual };
    delivery.answer.send(Err(moved)).expect("somebody waits");
    let landed = first.wait().expect("an answer").expect("it landed");
    assert_eq!(landed.head, Head::of_count(1));
    let refused = second.wait().expect("an answer");
    assert!(matches!(refused, Err(AppendError::TailMoved { .. })), "{refused:?}");
    let event = log::read_one(log, main, log::Offset::ZERO).expect("the event");
    assert_eq!(event.taken(), 5, "the engine stamps what was taken");
}

pub(super) fn offers_land_directly_where_no_engine_runs(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let mut last = numbered(0);
    last.taken = 42;
    append_here(log, main, &[last]);
    let offer = |n, expected| {
        // An owner may hear of the end of a guest's claim only after the next offer, which then
        // nobody answers.
        std::iter::repeat_with(|| Offer { drafts: vec![numbered(n)], expected })
            .find_map(|offer| log.offer(main, offer).wait())
            .expect("the log answers in the end")
    };
    offer(1, None).expect("it lands at the head");
    offer(2, Some(Head::of_count(2))).expect("that is the head");
    let refused = offer(9, Some(Head::of_count(2)));
    assert!(matches!(refused, Err(AppendError::TailMoved { .. })), "{refused:?}");
    let claim = log.claim(main, "engine").expect("nobody has it");
    drop(claim);
    offer(3, None).expect("the engine is gone, its epoch does not bind offers");
    assert_eq!(numbers(log, main), [0, 1, 2, 3]);
    let event = log::read_one(log, main, log::Offset::new(3)).expect("the event");
    assert_eq!(event.taken(), 42, "nothing was taken in between");
    let missing = log.offer(BranchId::new(5), Offer { drafts: vec![numbered(1)], expected: None });
    let missing = missing.wait().expect("the log answers");
    assert!(matches!(missing, Err(AppendError::Log(LogError::NoBranch { .. }))), "{missing:?}");
}
