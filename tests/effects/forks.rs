//! Recorded answers and forks: what the world said once is not asked again unless somebody says so.

use std::io::Write;
use std::sync::Arc;

use effect::Class;
use log::{BranchId, Head, Offset};
use runtime::{Driver, Executors, Recorded, Serving};
use serde_json::{Value, json};

use super::wishing;
use crate::support::effects::{Does, Scripted, World};
use crate::support::flock::Running;
use crate::support::name;

fn wishes(count: usize) -> Vec<Value> {
    (0..count).map(|n| json!({"args": {"n": n}})).collect()
}

/// Answers from a file: nobody outside is asked, and the log says so.
#[test]
fn a_file_answers_by_effect_and_arguments_and_nothing_is_asked() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let line = |n: u64| json!({"effect": "tool:x", "args": {"n": n}, "result": {"was": n}});
    writeln!(file, "{}\n{}", line(1), line(0)).unwrap();
    let tool = Arc::new(Scripted::new(Class::Opaque, []));
    let mut world = World::new(&wishing(&wishes(3)), &[("tool:x", &tool)]);
    let recorded = Recorded::of_file(file.path()).unwrap();
    world.serve(Serving::Recorded, recorded);
    world.settle();
    assert!(tool.calls().is_empty());
    let ended = world.payloads("effect.ended");
    assert_eq!(ended.len(), 2);
    assert_eq!((&ended[0]["result"]["was"], &ended[1]["result"]["was"]), (&json!(0), &json!(1)));
    assert!(world.payloads("effect.dispatched").iter().all(|d| d["executor"] == "recorded"));
    let open = world.open();
    assert_eq!(open.len(), 1, "what has no answer waits");
    assert_eq!(world.waits(&open[0].action), Some("no answer is recorded"));
}

/// The fork of a branch, with the parent's answers after the cut.
pub(crate) fn fork(world: &World, cut: u64, serving: Serving, tool: &Arc<Scripted>) -> World {
    let log = Arc::clone(&world.running.log);
    let cut = Head::of_count(cut);
    let made = log.fork(world.running.branch, cut, &name("child"), "").unwrap();
    let running = Running::open(Arc::clone(&log), made.id, world.running.library());
    let mut child = World::of(running, &[("tool:x", tool)]);
    child.now = world.now;
    let range = Offset::new(cut.count())..Offset::new(u64::MAX);
    child.serve(serving, Recorded::of_log(&*log, world.running.branch, range).unwrap());
    child
}

fn place(world: &World, kind: &str) -> u64 {
    world.running.of_kind(kind)[0].offset().get()
}

/// An unchanged fork re-derives every action, and its parent's answers fit: nothing is asked.
#[test]
fn a_fork_before_the_request_is_served_what_its_parent_was_told() {
    let script = (0..3).map(|n| Does::Succeeds(json!({"was": n})));
    let tool = Arc::new(Scripted::new(Class::Opaque, script));
    let mut world = World::new(&wishing(&wishes(3)), &[("tool:x", &tool)]);
    world.settle();
    let mut child = fork(&world, place(&world, "effect.requested"), Serving::Recorded, &tool);
    child.settle();
    assert_eq!(tool.calls().len(), 3, "nobody was asked again");
    let results = |world: &World| {
        let mut all: Vec<String> =
            world.payloads("effect.ended").iter().map(|e| e["result"].to_string()).collect();
        all.sort();
        all
    };
    assert_eq!(results(&child), results(&world));
    let actions = |world: &World| -> Vec<log::EventId> {
        world.running.of_kind("effect.requested").iter().map(log::Event::id).collect()
    };
    assert_eq!(actions(&child), actions(&world));
}

/// Row 94 of the public failures: a fork inherits what looks as if it ran for ever.
#[test]
fn what_is_open_at_the_cut_stays_with_the_parent() {
    let tool = Arc::new(Scripted::new(Class::Keyed, [Does::Hangs]));
    let mut world = World::new(&wishing(&wishes(1)), &[("tool:x", &tool)]);
    world.until_called(&tool);
    world.running.engine.commit().unwrap();
    let cut = place(&world, "effect.dispatched") + 1;
    let mut child = fork(&world, cut, Serving::RecordedThenLive, &tool);
    child.settle();
    assert_eq!(tool.calls().len(), 1);
    let ended = &child.payloads("effect.ended")[0];
    assert_eq!((&ended["status"], &ended["by"]), (&json!("cancelled"), &json!("fork")));
    assert!(child.open().is_empty());
    assert_eq!(world.open().len(), 1, "the parent's is out still");
}

#[test]
fn an_answer_that_the_parent_got_after_the_cut_is_served_to_the_fork() {
    let tool = Arc::new(Scripted::new(Class::Opaque, [Does::Succeeds(json!({"was": 7}))]));
    let mut world = World::new(&wishing(&wishes(1)), &[("tool:x", &tool)]);
    world.settle();
    let cut = place(&world, "effect.dispatched") + 1;
    let mut child = fork(&world, cut, Serving::Recorded, &tool);
    child.settle();
    assert_eq!(tool.calls().len(), 1);
    assert_eq!(child.payloads("effect.ended")[0]["result"], json!({"was": 7}));
}

/// A fork that asks for something else is not answered silently, and asks the world only if told.
#[test]
fn a_fork_asks_the_world_only_if_it_is_told_to() {
    for (serving, calls) in [(Serving::Recorded, 1), (Serving::RecordedThenLive, 2)] {
        let tool = Arc::new(Scripted::new(Class::Opaque, []));
        let mut world = World::new(&wishing(&wishes(1)), &[("tool:x", &tool)]);
        world.settle();
        let head = world.running.engine.head().count();
        let mut child = fork(&world, head, serving, &tool);
        let more = json!([{"create": "wish:9", "type": "Wish", "properties": {"args": {"n": 9}}}]);
        child.running.say("more", "wishes.made", json!({}), &more);
        child.settle();
        assert_eq!(tool.calls().len(), calls, "{serving:?}");
        let keys: Vec<String> = tool.calls().into_iter().map(|c| c.idempotency_key).collect();
        let different: std::collections::BTreeSet<&String> = keys.iter().collect();
        assert_eq!(different.len(), keys.len(), "each branch has keys of its own");
    }
}

/// Folding and refiring a log with effects asks nobody: there is nothing to ask.
#[test]
fn replay_asks_nobody() {
    let tool = Arc::new(Scripted::new(Class::Opaque, [Does::Vanishes]));
    let mut world = World::new(&wishing(&wishes(3)), &[("tool:x", &tool)]);
    world.settle();
    let calls = tool.calls().len();
    let library = world.running.library();
    let branch: BranchId = world.running.branch;
    let refired = runtime::refire(&*world.running.log, branch, library).unwrap();
    assert!(refired.divergences.is_empty(), "{:?}", refired.divergences);
    assert_eq!(tool.calls().len(), calls);
    let quiet = Driver::new("main", Executors::new()).unwrap();
    assert_eq!(quiet.out(), 0);
}
