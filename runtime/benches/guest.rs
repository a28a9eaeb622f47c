//! What it costs to be a guest: the same calls by the owner of a store and by its guest, on one
//! disk in one run. `cargo bench -p starling-runtime` prints the table.

use std::time::{Duration, Instant};

use log::{
    Append, Batch, BranchId, BranchName, Derivation, Draft, Epoch, Head, Log, Missing, Offset,
    Pending, Store,
};
use serde_json::json;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("bench.redb");
    let owner = Store::open(&path, Missing::Create, "the owner").expect("a store is made");
    let guest = Store::open(&path, Missing::Refuse, "the guest").expect("the owner listens");
    assert!(owner.owner().is_none() && guest.owner().is_some(), "one owns, one is a guest");
    println!("\n| | owner | guest |\n|---|---|---|");
    let both = [&*owner, &*guest];
    row("the head of a branch, µs (p50, p99)", both.map(asking));
    row("one event, waiting, ms (p50, p99)", both.map(|log| waiting(log, 1, 300)));
    row("one event, 256 ahead, events/s", both.map(|log| ahead(log, 1, 4_000, 256)));
    row("1,000 events, waiting, ms (p50, p99)", both.map(|log| waiting(log, 1_000, 60)));
    row("1,000 events, 16 ahead, events/s", both.map(|log| ahead(log, 1_000, 200, 16)));
    row("reading and checking, events/s", both.map(reading));
}

fn row(name: &str, [owner, guest]: [String; 2]) {
    println!("| {name} | {owner} | {guest} |");
}

fn branch(log: &Store) -> BranchId {
    let name: BranchName = format!("b{}", log.branches().expect("the log answers").len())
        .parse()
        .expect("a good name");
    log.create(&name).expect("the name is free").id
}

fn append(branch: BranchId, nth: u64, events: u64) -> Append {
    let expected = Head::of_count(nth * events);
    let draft = |n: u64| {
        let id = Derivation::new().text("bench").integer(n).finish();
        let mut draft = Draft::new(id, "ant.moved", "behavior:walk@9f2c41d0");
        let payload =
            json!({"ant": format!("ant-{}", n % 97), "x": n % 31, "y": 0.25, "load": true});
        draft.payload = payload.as_object().expect("an object").clone();
        draft
    };
    let first = expected.next().get();
    let drafts: Vec<Draft> = (first..first + events).map(draft).collect();
    let batch = Batch::of_drafts(expected.next(), &drafts).expect("good drafts");
    Append { branch, batch, expected, epoch: Epoch::UNCLAIMED }
}

fn spread(mut times: Vec<Duration>, unit: f64) -> String {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * unit;
    format!("{:.2}, {:.2}", at(50), at(99))
}

fn asking(log: &Store) -> String {
    let branch = branch(log);
    let times = (0..5_000).map(|_| {
        let start = Instant::now();
        log.branch(branch).expect("the log answers");
        start.elapsed()
    });
    spread(times.collect(), 1e6)
}

fn waiting(log: &Store, events: u64, batches: u64) -> String {
    let branch = branch(log);
    let times = (0..batches).map(|nth| {
        let append = append(branch, nth, events);
        let start = Instant::now();
        finish(log.submit(append));
        start.elapsed()
    });
    spread(times.collect(), 1e3)
}

fn finish(pending: Pending<Result<log::Appended, log::AppendError>>) {
    pending.wait().expect("the log answers").expect("nobody else appends");
}

fn ahead(log: &Store, events: u64, batches: u64, ahead: usize) -> String {
    let branch = branch(log);
    let appends: Vec<_> = (0..batches).map(|nth| append(branch, nth, events)).collect();
    let start = Instant::now();
    let mut waiting = std::collections::VecDeque::new();
    for append in appends {
        if waiting.len() == ahead {
            finish(waiting.pop_front().expect("some are waiting"));
        }
        waiting.push_back(log.submit(append));
    }
    waiting.into_iter().for_each(finish);
    format!("{:.0}", (events * batches) as f64 / start.elapsed().as_secs_f64())
}

fn reading(log: &Store) -> String {
    let branches = log.branches().expect("the log answers");
    let longest = branches.iter().max_by_key(|branch| branch.tip.head).expect("there are some");
    let start = Instant::now();
    let events = log::read(log, longest.id, Offset::ZERO..longest.tip.head.next());
    let events = events.expect("the log answers");
    let count = events.inspect(|event| assert!(event.is_ok(), "it is whole")).count();
    format!("{:.0}", count as f64 / start.elapsed().as_secs_f64())
}
