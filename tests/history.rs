//! Histories compared, searched and put together again: the quick ways against the plain ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use log::{BranchId, Change, Event, Head, Log, Offset, WriteOp};
use projection::{Difference, Graph, Pattern, World, diff};
use runtime::{
    Engine, Part, Snapshots, Turned, Unsound, bisect, first_difference, first_true, verify, writers,
};
use serde_json::json;
use tempfile::TempDir;

use crate::oracle;
use crate::recover::uninterrupted;
use crate::support::flock::{Small, events};
use crate::support::random::Random;
use crate::support::{append_here, draft, long, name};

fn folded(log: &dyn Log, branch: BranchId, cut: Head) -> Graph {
    Snapshots::none().graph_at(log, branch, cut).unwrap()
}

/// A change of properties, so that all are as they are on one side.
fn mended(difference: &Difference<'_>) -> Vec<Change> {
    let id: smol_str::SmolStr = difference.id.into();
    let (mut set, mut gone) = (serde_json::Map::new(), Vec::new());
    for (name, _, other) in difference.properties() {
        match other {
            Some(value) => drop(set.insert(name.to_owned(), value.to_json())),
            None => gone.push(name.into()),
        }
    }
    let write =
        Change::Write { op: WriteOp::Set, id: id.clone(), properties: set, if_version: None };
    vec![write, Change::Unset { id, names: gone }]
}

