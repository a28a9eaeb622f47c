//! What several chapters need: events in few words, and stores that clean up after themselves.

use log::{
    Append, AppendError, Appended, Batch, BranchId, BranchName, Derivation, Draft, Epoch, Head,
    Log, LogId, Offset,
};
use serde_json::{Value, json};

pub(crate) mod disk;
pub(crate) mod effects;
pub(crate) mod flock;
pub(crate) mod ledger;
pub(crate) mod random;
pub(crate) mod workload;

/// The id of the stores that tests make.
pub(crate) const STORE: LogId = LogId::from_bytes(*b"starling test id");

pub(crate) fn name(text: &str) -> BranchName {
    text.parse().expect("a test names its branches well")
}

/// A draft whose id is derived from `n`.
pub(crate) fn draft(n: u64, payload: &Value) -> Draft {
    let id = Derivation::new().text("test").integer(n).finish();
    let mut draft = Draft::new(id, "test.happened", "user:ann");
    draft.payload = payload.as_object().expect("a payload is an object").clone();
    draft
}

/// `{"n": n}`
pub(crate) fn numbered(n: u64) -> Draft {
    draft(n, &json!({"n": n}))
}

pub(crate) fn numbered_range(range: std::ops::Range<u64>) -> Vec<Draft> {
    range.map(numbered).collect()
}

pub(crate) fn append_of(branch: BranchId, expected: Head, drafts: &[Draft]) -> Append {
    let batch = Batch::of_drafts(expected.next(), drafts).expect("a test's drafts are in order");
    Append { branch, batch, expected, epoch: Epoch::UNCLAIMED }
}

/// Appends at `expected` on a branch that nobody has claimed.
pub(crate) fn append(
    log: &dyn Log,
    branch: BranchId,
    expected: Head,
    drafts: &[Draft],
) -> Result<Appended, AppendError> {
    let pending = log.submit(append_of(branch, expected, drafts));
    pending.wait().expect("the log answers")
}

/// Appends at the head, which must work. Gives the head after it.
pub(crate) fn append_here(log: &dyn Log, branch: BranchId, drafts: &[Draft]) -> Head {
    let head = log.branch(branch).expect("the branch is there").tip.head;
    append(log, branch, head, drafts).expect("nobody else appends").head
}

/// The `n` of each event of a branch, which must be whole and in order.
pub(crate) fn numbers(log: &dyn Log, branch: BranchId) -> Vec<u64> {
    let events = log::read_all(log, branch).expect("the branch can be read");
    let events: Result<Vec<_>, _> = events.collect();
    let events = events.expect("no event is damaged");
    for (place, event) in events.iter().enumerate() {
        assert_eq!(event.offset(), Offset::new(place as u64), "offsets are dense");
    }
    let number = |event: &log::Event| {
        let n = event.payload().get("n").and_then(log::ValueRef::as_i64);
        u64::try_from(n.expect("the event has a number")).expect("the number is small")
    };
    events.iter().map(number).collect()
}

/// Whether the long forms of the tests are asked for, as `tests/run long` does.
pub(crate) fn long() -> bool {
    std::env::var_os("STARLING_LONG").is_some()
}

/// The seeds below `end`, or the one that `STARLING_SEED` asks for.
pub(crate) fn seeds(end: u64) -> std::ops::Range<u64> {
    match std::env::var("STARLING_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("STARLING_SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..end,
    }
}
