//! Failing disks: every single operation of a small history fails once or for ever, in every way.

use log::{Log, RedbLog};

use crate::support::STORE;
use crate::support::disk::{Disk, Fault, Kind, Operation};
use crate::support::ledger::Ledger;
use crate::support::random::Random;
use crate::support::workload::{Ended, User};

const SEED: u64 = 11;

/// What happens after the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// The log is opened again over what the system still has in memory; later the power goes.
    Reopened,
    PowerLost,
}

/// Makes a store, uses it, closes it, and does that again with the same store.
fn history(disk: &Disk, ledger: &mut Ledger, made: &mut bool) -> Result<(), Ended> {
    let random = &mut Random::new(SEED);
    for steps in [9, 5] {
        let opened = if *made {
            RedbLog::open_backend(disk.clone())
        } else {
            RedbLog::create_backend(disk.clone(), STORE)
        };
        let log = &opened?;
        *made = true;
        let mut user = User { log, disk, ledger: &mut *ledger, random };
        user.look_back()?;
        user.work(steps)?;
        log.close()?;
    }
    Ok(())
}

/// Has one operation fail. Gives whether it came to that, and whether anybody was told.
fn fail(fault: Fault, after: After) -> (bool, bool) {
    let disk = Disk::new(512);
    let (mut ledger, mut made) = (Ledger::default(), false);
    disk.fail(fault);
    let ended = history(&disk, &mut ledger, &mut made);
    let struck = disk.struck();
    assert!(struck || ended.is_ok(), "{ended:?}");
    disk.heal();
    if !made {
        return (struck, ended.is_err());
    }
    let random = &mut Random::new(fault.at);
    let mut disk = if after == After::Reopened { disk } else { disk.lose_power(random) };
    for steps in [3, 0] {
        let opened = RedbLog::open_backend(disk.clone());
        let log = &opened.expect("a store with acknowledged events opens again");
        let mut user = User { log, disk: &disk, ledger: &mut ledger, random };
        user.look_back().expect("the disk is well");
        user.work(steps).expect("the disk is well");
        // Not closed: what was acknowledged is on the disk.
        disk = disk.lose_power(random);
    }
    (struck, ended.is_err())
}

/// An append whose outcome is unknown stops the log; after reopening, `find_batch` tells what
/// became of it; nothing acknowledged is lost, and no batch is there in part.
#[test]
fn every_operation_fails_in_every_way() {
    let disk = Disk::new(512);
    disk.fail(Fault { at: u64::MAX, kind: Kind::Broken, lasting: false });
    history(&disk, &mut Ledger::default(), &mut false).expect("the disk is well");
    let operations = disk.history();
    assert!(operations.contains(&Operation::Read) && operations.contains(&Operation::SetLength));
    let (mut cases, mut told) = (0, 0);
    for (at, operation) in operations.iter().enumerate() {
        for kind in [Kind::Broken, Kind::Full, Kind::Short] {
            for lasting in [false, true] {
                for after in [After::Reopened, After::PowerLost] {
                    if !kind.strikes(*operation) {
                        continue;
                    }
                    let fault = Fault { at: at as u64, kind, lasting };
                    let run = std::panic::catch_unwind(|| fail(fault, after));
                    let run = run.unwrap_or_else(|_| panic!("{operation:?}, {fault:?}, {after:?}"));
                    assert!(run.0, "{fault:?} comes");
                    cases += 1;
                    told += u64::from(run.1);
                }
            }
        }
    }
    println!("{} operations, {cases} cases, {told} told the caller", operations.len());
    assert!(told > cases / 2, "{told} of {cases}");
}
