//! Replay never acts: not when a log holds effects, approvals, reloads, failures and forks.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::sync::Arc;

use effect::Class;
use log::{BranchId, Head, Log, RedbLog};
use runtime::{Library, Snapshots, refire, refire_up_to, start_branch, verify};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use serde_json::json;

use crate::support::effects::{Does, Scripted, World};
use crate::support::flock::{Running, Small};
use crate::support::{STORE, name};

/// A flock with all that a log can hold: an effect that a person approves, one that fails, a
/// behavior that fails, one that is replaced, and a fork that goes on by itself.
fn eventful() -> (Arc<dyn Log>, Vec<BranchId>, Library, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let flock = Small::new("fifo", &json!({}))
        .with(&json!({"name": "ask", "match": "(w:Wish)", "effects": ["*"]}), |firing, out| {
            let wish = firing.element("w")?.id.to_owned();
            out.request("tool:x", json!({"wish": wish}), Some(&wish));
            Ok(())
        })
        .with(&json!({"name": "break_off", "on": "thing.asked"}), |_, _| {
            Err(behaviors::ReactError::new("it always fails"))
        })
        .with(&json!({"name": "count", "on": "thing.asked"}), |firing, out| {
            out.emit("thing.counted", json!({"by": firing.event.kind}));
            Ok(())
        })
        .says("grants", json!({"effects": ["*"], "ask": ["tool:x"]}))
        .begins("wish.made", &json!([{"create": "wish:1", "type": "Wish", "properties": {}}]));
    let path = folder.path().join("s.redb");
    let log: Arc<dyn Log> = Arc::new(RedbLog::create(&path, STORE).unwrap());
    let main = start_branch(&log, &name("main"), &flock.start, "test").unwrap().id;
    let running = Running::open(Arc::clone(&log), main, flock.library);
    let tool = Arc::new(Scripted::new(Class::Keyed, [Does::Succeeds(json!(1)), Does::Fails("no")]));
    let mut world = World::of(running, &[("tool:x", &tool)]);
    world.settle();
    world.says(json!({"say": "approve"})).unwrap();
    world.settle();
    world.running.say("1", "thing.asked", json!({}), &json!([]));
    world.settle();
    world.running.load(&json!({"name": "count", "on": "thing.*"}), |firing, out| {
        if firing.event.kind == "thing.asked" {
            out.emit("thing.counted", json!({"again": true}));
        }
        Ok(())
    });
    world.running.say("2", "thing.asked", json!({}), &json!([]));
    let second = json!([{"create": "wish:2", "type": "Wish", "properties": {}}]);
    world.running.say("3", "wish.made", json!({}), &second);
    world.settle();
    world.says(json!({"say": "approve"})).unwrap();
    world.settle();
    assert_eq!(tool.calls().len(), 2, "{}", world.story());
    let cut = log.branch(main).unwrap().tip.head;
    let fork = log.fork(main, cut, &name("fork"), "").unwrap().id;
    let library = world.running.library();
    let mut forked = Running::open(Arc::clone(&log), fork, library.clone());
    forked.say("4", "thing.asked", json!({}), &json!([]));
    forked.rest();
    drop((world, forked));
    (log, vec![main, fork], library, folder)
}

/// Ends the process on whatever would act: programs, connections, and writing to files.
fn deny() {
    let refused = [
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_socket,
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
        libc::SYS_pwrite64,
        libc::SYS_writev,
        libc::SYS_pwritev,
        libc::SYS_pwritev2,
        libc::SYS_ftruncate,
        libc::SYS_fallocate,
        libc::SYS_unlinkat,
        libc::SYS_renameat2,
        libc::SYS_mkdirat,
        libc::SYS_fsync,
        libc::SYS_fdatasync,
    ];
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        refused.into_iter().map(|call| (call, Vec::new())).collect();
    let rule = |argument, how, value| {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value);
        SeccompRule::new(vec![condition.unwrap()]).unwrap()
    };
    // Only what is told on standard output and standard error is written.
    rules.insert(libc::SYS_write, vec![rule(0, SeccompCmpOp::Gt, 2)]);
    let opens = [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT];
    let opens = opens.map(|flag| {
        let flag = u64::try_from(flag).unwrap();
        rule(2, SeccompCmpOp::MaskedEq(flag), flag)
    });
    rules.insert(libc::SYS_openat, opens.into());
    let target = std::env::consts::ARCH.try_into().unwrap();
    let (other, listed) = (SeccompAction::Allow, SeccompAction::KillProcess);
    let filter = SeccompFilter::new(rules, other, listed, target).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter_all_threads(&program).unwrap();
}

const ROLE: &str = "STARLING_REPLAY_ROLE";

/// This test again, in a process of its own, in a role.
fn again(role: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "replay::replay_asks_nothing_of_the_world", "--nocapture"]);
    command.env(ROLE, role).output().unwrap()
}

/// Tells on standard output, past the test's own capture, and ends.
fn tell_and_end(told: &str) -> ! {
    std::io::stdout().write_all(told.as_bytes()).unwrap();
    std::io::stdout().flush().unwrap();
    std::process::exit(0)
}

