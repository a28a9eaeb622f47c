//! Promoting: what a branch has become is brought into another, all of it or nothing.

mod worlds;

use std::sync::Arc;

use effect::Class;
use log::{BranchId, Head, Log, Time};
use projection::{Graph, Pattern, diff};
use runtime::{Disagreement, Engine, Land, PromoteError, Promoted, Promotion, Snapshots};
use serde_json::{Value, json};

use crate::effects::wishing;
use crate::support::effects::{Scripted, World};
use crate::support::flock::{Running, Small, said};
use crate::support::name;

/// Branches of one flock, each with an engine of its own while it is used.
struct Store {
    log: Arc<dyn Log>,
    library: runtime::Library,
    main: BranchId,
}

impl Store {
    fn of(flock: &Small) -> Store {
        let mut running = flock.start();
        running.rest();
        let (log, main, library) = (Arc::clone(&running.log), running.branch, running.library());
        Store { log, library, main }
    }

    fn fork(&self, parent: BranchId, called: &str) -> BranchId {
        let head = self.log.branch(parent).unwrap().tip.head;
        self.log.fork(parent, head, &name(called), "").unwrap().id
    }

    fn on<T>(&self, branch: BranchId, what: impl FnOnce(&mut Running) -> T) -> T {
        let mut running = Running::open(Arc::clone(&self.log), branch, self.library.clone());
        let done = what(&mut running);
        running.engine.commit().unwrap();
        done
    }

    /// Something is said on a branch, and it runs to rest.
    fn say(&self, branch: BranchId, nth: &str, change: Value) {
        self.on(branch, |running| {
            running.say(nth, "thing.said", json!({}), &change);
            running.rest();
        });
    }

    fn rest(&self, branch: BranchId) {
        self.on(branch, |running| drop(running.rest()));
    }

    fn promote(&self, from: BranchId, into: BranchId) -> Result<Promoted, PromoteError> {
        self.promote_only(from, into, None, Land::Now)
    }

    fn promote_only(
        &self,
        from: BranchId,
        into: BranchId,
        only: Option<&str>,
        land: Land,
    ) -> Result<Promoted, PromoteError> {
        let (from, into) = (self.log.branch(from).unwrap(), self.log.branch(into).unwrap());
        let only = only.map(|pattern| Pattern::parse(pattern).unwrap());
        let (who, now) = ("user:ann", Time::default());
        let asked = Promotion { from: &from, into: &into, only: only.as_ref(), who, now };
        asked.run(&self.log, &Snapshots::none(), (land, "test"))
    }

    fn conflicts(&self, from: BranchId, into: BranchId) -> Vec<Disagreement> {
        let before = self.log.branch(into).unwrap().tip;
        let error = self.promote(from, into).expect_err("they conflict");
        assert_eq!(self.log.branch(into).unwrap().tip, before, "nothing landed");
        let PromoteError::Conflicts(all) = error else { panic!("{error}") };
        all
    }

    fn graph(&self, branch: BranchId) -> Graph {
        let head = Head::of_count(u64::MAX);
        Snapshots::none().graph_at(&*self.log, branch, head).unwrap()
    }

    fn property(&self, branch: BranchId, id: &str, name: &str) -> Value {
        let graph = self.graph(branch);
        let value = graph.element(id).and_then(|element| element.property(name));
        value.map_or(Value::Null, |value| value.to_json())
    }
}

fn node(id: &str, properties: Value) -> Value {
    json!({"create": id, "type": "Thing", "properties": properties})
}

fn set(id: &str, properties: Value) -> Value {
    json!({"set": id, "properties": properties})
}

fn nobody() -> Small {
    let things: Vec<Value> =
        (0..4).map(|n| node(&format!("t{n}"), json!({"a": 0, "b": 0}))).collect();
    Small::new("fifo", &json!({})).begins("things.made", &Value::Array(things))
}

