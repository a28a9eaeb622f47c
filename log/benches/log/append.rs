//! Durable appends at the end of a log of some size: batches of 1 to 10,000 events, one appender
//! and sixteen.

use std::time::Instant;

use crate::events::Pool;
use crate::peers::{Peer, RedbRows, Sqlite, Starling};
use crate::{per_second, process_time};

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
        "| durable append, events/s (µs of processor time each) | log | redb rows \
         | rows, two phases | SQLite | log / rows, two phases |"
    );
    println!("|---|---|---|---|---|---|");
    for (events, batches) in BATCHES {
        let rates = best(&peers.map(|peer| move || one(peer, pool, events, batches)));
        row(&format!("batches of {events}, one appender, waiting"), rates);
        let [ahead] = best(&[|| ahead(&starling, pool, events, batches)]);
        let rates = [ahead, rates[1], rates[2], rates[3]];
        row(&format!("batches of {events}, one appender, 64 ahead"), rates);
        let each = (batches / 8).max(4);
        let rates = best(&peers.map(|peer| move || sixteen(peer, pool, events, each)));
        row(&format!("batches of {events}, 16 appenders, waiting"), rates);
    }
}

/// Events appended in a second, and the seconds that processors worked for one.
#[derive(Clone, Copy, Default)]
struct Rate {
    per_second: f64,
    processor: f64,
}

fn row(name: &str, rates: [Rate; 4]) {
    let ratio = rates[0].per_second / rates[2].per_second;
    let show =
        |rate: Rate| format!("{} ({:.1})", per_second(rate.per_second), rate.processor * 1e6);
    let [log, one_phase, two_phases, sqlite] = rates.map(show);
    println!("| {name} | {log} | {one_phase} | {two_phases} | {sqlite} | {ratio:.1} |");
}

/// The machine is shared and its disk has moods, so all take turns, and the best of three counts.
/// The processor's clock is coarse, so its time is that of all three. Each measure gives how many
/// events it appended.
fn best<const N: usize>(measures: &[impl Fn() -> u64; N]) -> [Rate; N] {
    let mut rates = [Rate::default(); N];
    for _ in 0..3 {
        for (rate, measure) in rates.iter_mut().zip(measures) {
            let (start, on_processor) = (Instant::now(), process_time());
            let events = measure() as f64;
            rate.per_second = rate.per_second.max(events / start.elapsed().as_secs_f64());
            rate.processor += (process_time() - on_processor).as_secs_f64() / events / 3.0;
        }
    }
    rates
}

fn fill(peer: &dyn Peer, pool: &Pool, size: u64) {
    let batch = size.min(10_000);
    let mut batches = (0..size / batch).map(|n| pool.batch(n * batch, batch as usize));
    peer.append_all(0, &mut batches);
}

fn one(peer: &dyn Peer, pool: &Pool, events: usize, batches: u64) -> u64 {
    for n in 0..batches {
        peer.append(0, pool.batch(n * events as u64, events));
    }
    batches * events as u64
}

fn ahead(peer: &dyn Peer, pool: &Pool, events: usize, batches: u64) -> u64 {
    let batches = 4 * batches;
    peer.append_all(0, &mut (0..batches).map(|n| pool.batch(n * events as u64, events)));
    batches * events as u64
}

fn sixteen(peer: &dyn Peer, pool: &Pool, events: usize, each: u64) -> u64 {
    std::thread::scope(|scope| {
        for appender in 0..APPENDERS {
            scope.spawn(move || {
                for n in 0..each {
                    peer.append(appender, pool.batch(n * events as u64, events));
                }
            });
        }
    });
    each * (APPENDERS * events) as u64
}