/// The strict replay of another system ran its tools again. Here nobody who could act is at hand:
/// `refire` is given a log and code, no executor; and the system would end the process that tries.
#[test]
fn replay_asks_nothing_of_the_world() {
    let role = std::env::var(ROLE).unwrap_or_default();
    if role == "writer" {
        deny();
        std::fs::write(std::env::temp_dir().join("never"), "x").unwrap();
        tell_and_end("it was not stopped");
    }
    if role == "replay" {
        let (log, branches, library, _folder) = eventful();
        deny();
        let mut told = String::new();
        for branch in branches {
            let head = log.branch(branch).unwrap().tip.head;
            let sound = verify(&*log, &Snapshots::none(), branch, head).unwrap();
            let refired = refire(&*log, branch, library.clone()).unwrap();
            assert_eq!(refired.divergences, [], "{branch}");
            assert!(refired.unavailable.is_empty());
            told += &format!("replayed {} {}\n", sound.head.count(), refired.firings);
        }
        tell_and_end(&told);
    }
    let stopped = again("writer");
    assert_eq!(
        stopped.status.signal(),
        Some(libc::SIGSYS),
        "the filter ends who writes: {stopped:?}"
    );
    let done = again("replay");
    let out = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(out.matches("replayed ").count(), 2, "{out}");
}

#[test]
fn a_log_with_all_that_it_can_hold_is_fired_again_and_up_to_any_offset() {
    let (log, branches, library, _folder) = eventful();
    for branch in branches {
        let head = log.branch(branch).unwrap().tip.head;
        let whole = refire(&*log, branch, library.clone()).unwrap();
        assert!(whole.firings >= 5, "{whole:?}");
        for count in 0..=head.count() {
            let cut = Head::of_count(count);
            let refired = refire_up_to(&*log, branch, cut, library.clone()).unwrap();
            // Each firing here emits one event at most, so no cut splits one.
            assert_eq!(refired.divergences, [], "up to {cut}");
            assert!(refired.firings <= whole.firings);
            verify(&*log, &Snapshots::none(), branch, cut).unwrap();
        }
    }
}

/// What cannot be run is not passed.
#[test]
fn firings_whose_code_is_gone_are_counted_as_unknown() {
    let (log, branches, library, _folder) = eventful();
    let all = refire(&*log, branches[1], library).unwrap();
    let none = refire(&*log, branches[1], Library::new()).unwrap();
    assert_eq!((none.firings, none.divergences.len()), (0, 0));
    let unknown: u64 = none.unavailable.values().sum();
    assert_eq!(unknown, all.firings);
    let names: Vec<&str> =
        none.unavailable.keys().map(|version| version.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["ask", "break_off", "count", "count"], "by version: {none:?}");
}

/// The strict replay of another system compared kinds by position: the same kinds with other data
/// passed.
#[test]
fn the_same_kinds_with_other_data_do_not_pass_and_the_fields_are_named() {
    let metadata = json!({"name": "answer", "on": "thing.asked"});
    let flock = Small::new("fifo", &json!({})).with(&metadata, |_, out| {
        out.emit("thing.answered", json!({"n": 1})).create("Thing", json!({"n": 1}));
        Ok(())
    });
    let mut running = flock.start();
    running.say("1", "thing.asked", json!({}), &json!([]));
    running.rest();
    let other = Small::new("fifo", &json!({})).with(&metadata, |_, out| {
        out.emit("thing.answered", json!({"n": 1})).create("Thing", json!({"n": 2}));
        Ok(())
    });
    let refired = refire(&*running.log, running.branch, other.library).unwrap();
    assert_eq!(refired.divergences.len(), 1);
    let told = refired.divergences[0].to_string();
    assert!(told.contains("\n  changes.0.properties.n: 1 -> 2"), "{told}");
    assert_eq!(told.matches(" -> ").count(), 1, "only what differs: {told}");
}

/// Another replay fed two goals at once, one after the other, and reported a divergence that was
/// none: what comes from outside is fed where the log has it.
#[test]
fn what_came_from_outside_in_between_is_fed_where_the_log_has_it() {
    let flock = Small::new("fifo", &json!({})).with(
        &json!({"name": "derive", "on": "goal.stated", "reads": {"all": "(d:Derived)"}}),
        |firing, out| {
            // What it does depends on all that was derived before.
            let before = firing.read("all")?.elements().count();
            out.emit("goal.derived", json!({"before": before})).create("Derived", json!({}));
            Ok(())
        },
    );
    let mut running = flock.start();
    for goal in ["one", "two", "three"] {
        running.say(goal, "goal.stated", json!({}), &json!([]));
        running.rest();
    }
    let counts: Vec<i64> = running
        .of_kind("goal.derived")
        .iter()
        .map(|event| event.payload().get("before").and_then(|n| n.as_i64()).unwrap())
        .collect();
    assert_eq!(counts, [0, 1, 2]);
    let refired = refire(&*running.log, running.branch, flock.library).unwrap();
    assert_eq!((refired.firings, refired.divergences.len()), (3, 0));
}