fn kinds_of(conflicts: &[Disagreement]) -> Vec<(&str, &str)> {
    conflicts.iter().map(|conflict| (conflict.kind, conflict.what.as_str())).collect()
}

#[test]
fn what_one_side_changed_lands_and_what_both_changed_alike_agrees() {
    let store = Store::of(&nobody());
    let child = store.fork(store.main, "idea");
    store.say(
        child,
        "1",
        json!([set("t0", json!({"a": 1})), set("t1", json!({"a": 7})), {"remove": "t3"},
        node("new", json!({"x": 1})), {"link": "KNOWS", "from": "new", "to": "t0"}]),
    );
    store.say(
        store.main,
        "2",
        json!([set("t0", json!({"b": 2})), set("t1", json!({"a": 7})), set("t2", json!({"a": 3}))]),
    );
    let promoted = store.promote(child, store.main).unwrap();
    assert_eq!(promoted.changes, 4, "t0.a, t3, new and its edge; t1.a agrees");
    let main = |id: &str, name: &str| store.property(store.main, id, name);
    assert_eq!((main("t0", "a"), main("t0", "b")), (json!(1), json!(2)));
    assert_eq!(
        (main("t1", "a"), main("t2", "a"), main("new", "x")),
        (json!(7), json!(3), json!(1))
    );
    let world = store.graph(store.main);
    assert!(world.element("t3").is_none());
    let edge = Pattern::parse("(n:Thing {x: 1})-[:KNOWS]->(t)").unwrap();
    store.on(store.main, |running| assert!(running.engine.holds(&edge)));
    let again = store.promote(child, store.main).unwrap();
    assert_eq!((again.changes, again.landed), (0, None), "again is nothing");
    store.say(child, "3", json!([set("t0", json!({"a": 2}))]));
    let later = store.promote(child, store.main).unwrap();
    assert_eq!(later.changes, 1, "only what is new since the marker");
    assert_eq!(store.property(store.main, "t0", "a"), json!(2));
}

/// The peer refuses whenever both sides made an object of one type, for its ids are counters.
#[test]
fn like_things_made_in_parallel_are_no_conflict() {
    let store = Store::of(&nobody());
    let child = store.fork(store.main, "idea");
    let made = |n: u64| json!([{"create": null, "type": "Claim", "properties": {"n": n}}]);
    store.say(child, "theirs", made(1));
    store.say(store.main, "ours", made(2));
    store.promote(child, store.main).unwrap();
    let claims = Pattern::parse("(c:Claim)").unwrap();
    store.on(store.main, |running| assert_eq!(running.engine.rows(&claims).len(), 2));
}

#[test]
fn a_conflict_is_named_with_both_values_and_both_causes_and_nothing_lands() {
    let store = Store::of(&nobody());
    let child = store.fork(store.main, "idea");
    store.say(child, "1", json!([set("t0", json!({"a": 1, "b": 5}))]));
    store.say(store.main, "2", json!([set("t0", json!({"a": 2}))]));
    let found = store.conflicts(child, store.main);
    assert_eq!(kinds_of(&found), [("property", "t0.a")]);
    assert_eq!((&found[0].ours.value, &found[0].theirs.value), (&Some(json!(2)), &Some(json!(1))));
    let at = |side: &runtime::Side| side.cause.clone().map(|(at, who, _)| (at, who));
    let last = store.log.branch(store.main).unwrap().tip.head.last().unwrap();
    assert_eq!(at(&found[0].ours), Some((format!("main@{last}"), "user:ann".to_owned())));
    assert_eq!(at(&found[0].theirs), Some((format!("idea@{last}"), "user:ann".to_owned())));
}

