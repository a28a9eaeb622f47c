//! How fast the log is, beside plain redb rows and SQLite on the same disk in the same run.
//!
//! `cargo bench -p starling-log` prints the tables for logs of 1,000 to 1,000,000 events, and
//! `cargo bench -p starling-log -- 10000` that for 10,000 alone. All appends are durable. The disk's
//! own speed is printed first, because most of an append is waiting for it.

#[path = "log/append.rs"]
mod append;
#[path = "log/events.rs"]
mod events;
#[path = "log/peers.rs"]
mod peers;
#[path = "log/reading.rs"]
mod reading;

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

fn main() {
    let asked = std::env::args().filter_map(|argument| argument.parse().ok());
    let mut sizes: Vec<u64> = asked.collect();
    if sizes.is_empty() {
        sizes = vec![1_000, 10_000, 100_000, 1_000_000];
    }
    let pool = events::pool();
    println!("\nevent: {} bytes as stored, {} as JSON", pool.record_bytes, pool.json_bytes);
    print_disk();
    println!("encode: {} events/s on one thread", per_second(pool.encode_rate()));
    for size in sizes {
        println!("\n## a log of {size} events\n");
        append::print(&pool, size);
        reading::print(&pool, size);
    }
}

fn print_disk() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut file = File::create(folder.path().join("sync")).expect("a file can be made");
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            file.write_all(&[7; 4096]).expect("the disk is well");
            let start = Instant::now();
            file.sync_data().expect("the disk is well");
            start.elapsed()
        })
        .collect();
    println!("disk: one fdatasync takes {}", spread(&mut times));
}

/// Median and 99th percentile.
fn spread(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    format!("{:.2} ms (p50), {:.2} ms (p99)", at(50), at(99))
}

fn per_second(rate: f64) -> String {
    match rate {
        0.0..1e4 => format!("{rate:.0}"),
        1e4..1e6 => format!("{:.0} k", rate / 1e3),
        _ => format!("{:.2} M", rate / 1e6),
    }
}
