//! A full disk: reads go on, writes are refused by name, and work again once there is space.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use log::{AppendError, BranchId, Draft, Head, Log, LogError, RedbLog};
use serde_json::json;

use crate::support::random::Random;
use crate::support::{STORE, append, append_here, draft, name, numbers};

/// Names the small disk, in the process that has it.
const DISK: &str = "STARLING_TEST_SMALL_DISK";
const TEST: &str = "space::a_full_disk_refuses_writes_and_nothing_else";
const SAID: &str = "the disk was full, and is not any more";

/// Events that do not compress, in batches of about 64 KiB.
fn batch(head: Head) -> Vec<Draft> {
    let first = head.count();
    let event = |n| draft(n, &json!({"n": n, "text": Random::new(n).text(4000)}));
    (first..first + 16).map(event).collect()
}

/// Appends until there is no space. Gives the head.
fn fill(log: &dyn Log, main: BranchId) -> Head {
    loop {
        let head = log.branch(main).expect("reads go on").tip.head;
        match append(log, main, head, &batch(head)) {
            Ok(_) => {}
            Err(AppendError::Log(error @ LogError::Full { .. })) => {
                let text = error.to_string();
                assert!(text.contains("nothing was written, so free some space"), "{text}");
                return head;
            }
            Err(other) => panic!("a full disk is named otherwise: {other}"),
        }
    }
}

fn check(log: &dyn Log, main: BranchId, head: Head) {
    assert_eq!(numbers(log, main), (0..head.count()).collect::<Vec<_>>());
    log::verify(log, main).expect("the chain holds");
}

/// Takes all that is left of the disk.
fn take_the_rest(path: &Path) {
    let mut file = File::create(path).expect("a file takes no space");
    let mut bytes = 1 << 16;
    while bytes > 0 {
        if file.write_all(&vec![1; bytes]).is_err() {
            bytes /= 2;
        }
    }
}

fn on_a_small_disk(disk: &Path) {
    let (path, rest) = (disk.join("store.log"), disk.join("rest"));
    let ballast = [disk.join("ballast"), disk.join("more ballast")];
    for ballast in &ballast {
        fs::write(ballast, vec![1; 2 << 20]).expect("there is space");
    }
    let log = RedbLog::create(&path, STORE).expect("there is space");
    let main = log.create(&name("main")).expect("there is space").id;
    let full = fill(&log, main);
    assert!(full > Head::of_count(16), "some of it landed");
    check(&log, main, full);
    assert_eq!(fill(&log, main), full, "it stays full");

    // The log has not stopped: once there is space, it goes on.
    fs::remove_file(&ballast[0]).expect("ballast is dropped");
    append_here(&log, main, &batch(full));
    let fuller = fill(&log, main);
    check(&log, main, fuller);

    // Not a byte is left, and the process starts anew.
    take_the_rest(&rest);
    drop(log);
    let log = RedbLog::open(&path).expect("a store opens on a disk that is full");
    check(&log, main, fuller);
    let refused = append(&log, main, fuller, &batch(fuller));
    assert!(matches!(refused, Err(AppendError::Log(LogError::Full { .. }))), "{refused:?}");
    check(&log, main, fuller);
    fs::remove_file(&ballast[1]).expect("ballast is dropped");
    append_here(&log, main, &batch(fuller));
    let again = fill(&log, main);
    check(&log, main, again);
    log.close().expect("the store closes");
    println!("{SAID}");
}

/// Where a small disk cannot be mounted, this only says so: it takes the right to make a namespace.
#[test]
fn a_full_disk_refuses_writes_and_nothing_else() {
    if let Some(disk) = std::env::var_os(DISK) {
        return on_a_small_disk(Path::new(&disk));
    }
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let program = std::env::current_exe().expect("this test is a program");
    let script = r#"mount -t tmpfs -o size=10m tmpfs "$1" || exit 77
        exec "$2" "$3" --exact --nocapture"#;
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(folder.path())
        .arg(program)
        .arg(TEST)
        .env(DISK, folder.path())
        .output();
    let Ok(output) = output else {
        println!("there is no `unshare` here, so no small disk was filled");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let refused = output.status.code() == Some(77) || text.contains("unshare: ");
    if refused {
        println!("no small disk can be mounted here, so none was filled: {text}");
        return;
    }
    assert!(output.status.success() && text.contains(SAID), "{text}");
}
