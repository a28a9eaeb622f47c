//! The descendants of this process, found by their parents and ended.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

/// A process as `/proc` tells of it.
struct Member {
    parent: i32,
    name: String,
}

/// Asks every descendant to end. The sandbox's own processes are left out: they end when what they
/// hold has ended, and would kill it at once if they were asked.
pub(super) fn terminate_all() {
    signal_all(Signal::TERM, |member| member.name != "bwrap");
}

/// Kills every descendant. One that is born meanwhile is found by the next call.
pub(super) fn kill_all() {
    signal_all(Signal::KILL, |_| true);
}

fn signal_all(signal: Signal, wanted: impl Fn(&Member) -> bool) {
    let family = family();
    let this = getpid().as_raw_nonzero().get();
    for (number, member) in &family {
        if !wanted(member) || !descends(&family, *number, this) {
            continue;
        }
        let Some(pid) = Pid::from_raw(*number) else { continue };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        // The handle is of whoever has the number now: it must still be the one that was seen.
        if read(*number).is_some_and(|now| now.parent == member.parent || now.parent == this) {
            // Whoever is gone by now needs no signal.
            let _ = pidfd_send_signal(&handle, signal);
        }
    }
}

fn descends(family: &BTreeMap<i32, Member>, number: i32, ancestor: i32) -> bool {
    let mut parent = family.get(&number).map(|member| member.parent);
    // A chain of parents is no longer than there are processes, even if it was read in pieces.
    for _ in 0..family.len() {
        match parent {
            Some(at) if at == ancestor => return true,
            Some(at) => parent = family.get(&at).map(|member| member.parent),
            None => return false,
        }
    }
    false
}

fn family() -> BTreeMap<i32, Member> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter_map(|number| Some((number, read(number)?))).collect()
}

fn read(number: i32) -> Option<Member> {
    let bytes = fs::read(format!("/proc/{number}/stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // The name stands in brackets and may hold any character, brackets too.
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let parent = after.split_whitespace().nth(1)?.parse().ok()?;
    Some(Member { parent, name })
}