/// The changes that make the first world the second: removals of edges, nodes; then what is new.
fn applied(before: &Graph, after: &Graph, found: &[Difference<'_>]) -> Vec<Change> {
    let is_edge = |d: &&Difference<'_>| d.before.or(d.after).is_some_and(|e| e.ends().is_some());
    let mut changes = Vec::new();
    let gone = |d: &Difference<'_>| d.after.is_none().then(|| Change::Remove { id: d.id.into() });
    changes.extend(found.iter().filter(is_edge).filter_map(gone));
    changes.extend(found.iter().filter(|d| !is_edge(d)).filter_map(gone));
    let id = |node: projection::NodeRef| after.at(node.into()).unwrap().id().into();
    for difference in found {
        let (Some(new), None) = (difference.after, difference.before) else {
            if difference.before.is_some() && difference.after.is_some() {
                changes.extend(mended(difference));
            }
            continue;
        };
        let (made, type_name) = (Some(difference.id.into()), new.type_name().into());
        let properties = new.properties_json();
        changes.push(match new.ends() {
            None => Change::Create { id: made, type_name, properties },
            Some((from, to)) => {
                Change::Link { id: made, type_name, from: id(from), to: id(to), properties }
            }
        });
    }
    assert_eq!(before.head(), before.head(), "a world stands somewhere");
    changes
}

/// Forks of the model's flocks, run on, compared at random offsets.
#[test]
fn a_world_and_its_difference_from_another_give_the_other() {
    let mut random = Random::new(11);
    let (mut compared, mut differing) = (0, 0);
    for case in oracle::committed().into_iter().step_by(if long() { 1 } else { 8 }) {
        let (log, main, whole) = uninterrupted(&case, 2048, 1);
        let count = whole.events.len() as u64;
        for _ in 0..6 {
            let cut = |random: &mut Random| Head::of_count(random.below(count + 1));
            let (one, other) = (cut(&mut random), cut(&mut random));
            let (before, after) = (folded(&*log, main, one), folded(&*log, main, other));
            assert_eq!(diff(&before, &before).len(), 0, "a world is itself");
            let again = folded(&*log, main, one);
            assert_eq!(diff(&before, &again).len(), 0, "whoever folds it");
            let found = diff(&before, &after);
            assert_eq!(found.is_empty(), before.state_hash() == after.state_hash());
            let mut last = draft(1, &json!({}));
            last.changes = applied(&before, &after, &found);
            let (event, _) = Event::encode(&last, before.head().next()).unwrap();
            let mut mended = before.clone();
            mended.apply(&event).unwrap();
            assert_eq!(mended.state_hash(), after.state_hash(), "seed {}: {last:?}", case["seed"]);
            compared += 1;
            differing += usize::from(!found.is_empty());
        }
    }
    assert!(differing * 2 > compared, "{differing} of {compared} pairs differ");
}

/// Another system handed out what its graph holds, so that a reader changed it.
#[test]
fn two_restores_of_one_offset_share_nothing_that_can_be_changed() {
    let case = &oracle::committed()[0];
    let (log, main, whole) = uninterrupted(case, 2048, 1);
    let cut = Head::of_count(whole.events.len() as u64);
    let (mut one, other) = (folded(&*log, main, cut), folded(&*log, main, cut));
    let twin = one.clone();
    let before = (other.state_hash(), other.encode());
    let mut last = draft(1, &json!({}));
    last.changes = vec![Change::Create {
        id: Some("mine".into()),
        type_name: "Mine".into(),
        properties: serde_json::Map::new(),
    }];
    let (event, _) = Event::encode(&last, cut.next()).unwrap();
    one.apply(&event).unwrap();
    assert!(one.element("mine").is_some());
    for untouched in [&twin, &other, &folded(&*log, main, cut)] {
        assert_eq!((untouched.state_hash(), untouched.encode()), before);
    }
}

#[test]
fn histories_part_where_their_first_other_event_stands() {
    let log = log::MemoryLog::new(crate::support::STORE);
    let main = log.create(&name("main")).unwrap().id;
    append_here(&log, main, &crate::support::numbered_range(0..300));
    for cut in [0, 1, 17, 299, 300] {
        let fork = log.fork(main, Head::of_count(cut), &name(&format!("f{cut}")), "").unwrap().id;
        let heads = |branch| log.branch(branch).unwrap().tip.head;
        let asked = |a: BranchId, b: BranchId| {
            first_difference(&log, (a, heads(a)), (b, heads(b))).unwrap()
        };
        let expected = (cut < 300).then(|| Offset::new(cut));
        assert_eq!(asked(main, fork), expected, "one ends where the other goes on");
        append_here(&log, fork, &crate::support::numbered_range(1000..1010));
        assert_eq!(asked(main, fork), Some(Offset::new(cut)));
        let copy = log.fork(main, Head::of_count(cut), &name(&format!("g{cut}")), "").unwrap().id;
        append_here(&log, copy, &crate::support::numbered_range(1000..1010));
        assert_eq!(asked(copy, fork), None, "the same written twice is the same");
    }
}

/// A branch of many events over a file, with the snapshots and state hashes that it left.
struct Kept {
    folder: TempDir,
    log: Arc<dyn Log>,
    branch: BranchId,
    snapshots: Snapshots,
}

const EVENTS: u64 = 70_000;

impl Kept {
    /// Counters that are added to, and a flag that is raised once in the middle.
    fn new() -> Kept {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.redb");
        let metadata = json!({"name": "count", "on": "round.ended", "wakes_self": true});
        let flock =
            Small::new("fifo", &json!({"depth": 1_000_000})).with(&metadata, |firing, out| {
                let n = firing.event.payload.get("n").and_then(|n| n.as_i64()).unwrap_or(0);
                if n < EVENTS as i64 {
                    let counter = format!("counter:{}", n % 16);
                    let mut event = out.emit("round.ended", json!({"n": n + 1}));
                    event.add(&counter, json!({"n": 1}));
                    if n == 43_210 {
                        event.set("counter:0", json!({"raised": true}));
                    }
                }
                Ok(())
            });
        let counters: Vec<_> = (0..16)
            .map(|n| json!({"create": format!("counter:{n}"), "type": "Counter", "properties": {}}))
            .collect();
        let flock = flock.begins("round.ended", &json!(counters));
        let log: Arc<dyn Log> =
            Arc::new(log::RedbLog::create(&path, crate::support::STORE).unwrap());
        let branch = runtime::start_branch(&log, &name("main"), &flock.start, "test").unwrap().id;
        let snapshots = Snapshots::beside(&path);
        let library = flock.library;
        let engine =
            Engine::open_with(Arc::clone(&log), branch, library, "test", snapshots.clone());
        engine.unwrap().run(|_| true).unwrap();
        Kept { folder, log, branch, snapshots }
    }

    fn head(&self) -> Head {
        self.log.branch(self.branch).unwrap().tip.head
    }

    fn files(&self, ending: &str) -> Vec<std::path::PathBuf> {
        let folder = self.folder.path().join("s.redb.snapshots");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.to_str().unwrap().ends_with(ending)).collect()
    }
}

