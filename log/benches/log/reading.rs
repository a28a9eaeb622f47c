//! Reading, opening, forking and following a log of some size.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use log::{Head, Log, Offset, RedbLog, read_all, tail};
use tokio_stream::StreamExt;

use crate::events::Pool;
use crate::peers::{Peer, Starling};
use crate::{best_rate, spread, thread_time};

/// Prints the table for a log of `size` events.
pub(crate) fn print(pool: &Pool, size: u64) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("starling");
    let starling = Starling::create(&path, 1);
    let batch = size.min(1_000);
    let mut batches = (0..size / batch).map(|n| pool.batch(n * batch, batch as usize));
    starling.append_all(0, &mut batches);
    let branch = starling.branch();
    assert_eq!(branch.tip.head, Head::of_count(size), "all of it was written");

    println!("\n| of a log of {size} events in batches of {batch} | |\n|---|---|");
    let stored = stored_bytes(&starling.log, &branch);
    let crashed = folder.path().join("crashed");
    fs::copy(&path, &crashed).expect("the file is copied as a crash would leave it");
    let line = |name: &str, value: String| println!("| {name} | {value} |");
    line("scan of the stored blocks", rate(size, || scan(&starling.log, &branch)));
    line("scan and decode", rate(size, || decode(&starling.log, &branch)));
    line("scan, decode and check the chain", rate(size, || read(&starling.log, &branch)));
    line("fork at the middle, durable", fork(&starling.log, &branch, size, &path));
    line("append of one event until a tail has it", follow(&starling, pool));
    starling.log.close().expect("the store closes");
    line("open after a clean close", open(&path));
    line("open after a crash, checked", open_crashed(&crashed));
    let each = |bytes: u64| format!("{:.1} bytes", bytes as f64 / size as f64);
    line("blocks per event", each(stored));
    let blocks = fs::metadata(&path).expect("the file").blocks();
    line("disk per event, once closed", each(blocks * 512));
}

fn rate(size: u64, read: impl Fn() -> u64) -> String {
    best_rate(5, size, || assert_eq!(read(), size, "every event is read"))
}

/// Gives each fetch of blocks to `each`.
fn fetch(log: &RedbLog, branch: &log::Branch, mut each: impl FnMut(Vec<log::Block>)) -> u64 {
    let mut at = Offset::ZERO;
    while at < branch.tip.head.next() {
        let blocks = log.blocks(branch.id, at, 1 << 18).expect("the blocks are whole");
        at = blocks.last().expect("there are more").head().next();
        each(blocks);
    }
    at.get()
}

fn scan(log: &RedbLog, branch: &log::Branch) -> u64 {
    fetch(log, branch, |blocks| drop(std::hint::black_box(blocks)))
}

fn stored_bytes(log: &RedbLog, branch: &log::Branch) -> u64 {
    let mut bytes = 0;
    fetch(log, branch, |blocks| {
        bytes += blocks.iter().map(|block| block.bytes().len() as u64).sum::<u64>();
    });
    bytes
}

fn decode(log: &RedbLog, branch: &log::Branch) -> u64 {
    let mut events = 0;
    fetch(log, branch, |blocks| {
        for block in blocks {
            let decoded = block.events().expect("the events are whole");
            events += std::hint::black_box(&decoded).len() as u64;
        }
    });
    events
}

fn read(log: &RedbLog, branch: &log::Branch) -> u64 {
    let events = read_all(log, branch.id).expect("the branch is there");
    let mut count = 0;
    for event in events {
        std::hint::black_box(event.expect("it is whole"));
        count += 1;
    }
    count
}

fn fork(log: &RedbLog, branch: &log::Branch, size: u64, path: &Path) -> String {
    let before = fs::metadata(path).expect("the file").len();
    let mut times: Vec<Duration> = (0..50)
        .map(|n| {
            let name = format!("fork{n}").parse().expect("a branch name");
            let start = Instant::now();
            log.fork(branch.id, Head::of_count(size / 2), &name, "").expect("it is forked");
            start.elapsed()
        })
        .collect();
    let grown = fs::metadata(path).expect("the file").len() - before;
    format!("{}; the file grew by {grown} bytes for 50", spread(&mut times))
}

fn follow(starling: &Starling, pool: &Pool) -> String {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).build().expect("a runtime starts");
    let branch = starling.branch();
    let (log, from) = (Arc::clone(&starling.log), branch.tip.head.next());
    let (sender, arrived) = std::sync::mpsc::channel();
    runtime.spawn(async move {
        let mut events = tail(log, branch.id, from).expect("the branch is there");
        while let Some(event) = events.next().await {
            event.expect("it is whole");
            sender.send(Instant::now()).expect("the bench waits");
        }
    });
    let mut whole = Vec::new();
    let mut after = Vec::new();
    for n in 0..100 {
        let start = Instant::now();
        starling.append(0, pool.batch(n, 1));
        let acknowledged = Instant::now();
        let arrival = arrived.recv().expect("the tail goes on");
        whole.push(arrival - start);
        after.push(arrival.saturating_duration_since(acknowledged));
    }
    runtime.shutdown_background();
    format!("{}; after the acknowledgement {}", spread(&mut whole), spread(&mut after))
}

/// Opens a store, which only this thread does.
fn open_once(path: &Path) -> (Duration, Duration, RedbLog) {
    let (start, on_processor) = (Instant::now(), thread_time());
    let log = RedbLog::open(path).expect("the store opens");
    (start.elapsed(), thread_time() - on_processor, log)
}

fn shortest(times: impl Iterator<Item = (Duration, Duration)>) -> String {
    let (clock, processor): (Vec<_>, Vec<_>) = times.unzip();
    let shortest = |times: Vec<Duration>| {
        times.into_iter().min().expect("there were some").as_secs_f64() * 1e3
    };
    let (clock, processor) = (shortest(clock), shortest(processor));
    format!("{clock:.1} ms, {processor:.1} ms of processor time")
}

fn open(path: &Path) -> String {
    shortest((0..7).map(|_| {
        let (clock, processor, log) = open_once(path);
        log.close().expect("the store closes");
        (clock, processor)
    }))
}

fn open_crashed(crashed: &Path) -> String {
    shortest((0..3).map(|n| {
        let path = crashed.with_extension(n.to_string());
        fs::copy(crashed, &path).expect("the file is copied");
        let (clock, processor, log) = open_once(&path);
        drop(log);
        fs::remove_file(&path).expect("the copy goes");
        (clock, processor)
    }))
}