/// An edge that one side had moved counted as left alone, since its properties were the same: the
/// other side's write put it back where it was, and the other side's removal took it away.
#[test]
fn an_edge_that_one_side_moved_is_not_the_one_that_the_other_changed() {
    let held = json!({"link": "HOLDS", "id": "holder", "from": "t0", "to": "t1"});
    for change in [json!([set("holder", json!({"a": 1}))]), json!([{"remove": "holder"}])] {
        let store = Store::of(&nobody());
        store.say(store.main, "held", json!([held]));
        let child = store.fork(store.main, "idea");
        let moved = json!({"link": "HOLDS", "id": "holder", "from": "t0", "to": "t2"});
        store.say(store.main, "moved", json!([{"remove": "holder"}, moved]));
        store.say(child, "changed", change.clone());
        let found = store.conflicts(child, store.main);
        assert_eq!(found.len(), 1, "{change}: {found:?}");
        assert!(found[0].what.starts_with("holder"), "{change}: {found:?}");
    }
}

#[test]
fn each_kind_of_conflict_is_found() {
    let cases: [(&str, Value, Value); 6] = [
        ("removed", json!([{"remove": "t0"}]), json!([set("t0", json!({"a": 1}))])),
        ("removed", json!([set("t0", json!({"a": 1}))]), json!([{"remove": "t0"}])),
        (
            "dangling",
            json!([{"link": "KNOWS", "from": "t0", "to": "t1"}]),
            json!([{"remove": "t1"}]),
        ),
        ("orphan", json!([{"remove": "t1"}]), json!([{"link": "KNOWS", "from": "t0", "to": "t1"}])),
        (
            "version",
            json!([{"set": "t0", "properties": {"a": 1}, "if_version": 1}]),
            json!([set("t0", json!({"b": 1}))]),
        ),
        ("made", json!([node("x", json!({}))]), json!([{"create": "x", "type": "Other"}])),
    ];
    for (kind, theirs, ours) in cases {
        let store = Store::of(&nobody());
        let child = store.fork(store.main, "idea");
        store.say(child, "1", theirs.clone());
        store.say(store.main, "2", ours);
        let found = store.conflicts(child, store.main);
        assert_eq!(found[0].kind, kind, "{theirs}: {found:?}");
        assert!(found[0].theirs.cause.is_some(), "{found:?}");
    }
}

#[test]
fn what_does_not_fit_a_schema_that_the_parent_declared_meanwhile_is_a_conflict() {
    let store = Store::of(&nobody());
    let child = store.fork(store.main, "idea");
    store.say(child, "1", json!([set("t0", json!({"a": "a text"}))]));
    store.on(store.main, |running| {
        let schema = json!({"type": "Thing", "schema": {"properties": {"a": {"type": "number"}}}});
        running.say("2", "schema.declared", schema, &json!([]));
    });
    assert_eq!(store.conflicts(child, store.main)[0].kind, "schema");
}

/// A flock that greets each guest once, and praises what was greeted twice.
fn greeting() -> Small {
    Small::new("fifo", &json!({}))
        .with(&json!({"name": "greet", "match": "(g:Guest)"}), |firing, out| {
            let guest = firing.element("g")?.id.to_owned();
            out.emit("guest.greeted", json!({"guest": guest}));
            Ok(())
        })
        .with(
            &json!({"name": "pair", "match": "(a:Guest)-[:KNOWS]->(b:Guest {from: 'main'})"}),
            |_, out| {
                out.emit("pair.seen", json!({}));
                Ok(())
            },
        )
        .begins("door.opened", &json!([{"create": "g0", "type": "Guest"}]))
}

fn guest(id: &str, from: &str) -> Value {
    json!({"create": id, "type": "Guest", "properties": {"from": from}})
}

