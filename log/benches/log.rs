//! How fast the log is, beside plain redb rows and SQLite on the same disk in the same run.
//!
//! `cargo bench -p starling-log` prints the tables for logs of 1,000 to 1,000,000 events, and
//! `cargo bench -p starling-log -- 10000` that for 10,000 alone. All appends are durable. The
//! disk's own speed is printed first, because most of an append is waiting for it. Where a figure
//! is given by processor time, too, that is the one that other programs disturb least.

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
    println!("encode and hash, one thread: {}", pool.encode_rate());
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

/// How long this thread was on a processor, which other programs' work does not lengthen much.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// How long all threads of this process were on processors, those that have ended included.
fn process_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// The best rate of some runs, by the clock and by the time on the processor.
fn best_rate(runs: usize, events: u64, run: impl Fn()) -> String {
    let (mut clock, mut processor) = (0.0f64, 0.0f64);
    for _ in 0..runs {
        let (start, on_processor) = (Instant::now(), thread_time());
        run();
        clock = clock.max(events as f64 / start.elapsed().as_secs_f64());
        let time = thread_time().saturating_sub(on_processor).as_secs_f64();
        processor = processor.max(events as f64 / time.max(1e-9));
    }
    let (clock, processor) = (per_second(clock), per_second(processor));
    format!("{clock} events/s, {processor} per second of processor time")
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