#[test]
fn bisect_and_the_first_find_the_event_that_a_reading_of_all_finds() {
    let kept = Kept::new();
    let all = events(&*kept.log, kept.branch);
    let raised = |event: &&Event| event.payload().get("n").and_then(|n| n.as_i64()) == Some(43_211);
    let expected = all.iter().find(raised).unwrap().offset();
    let pattern = Pattern::parse("(c:Counter {raised: true})").unwrap();
    let range = (Head::EMPTY, kept.head());
    for snapshots in [&kept.snapshots, &Snapshots::none()] {
        for search in [bisect, first_true] {
            let found = search(&*kept.log, snapshots, kept.branch, range, &pattern).unwrap();
            let Turned::At(turning) = found else { panic!("{found:?}") };
            assert_eq!(turning.event.offset(), expected);
        }
    }
    let found = bisect(&*kept.log, &kept.snapshots, kept.branch, range, &pattern).unwrap();
    let Turned::At(turning) = found else { panic!("{found:?}") };
    assert!(turning.worlds <= 20, "{} worlds for {EVENTS} events", turning.worlds);
}

#[test]
fn the_last_writer_is_the_one_that_a_fold_of_everything_finds() {
    let kept = Kept::new();
    let world = folded(&*kept.log, kept.branch, kept.head());
    let mut expected: BTreeMap<Part, Offset> = BTreeMap::new();
    let mut graph = Graph::new();
    for event in events(&*kept.log, kept.branch) {
        let delta = graph.apply(&event).unwrap();
        for element in delta.touched() {
            let (before, after) = (delta.before(&graph, element), graph.at(element).unwrap());
            let id: smol_str::SmolStr = after.id().into();
            if before.is_none() {
                expected.insert(Part { id: id.clone(), property: None }, event.offset());
            }
            for (name, value) in after.properties_json() {
                let old = before.and_then(|before| before.property(&name).map(|v| v.to_json()));
                if old != Some(value) {
                    let part = Part { id: id.clone(), property: Some(name.into()) };
                    expected.insert(part, event.offset());
                }
            }
        }
    }
    let wanted: BTreeSet<Part> = expected.keys().cloned().collect();
    assert_eq!(wanted.len(), 16 * 2 + 1);
    for snapshots in [&kept.snapshots, &Snapshots::none()] {
        let found = writers(&*kept.log, snapshots, kept.branch, &world, wanted.clone()).unwrap();
        let found: BTreeMap<Part, Offset> =
            found.into_iter().map(|(part, event)| (part, event.offset())).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn verify_compares_recorded_state_hashes_and_snapshots_with_a_fold() {
    let kept = Kept::new();
    let check = || verify(&*kept.log, &kept.snapshots, kept.branch, kept.head());
    let sound = check().unwrap();
    assert_eq!(sound.states, 1, "one every 65,536 events");
    assert!(sound.snapshots >= 4, "{sound:?}");
    assert_eq!(sound.link, kept.log.branch(kept.branch).unwrap().tip.link);
    let world = folded(&*kept.log, kept.branch, kept.head());
    assert_eq!(sound.state, world.state_hash());

    // A record that says something else of the same history.
    let states = &kept.files(".states")[0];
    let text = std::fs::read_to_string(states).unwrap();
    let mut words: Vec<String> = text.trim().split(' ').map(str::to_owned).collect();
    words[1] = log::Hash::ZERO.to_string();
    std::fs::write(states, words.join(" ") + "\n").unwrap();
    let found = check();
    assert!(
        matches!(&found, Err(Unsound::State { head, .. }) if head.count() == 65_536),
        "{found:?}"
    );
    std::fs::write(states, text).unwrap();

    // A snapshot of which one bit has turned.
    let mut files = kept.files(".snap");
    files.sort();
    let mut damaged = std::fs::read(&files[0]).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&files[0], &damaged).unwrap();
    let found = check();
    assert!(
        matches!(&found, Err(Unsound::Snapshot { what, .. }) if what.contains("hash")),
        "{found:?}"
    );
    for file in files.iter().chain([states]) {
        std::fs::remove_file(file).unwrap();
    }
    let bare = check().unwrap();
    assert_eq!((bare.state, bare.states, bare.snapshots), (sound.state, 0, 0), "caches, all of it");
}