#[test]
fn exactly_the_matches_wake_that_stood_on_neither_side() {
    let store = Store::of(&greeting());
    let child = store.fork(store.main, "idea");
    // On the branch `a` is greeted; that she knows `b` is a match only together with main's change.
    store.say(
        child,
        "1",
        json!([guest("a", "idea"), {"create": "b", "type": "Place"}, {"remove": "b"}]),
    );
    store.say(child, "2", json!([{"link": "KNOWS", "from": "a", "to": "g0"}]));
    store.say(store.main, "3", json!([set("g0", json!({"from": "main"}))]));
    let promoted = store.promote(child, store.main).unwrap();
    assert_eq!(promoted.wakes, [("pair".to_owned(), 1)]);
    assert_eq!(promoted.quiet, 1, "a was greeted on the branch");
    store.rest(store.main);
    store.on(store.main, |running| {
        assert_eq!(running.of_kind("guest.greeted").len(), 1, "g0 only");
        assert_eq!(running.of_kind("pair.seen").len(), 1);
        // The fold finds the same again, whoever opens the branch.
        assert_eq!(running.engine.waiting(), 0);
        let refired = runtime::refire(&*running.log, running.branch, running.library()).unwrap();
        assert!(refired.divergences.is_empty(), "{:?}", refired.divergences);
    });
}

#[test]
fn a_match_that_still_waits_on_the_branch_wakes_where_it_lands() {
    let store = Store::of(&greeting());
    let child = store.fork(store.main, "idea");
    store.on(child, |running| {
        running.say("1", "door.opened", json!({}), &json!([guest("a", "idea")]));
    });
    let promoted = store.promote(child, store.main).unwrap();
    assert_eq!((promoted.wakes, promoted.quiet), (vec![("greet".to_owned(), 1)], 0));
}

/// A firing that waits on the parent and took place on the branch would make everything twice.
#[test]
fn a_firing_that_is_still_due_on_the_parent_and_was_done_on_the_branch_is_a_conflict() {
    let store = Store::of(&greeting());
    store.on(store.main, |running| {
        running.say("1", "door.opened", json!({}), &json!([guest("a", "main")]));
    });
    let child = store.fork(store.main, "idea");
    store.rest(child);
    assert_eq!(kinds_of(&store.conflicts(child, store.main)), [("firing", "greet")]);
    store.rest(store.main);
    assert_eq!(store.promote(child, store.main).unwrap().changes, 0);
}

fn keyed(store: &Store, branch: BranchId, n: u64) -> Result<log::Landed, String> {
    store.on(branch, |running| {
        let change = json!([{"create": null, "type": "Paid", "properties": {"n": n}}]);
        let mut draft = said(&format!("pay {n}"), "bill.paid", json!({"n": n}), &change);
        draft.key = Some("bill-7".into());
        running.engine.outside(draft).map_err(|error| error.to_string())
    })
}

#[test]
fn keys_travel_so_that_nothing_takes_effect_twice() {
    let store = Store::of(&nobody());
    let child = store.fork(store.main, "idea");
    keyed(&store, child, 7).unwrap();
    let promoted = store.promote(child, store.main).unwrap();
    assert_eq!(promoted.keys, ["bill-7"]);
    assert!(keyed(&store, store.main, 7).unwrap().repeated, "the same again is nothing");
    assert!(keyed(&store, store.main, 8).unwrap_err().contains("bill-7"));
    let paid = Pattern::parse("(p:Paid)").unwrap();
    store.on(store.main, |running| assert_eq!(running.engine.rows(&paid).len(), 1));
}

#[test]
fn a_key_that_both_used_with_other_content_is_a_conflict_and_with_the_same_it_agrees() {
    let store = Store::of(&nobody());
    let (one, other) = (store.fork(store.main, "one"), store.fork(store.main, "other"));
    keyed(&store, one, 7).unwrap();
    keyed(&store, other, 8).unwrap();
    keyed(&store, store.main, 7).unwrap();
    assert_eq!(store.promote(one, store.main).unwrap().keys, Vec::<String>::new());
    let found = store.conflicts(other, store.main);
    assert!(kinds_of(&found).contains(&("key", "bill-7")), "{found:?}");
}

