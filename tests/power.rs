//! Losing power: whatever of the last writes reaches the disk, what was acknowledged is there.

use std::panic::catch_unwind;

use log::RedbLog;

use crate::support::disk::Disk;
use crate::support::ledger::Ledger;
use crate::support::random::Random;
use crate::support::workload::{Ended, User};
use crate::support::{STORE, long, seeds};

/// How a run ended, for those who compare two.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    bytes: Vec<u8>,
    events: usize,
    cuts: u64,
}

/// Uses a log that is reopened after each of one to four losses of power.
fn lose_power(seed: u64, lies: bool) -> Run {
    let mut random = Random::new(seed);
    let sector_bytes = random.pick(&[512, 4096]);
    let new_disk = || {
        let disk = Disk::new(sector_bytes);
        if lies {
            disk.lie();
        }
        disk
    };
    let (mut disk, mut ledger) = (new_disk(), Ledger::default());
    let (mut made, mut cuts) = (false, 0);
    for _ in 0..1 + random.below(4) {
        let within = random.pick(&[20, 60, 200, 600]);
        disk.cut_power_at(random.below(within));
        let opened = open(&disk, made);
        let ended = opened.and_then(|log| {
            made = true;
            let steps = 1 + random.below(14);
            let (log, disk) = (&log, &disk);
            let mut user = User { log, disk, ledger: &mut ledger, random: &mut random };
            user.look_back().and_then(|()| user.work(steps))
        });
        if let Err(Ended(what)) = ended {
            assert!(disk.struck(), "it ends before the power is gone: {what}");
            cuts += 1;
        }
        // A creation that died leaves a temporary file, which is never opened.
        disk = if made { disk.lose_power(&mut random) } else { new_disk() };
    }
    for steps in [5, 0] {
        let log = open(&disk, made).expect("the power is back");
        made = true;
        let (log, disk) = (&log, &disk);
        let mut user = User { log, disk, ledger: &mut ledger, random: &mut random };
        user.look_back().expect("the power is on");
        user.work(steps).expect("the power is on");
        user.look_back().expect("the power is on");
        log::Log::close(log).expect("the power is on");
    }
    let events = ledger.lines.iter().map(|line| line.events.len()).sum();
    Run { bytes: disk.live(), events, cuts }
}

fn open(disk: &Disk, made: bool) -> Result<RedbLog, Ended> {
    let disk = disk.clone();
    let opened =
        if made { RedbLog::open_backend(disk) } else { RedbLog::create_backend(disk, STORE) };
    Ok(opened?)
}

/// Also: batches are whole, offsets are dense, every link is the one computed beside the log, keys
/// and batches are found, and forks and epochs are kept.
#[test]
fn what_was_acknowledged_survives_any_loss_of_power() {
    let (mut events, mut cuts) = (0, 0);
    let seeds = seeds(if long() { 10_000 } else { 500 });
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let run = catch_unwind(|| lose_power(seed, false));
        let run = run.unwrap_or_else(|_| panic!("run it alone with STARLING_SEED={seed}"));
        events += run.events;
        cuts += run.cuts;
    }
    println!("{count} seeds, {cuts} losses of power while writing, {events} events compared");
    assert!(count == 1 || cuts > count / 2, "the power goes while it matters: {cuts}");
}

/// A seed that fails can be looked at as often as needed.
#[test]
fn a_seed_runs_the_same_twice() {
    for seed in 0..10 {
        assert!(lose_power(seed, false) == lose_power(seed, false), "seed {seed}");
    }
}

/// No store survives a disk that says it has synced and has not; a test that does not find that out
/// finds nothing.
#[test]
fn a_disk_that_lies_is_found_out() {
    let lost = (0..20).filter(|seed| catch_unwind(|| lose_power(*seed, true)).is_err()).count();
    assert!(lost > 10, "{lost} of 20 runs lost events");
}
