//! What going back in time costs: forks of a long log, and promotions into a large world, on one
//! disk in one run. `cargo bench -p starling-runtime --bench time` prints the table;
//! `STARLING_LONG=1` makes the log ten times as long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use log::{
    Append, Batch, Branch, BranchName, Change, Derivation, Draft, Epoch, Event, Head, Log, LogId,
    MemoryLog, Missing, Offset, Store, Time, WriteOp,
};
use projection::{Graph, Wanted, merge};
use runtime::{Changes, Engine, Land, Library, Promotion, Snapshots, Start, start_branch};
use serde_json::json;

fn main() {
    println!("\n| work | figure |\n|---|---|");
    let long = std::env::var_os("STARLING_LONG").is_some();
    let lengths: &[u64] =
        if long { &[10_000, 1_000_000, 10_000_000] } else { &[10_000, 1_000_000] };
    for events in lengths {
        forks(*events);
    }
    depth();
    for elements in [10_000, 1_000_000] {
        merging(elements);
    }
    promoting(200_000);
}

fn row(name: &str, figure: &str) {
    println!("| {name} | {figure} |");
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e6;
    format!("{:.0} µs, {:.0} µs", at(50), at(99))
}

fn named(name: &str) -> BranchName {
    name.parse().expect("a good name")
}

fn draft(nth: u64) -> Draft {
    let id = Derivation::new().text("bench").integer(nth).finish();
    let mut draft = Draft::new(id, "ant.moved", "user:bench");
    let payload = json!({"ant": format!("ant-{}", nth % 97), "x": nth % 31});
    draft.payload = payload.as_object().expect("an object").clone();
    draft
}

/// Forks at offsets all over a log on disk: one record each, however long it is.
fn forks(events: u64) {
    const AT_ONCE: u64 = 2_000;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("bench.redb");
    let store = Store::open(&path, Missing::Create, "the bench").expect("a store is made");
    let main = store.create(&BranchName::main()).expect("it is the first").id;
    for first in (0..events).step_by(AT_ONCE as usize) {
        let drafts: Vec<Draft> = (first..first + AT_ONCE).map(draft).collect();
        let batch = Batch::of_drafts(Offset::new(first), &drafts).expect("good drafts");
        let (expected, epoch) = (Head::of_count(first), Epoch::UNCLAIMED);
        let pending = store.submit(Append { branch: main, batch, expected, epoch });
        pending.wait().expect("the log answers").expect("nobody else appends");
    }
    let log: Arc<dyn Log> = Arc::clone(&store) as Arc<dyn Log>;
    let parent = log.branch(main).expect("it is there");
    let nothing = Changes::default();
    let times = (0..200u64).map(|nth| {
        let cut = Head::of_count(1 + nth.wrapping_mul(0x9e37_79b9_7f4a_7c15) % events);
        let name = named(&format!("fork-{nth}"));
        let start = Instant::now();
        let fork = nothing.prepare(&*log, &Snapshots::none(), (&parent, cut));
        let made = fork.expect("nothing is changed").fork(&log, &name, ("", "bench"));
        let took = start.elapsed();
        assert_eq!(made.expect("it is made").0.tip.head, cut);
        took
    });
    row(
        &format!("a fork anywhere in {events} events on disk (p50, p99)"),
        &spread(times.collect()),
    );
}

/// Reading through a hundred forks of forks.
fn depth() {
    let log = MemoryLog::new(LogId::ZERO);
    let mut at = log.create(&BranchName::main()).expect("it is the first").id;
    for nth in 0..100u64 {
        let batch = Batch::of_drafts(Offset::new(nth), &[draft(nth)]).expect("good drafts");
        let (expected, epoch) = (Head::of_count(nth), Epoch::UNCLAIMED);
        let pending = log.submit(Append { branch: at, batch, expected, epoch });
        pending.wait().expect("the log answers").expect("nobody else appends");
        let cut = Head::of_count(nth + 1);
        at = log.fork(at, cut, &named(&format!("deep-{nth}")), "").expect("it is made").id;
    }
    let times = (0..200).map(|_| {
        let start = Instant::now();
        assert_eq!(log::read_all(&log, at).expect("it reads").count(), 100);
        start.elapsed()
    });
    row("reading 100 events through 100 forks (p50, p99)", &spread(times.collect()));
}