#[test]
fn an_action_that_left_on_both_branches_is_a_conflict() {
    let tool = Arc::new(Scripted::new(Class::Opaque, []));
    let flock = wishing(&[json!({"args": {"n": 1}})]);
    let mut running = flock.start();
    running.rest();
    let (log, main, library) = (Arc::clone(&running.log), running.branch, running.library());
    drop(running);
    let store = Store { log, library, main };
    let child = store.fork(main, "idea");
    for branch in [main, child] {
        let running = Running::open(Arc::clone(&store.log), branch, store.library.clone());
        let mut world = World::of(running, &[("tool:x", &tool)]);
        // A child that asks the world anew has no parent whose answers it could be given.
        world.now = if branch == main { 5 } else { 9 };
        world.settle();
    }
    assert_eq!(tool.calls().len(), 2);
    let found = store.conflicts(child, main);
    assert!(found.iter().any(|conflict| conflict.kind == "action"), "{found:?}");
}

#[test]
fn a_grandchild_is_promoted_into_its_parent_and_into_the_first_branch() {
    let store = Store::of(&nobody());
    let child = store.fork(store.main, "child");
    store.say(child, "1", json!([set("t0", json!({"a": 1}))]));
    let grandchild = store.fork(child, "grandchild");
    store.say(grandchild, "2", json!([set("t1", json!({"a": 2}))]));
    store.say(store.main, "3", json!([set("t2", json!({"a": 3}))]));
    let promoted = store.promote(grandchild, store.main).unwrap();
    assert_eq!(promoted.changes, 2, "what its parent changed before it is its own as well");
    assert_eq!(store.promote(grandchild, child).unwrap().changes, 1);
    assert_eq!(store.promote(child, store.main).unwrap().changes, 0, "all of it is there");
    assert_eq!(store.property(store.main, "t0", "a"), json!(1));
}

#[test]
fn a_part_is_promoted_by_a_pattern_and_the_rest_later() {
    let store = Store::of(&nobody());
    let child = store.fork(store.main, "idea");
    store.say(
        child,
        "1",
        json!([set("t0", json!({"a": 1})), set("t1", json!({"a": 1, "pick": true}))]),
    );
    let dry = store.promote_only(child, store.main, Some("(t {pick: true})"), Land::DryRun);
    assert_eq!(dry.unwrap().landed, None);
    let part = store.promote_only(child, store.main, Some("(t {pick: true})"), Land::Now).unwrap();
    assert_eq!(part.changes, 1);
    assert_eq!(store.property(store.main, "t0", "a"), json!(0));
    assert_eq!(store.promote(child, store.main).unwrap().changes, 1, "the rest");
    assert_eq!(store.property(store.main, "t0", "a"), json!(1));
}

#[test]
fn a_promotion_larger_than_an_event_lands_whole() {
    let store = Store::of(&nobody());
    let child = store.fork(store.main, "idea");
    for part in 0..8 {
        let text = "x".repeat(900);
        let many = (0..250).map(|n| node(&format!("big:{part}:{n}"), json!({"text": text})));
        store.say(child, &format!("{part}"), Value::Array(many.collect()));
    }
    assert_eq!(store.promote(child, store.main).unwrap().changes, 2000);
    assert!(diff(&store.graph(child), &store.graph(store.main)).is_empty());
}

/// Row 47 of the public failures: two writers of one branch. Here the second is refused and told
/// who the first is.
#[test]
fn a_branch_that_is_run_by_somebody_is_not_promoted_into() {
    let store = Store::of(&nobody());
    let child = store.fork(store.main, "idea");
    store.say(child, "1", json!([set("t0", json!({"a": 1}))]));
    let engine =
        Engine::open(Arc::clone(&store.log), store.main, store.library.clone(), "somebody")
            .unwrap();
    let refused = store.promote(child, store.main).unwrap_err().to_string();
    assert!(refused.contains("somebody"), "{refused}");
    drop(engine);
    assert_eq!(store.promote(child, store.main).unwrap().changes, 1);
}
