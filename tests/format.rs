//! The format: a store of format 1 opens for ever, and is written the same for ever.
//!
//! `tests/golden/format-1.log` is a store, and `format-1.json` what is in it, with the bytes of
//! each record. `STARLING_GOLDEN=write cargo test -p starling-tests format` makes both anew; that
//! is only right before a format was released, or for a new one.

use std::fs;
use std::path::{Path, PathBuf};

use log::{
    Batch, Bound, Branch, Cause, Change, Draft, Event, EventId, Head, Log, RedbLog, Time, WriteOp,
    read_all, verify,
};
use serde_json::{Map, Value, json};

use crate::support::{STORE, append_here, draft, name};

fn golden(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(file)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("a golden value is an object") };
    map
}

/// Every kind of value.
fn values() -> Draft {
    let text = r#"{
        "null": null, "false": false, "true": true, "": "empty key", "é\u2028\u0000": "\"\\\n😀",
        "integers": [0, 1, -1, 63, 64, -64, -65, 9223372036854775807, -9223372036854775808,
                     9223372036854775808, 18446744073709551615],
        "floats": [0.0, -0.0, 1.0, 0.1, -1.5e300, 5e-324, 1.7976931348623157e308],
        "nested": [[], {}, [[1], {"a": [{"b": null}]}]]
    }"#;
    let mut draft = draft(1, &json!({}));
    draft.payload = log::parse_object(text).expect("the golden text is JSON");
    draft.payload.insert("inline".to_owned(), json!("i".repeat(4096)));
    draft.payload.insert("blob".to_owned(), json!("é".repeat(2049)));
    draft
}

/// Every kind of change.
fn changes() -> Draft {
    let properties = || object(json!({"size": 3, "name": "a"}));
    let write = |op, if_version| Change::Write {
        op,
        id: "#0".into(),
        properties: properties(),
        if_version,
    };
    let link = |id: Option<&str>| Change::Link {
        id: id.map(Into::into),
        type_name: "OWNS".into(),
        from: "#0".into(),
        to: "trip:x".into(),
        properties: Map::new(),
    };
    let mut draft = draft(2, &json!({}));
    draft.changes = vec![
        Change::Create { id: None, type_name: "Task".into(), properties: properties() },
        Change::Create {
            id: Some("task:1".into()),
            type_name: "Task".into(),
            properties: Map::new(),
        },
        Change::Ensure { id: "trip:x".into(), type_name: "Trip".into(), properties: properties() },
        link(None),
        link(Some("edge:1")),
        Change::EnsureLink {
            type_name: "OWNS".into(),
            from: "a".into(),
            to: "b".into(),
            properties: properties(),
        },
        write(WriteOp::Set, None),
        write(WriteOp::Set, Some(300)),
        write(WriteOp::Add, None),
        write(WriteOp::Add, Some(0)),
        write(WriteOp::Append, None),
        write(WriteOp::Append, Some(7)),
        Change::Unset { id: "a".into(), names: vec!["x".into(), "é".into()] },
        Change::Remove { id: "b".into() },
    ];
    draft
}

/// Every other field.
fn fields() -> Vec<Draft> {
    let mut firing = draft(3, &json!({"n": 1}));
    firing.cause = Some(Cause::Firing {
        event: EventId::from_bytes([7; 16]),
        behavior: "guard_budget".into(),
        row: vec![
            Bound::Element("task:1".into()),
            Bound::Path(vec!["edge:1".into(), "edge:2".into()]),
            Bound::Path(Vec::new()),
        ],
    });
    firing.taken = 300;
    let mut answer = draft(4, &json!({}));
    answer.kind = "attempt.ended".into();
    answer.actor = "effect:http".into();
    answer.cause = Some(Cause::Action { action: EventId::from_bytes([8; 16]) });
    answer.time = Time::from_ms(-1).expect("a time");
    answer.taken = 301;
    let mut keyed = draft(5, &json!({"n": 2}));
    keyed.key = Some("order 17".into());
    keyed.time = Time::from_ms(1_767_603_600_123).expect("a time");
    keyed.salt = Some([9; 16]);
    keyed.extra = object(json!({"colour": {"red": [1, 2]}}));
    vec![firing, answer, keyed]
}

/// Writes the golden events: a branch, more than a block of it, and a fork.
fn write(log: &dyn Log) {
    let main = log.create(&name("main")).expect("an empty log").id;
    append_here(log, main, &[values(), changes()]);
    append_here(log, main, &fields());
    let many: Vec<Draft> = (10..1200).map(|n| draft(n, &json!({"n": n}))).collect();
    append_here(log, main, &many);
    let fork = log.fork(main, Head::of_count(3), &name("what/if.1"), "recorded").expect("a fork");
    append_here(log, fork.id, &[draft(2000, &json!({"on": "the fork"}))]);
    drop(log.claim(main, "golden").expect("nobody has it"));
}

