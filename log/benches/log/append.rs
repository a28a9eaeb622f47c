//! Durable appends at the end of a log of some size: batches of 1 to 10,000 events, one appender and
//! sixteen.

use std::time::Instant;

use crate::events::Pool;
use crate::peers::{Peer, RedbRows, Sqlite, Starling};
use crate::per_second;

/// How many batches of a size one appender writes while the clock runs.
const BATCHES: [(usize, u64); 4] = [(1, 40), (100, 40), (1_000, 40), (10_000, 8)];
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
        let rates = best(peers.map(|peer| move || one(peer, pool, events, batches)));
        row(&format!("batches of {events}, one appender, waiting"), rates);
        let [ahead] = best([|| ahead(&starling, pool, events, batches)]);
        let rates = [ahead, rates[1], rates[2], rates[3]];
        row(&format!("batches of {events}, one appender, 64 ahead"), rates);
        let each = (batches / 8).max(4);
        let rates = best(peers.map(|peer| move || sixteen(peer, pool, events, each)));
        row(&format!("batches of {events}, 16 appenders, waiting"), rates);
    }
}

fn row(name: &str, rates: [f64; 4]) {
    let [log, one_phase, two_phases, sqlite] = rates.map(per_second);
    let ratio = rates[0] / rates[2];
    println!("| {name} | {log} | {one_phase} | {two_phases} | {sqlite} | {ratio:.1} |");
}

/// The machine is shared and its disk has moods, so all take turns, and the best of three counts.
fn best<const N: usize>(measures: [impl Fn() -> f64; N]) -> [f64; N] {
    let mut rates = [0.0f64; N];
    for _ in 0..3 {
        for (rate, measure) in rates.iter_mut().zip(&measures) {
            *rate = rate.max(measure());
        }
    }
    rates
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