fn node(nth: u64) -> Change {
    let properties = json!({"n": nth, "name": format!("thing {nth}")});
    let properties = properties.as_object().expect("an object").clone();
    Change::Create { id: Some(format!("t{nth}").into()), type_name: "Thing".into(), properties }
}

fn writes(from: u64, count: u64, value: u64) -> Vec<Change> {
    let write = |nth: u64| {
        let properties = json!({"n": value}).as_object().expect("an object").clone();
        let id = format!("t{}", from + nth * 7).into();
        Change::Write { op: WriteOp::Set, id, properties, if_version: None }
    };
    (0..count).map(write).collect()
}

fn apply(graph: &mut Graph, changes: Vec<Change>) {
    let offset = graph.head().next();
    let draft = Draft { changes, ..draft(offset.get()) };
    let (event, _) = Event::encode(&draft, offset).expect("a good draft");
    graph.apply(&event).expect("it applies");
}

/// The three-way merge itself: the worlds are at hand.
fn merging(elements: u64) {
    let mut base = Graph::new();
    for first in (0..elements).step_by(1000) {
        apply(&mut base, (first..first + 1000).map(node).collect());
    }
    let _ = base.state_hash();
    let times = (0..100).map(|nth| {
        let (mut ours, mut theirs) = (base.clone(), base.clone());
        apply(&mut ours, writes(1, 10, nth));
        apply(&mut theirs, writes(elements / 2, 10, nth + 1_000_000_000));
        let start = Instant::now();
        let none = std::collections::BTreeSet::new();
        let wanted = Wanted { merges: &|_| true, by_version: &none };
        let merged = merge(&base, &ours, &theirs, wanted);
        let took = start.elapsed();
        assert_eq!((merged.changes.len(), merged.conflicts.len()), (10, 0));
        took
    });
    row(
        &format!("merging 10 changes among {elements} elements (p50, p99)"),
        &spread(times.collect()),
    );
}

/// The whole of a promotion: three worlds are folded, compared, and a batch lands.
fn promoting(elements: u64) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("bench.redb");
    let store = Store::open(&path, Missing::Create, "the bench").expect("a store is made");
    let log: Arc<dyn Log> = Arc::clone(&store) as Arc<dyn Log>;
    let flock = json!({"name": "bench", "seed": 0, "schedule": "fifo"});
    let flock = flock.as_object().expect("an object").clone();
    let start = Start { flock, ..Start::default() };
    let main = start_branch(&log, &BranchName::main(), &start, "bench").expect("it starts").id;
    let say = |branch: &Branch, nth: u64, all: Vec<Vec<Change>>| {
        let snapshots = Snapshots::beside(&path);
        let library = Library::new();
        let engine = Engine::open_with(Arc::clone(&log), branch.id, library, "bench", snapshots);
        let mut engine = engine.expect("it opens");
        for (part, changes) in (0..).zip(all) {
            let draft = Draft { changes, ..draft(nth * 1_000_000 + part) };
            engine.outside(draft).expect("it lands");
        }
        engine.commit().expect("it is durable");
    };
    let branch = |id| log.branch(id).expect("it is there");
    let worlds = (0..elements).step_by(40).map(|first| (first..first + 40).map(node).collect());
    say(&branch(main), 1, worlds.collect());
    let head = branch(main).tip.head;
    let child = log.fork(main, head, &named("idea"), "").expect("it is made").id;
    say(&branch(child), 2, vec![writes(5, 10, 77)]);
    let (from, into) = (branch(child), branch(main));
    let now = Time::EPOCH;
    let asked = Promotion { from: &from, into: &into, only: None, who: "user:bench", now };
    let start = Instant::now();
    let done = asked.run(&log, &Snapshots::beside(&path), (Land::Now, "bench"));
    let took = start.elapsed();
    assert_eq!(done.expect("nothing conflicts").changes, 10);
    let figure = format!("{:.0} ms", took.as_secs_f64() * 1e3);
    row(&format!("promoting 10 changes in a world of {elements}, read from a snapshot"), &figure);
}