/// What is in a log, in words.
fn describe(log: &dyn Log) -> Value {
    let branches = log.branches().expect("the branches");
    let branches: Vec<Value> = branches.iter().map(|branch| describe_branch(log, branch)).collect();
    json!({"id": log.id().to_string(), "branches": branches})
}

fn describe_branch(log: &dyn Log, branch: &Branch) -> Value {
    let events = read_all(log, branch.id).expect("the branch is there");
    let events: Vec<Event> = events.collect::<Result<_, _>>().expect("no event is damaged");
    verify(log, branch.id).expect("the chain holds");
    let fork = branch.fork.as_ref().map(|fork| {
        json!({
            "parent": fork.parent.get(), "cut": fork.cut.count(), "link": fork.link.to_string(),
            "serving": fork.serving,
        })
    });
    let tip = branch.tip;
    // Of the many alike, the last is enough: its link covers the others.
    let shown =
        events.iter().filter(|event| event.offset().get() < 6 || event.offset().get() > 1193);
    json!({
        "name": branch.name.to_string(), "fork": fork, "head": tip.head.count(),
        "link": tip.link.to_string(), "epoch": tip.epoch.get(), "taken": tip.taken,
        "events": shown.map(describe_event).collect::<Vec<_>>(),
    })
}

fn describe_event(event: &Event) -> Value {
    let draft = event.to_draft();
    let cause = draft.cause.map(|cause| match cause {
        Cause::Action { action } => json!({"action": action.to_string()}),
        Cause::Firing { event, behavior, row } => {
            let row = row.iter().map(|bound| match bound {
                Bound::Element(id) => json!(id.as_str()),
                Bound::Path(ids) => json!(ids.iter().map(|id| id.as_str()).collect::<Vec<_>>()),
            });
            let row: Vec<Value> = row.collect();
            json!({"event": event.to_string(), "behavior": behavior.as_str(), "match": row})
        }
    });
    json!({
        "offset": event.offset().get(), "id": draft.id.to_string(), "kind": draft.kind.as_str(),
        "payload": draft.payload, "actor": draft.actor.as_str(), "cause": cause,
        "changes": draft.changes.iter().map(Change::to_json).collect::<Vec<_>>(),
        "taken": draft.taken, "key": draft.key.as_deref(), "time": draft.time.to_string(),
        "salt": draft.salt.map(|salt| hex(&salt)), "extra": draft.extra,
        "digest": event.digest().to_string(), "record": hex(event.record()),
    })
}

fn golden_json() -> Value {
    let text = fs::read_to_string(golden("format-1.json")).expect("the golden file");
    serde_json::from_str(&text).expect("the golden file is JSON")
}

/// Makes the golden files anew when that is asked for.
fn renew() {
    if std::env::var("STARLING_GOLDEN").is_ok_and(|wish| wish == "write") {
        let path = golden("format-1.log");
        fs::create_dir_all(golden("")).expect("the folder is made");
        drop(fs::remove_file(&path));
        drop(fs::remove_file(golden("format-1.log.anchor")));
        let log = RedbLog::create(&path, STORE).expect("a store is made");
        write(&log);
        let text = serde_json::to_string_pretty(&describe(&log)).expect("it is JSON");
        fs::write(golden("format-1.json"), text + "\n").expect("the file is written");
        log.close().expect("the store closes");
    }
}

#[test]
fn a_store_of_format_1_opens_and_reads_the_same() {
    renew();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("format-1.log");
    fs::copy(golden("format-1.log"), &path).expect("the golden store");
    fs::copy(golden("format-1.log.anchor"), folder.path().join("format-1.log.anchor"))
        .expect("its anchor");
    let log = RedbLog::open(&path).expect("a golden store opens");
    assert_eq!(describe(&log), golden_json());
    let main = log.branches().expect("branches")[0].id;
    for event in read_all(&log, main).expect("main") {
        let event = event.expect("no event is damaged");
        let again = Batch::of_drafts(event.offset(), &[event.to_draft()]).expect("a draft");
        let again = again.events().next().expect("one event").clone();
        assert_eq!(hex(again.record()), hex(event.record()), "{event:?} is written the same");
    }
    assert_eq!(log.find_key(main, "order 17").expect("main"), Some(log::Offset::new(4)));
    let text = "é".repeat(2049);
    let blob = log.blob(&log::Hash::of(text.as_bytes())).expect("the blob is whole");
    assert_eq!(blob.as_deref(), Some(text.as_bytes()));
}

#[test]
fn the_golden_events_are_written_the_same_today() {
    renew();
    let log = log::MemoryLog::new(STORE);
    write(&log);
    assert_eq!(describe(&log), golden_json());
}
