//! Durable appends at the end of a log of some size: batches of 1 to 10,000 events, one appender and
//! sixteen.

use std::time::Instant;

use crate::events::Pool;
use crate::peers::{Peer, RedbRows, Sqlite, Starling};
use crate::per_second;

/// How many batches of a size one appender writes while the clock runs.
const BATCHES: [(usize, u64); 4] = [(1, 100), (100, 60), (1_000, 60), (10_000, 12)];
const APPENDERS: usize = 16;

/// Prints the table for logs that hold `size` events already.
pub(crate) fn print(pool: &Pool, size: u64) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = |name: &str| folder.path().join(name);
    let starling = Starling::create(&path("starling"), APPENDERS);
    let one_phase = RedbRows::create(&path("redb1"), false);
    let two_phases = RedbRows::create(&path("redb2"), true);
    let sqlite = Sqlite::create(&path("sqlite"));
    let peers: [&dyn Peer; 4] = [&starling, &one_phase, &two_phases, &sqlite];
    peers.iter().for_each(|peer| fill(*peer, pool, size));

    println!(
        "| durable append, events/s | log | redb rows | rows, two phases | SQLite | log / rows |"
    );
    println!("|---|---|---|---|---|---|");
    for (events, batches) in BATCHES {
        let rates = peers.map(|peer| best(|| one(peer, pool, events, batches)));
        row(&format!("batches of {events}, one appender, waiting"), rates);
        let ahead = best(|| ahead(&starling, pool, events, batches));
        row(
            &format!("batches of {events}, one appender, 64 ahead"),
            [ahead, rates[1], rates[2], rates[3]],
        );
        let each = (batches / 8).max(4);
        let rates = peers.map(|peer| best(|| sixteen(peer, pool, events, each)));
        row(&format!("batches of {events}, 16 appenders, waiting"), rates);
    }
}

fn row(name: &str, rates: [f64; 4]) {
    let [log, one_phase, two_phases, sqlite] = rates.map(per_second);
    let ratio = rates[0] / rates[2];
    println!("| {name} | {log} | {one_phase} | {two_phases} | {sqlite} | {ratio:.1} |");
}

/// The machine is shared, so the best of three counts.
fn best(measure: impl Fn() -> f64) -> f64 {
    (0..3).map(|_| measure()).fold(0.0, f64::max)
}

fn fill(peer: &dyn Peer, pool: &Pool, size: u64) {
    let batch = size.min(10_000);
    let mut batches = (0..size / batch).map(|n| pool.batch(n * batch, batch as usize));
    peer.append_all(0, &mut batches);
}

fn one(peer: &dyn Peer, pool: &Pool, events: usize, batches: u64) -> f64 {
    let start = Instant::now();
    for n in 0..batches {
        peer.append(0, pool.batch(n * events as u64, events));
    }
    (batches * events as u64) as f64 / start.elapsed().as_secs_f64()
}

fn ahead(peer: &dyn Peer, pool: &Pool, events: usize, batches: u64) -> f64 {
    let batches = 4 * batches;
    let start = Instant::now();
    peer.append_all(0, &mut (0..batches).map(|n| pool.batch(n * events as u64, events)));
    (batches * events as u64) as f64 / start.elapsed().as_secs_f64()
}

fn sixteen(peer: &dyn Peer, pool: &Pool, events: usize, each: u64) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for appender in 0..APPENDERS {
            scope.spawn(move || {
                for n in 0..each {
                    peer.append(appender, pool.batch(n * events as u64, events));
                }
            });
        }
    });
    (each * (APPENDERS * events) as u64) as f64 / start.elapsed().as_secs_f64()
}
