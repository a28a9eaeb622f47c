//! What metadata is read as, and what is said of metadata that cannot be used.

use super::*;
use serde_json::json;

fn read(fields: Value) -> Result<Metadata, MetadataError> {
    Metadata::from_json(fields.as_object().expect("an object"), "b.star")
}

/// With a name and a trigger unless the fields have their own.
fn check(fields: Value, expected: &str) {
    let mut whole = json!({"name": "b", "match": "(a:A)"});
    for (name, value) in fields.as_object().expect("an object") {
        whole[name] = value.clone();
    }
    let found = read(whole).map_or_else(|error| error.to_string(), |_| "fine".to_owned());
    assert_eq!(found, expected, "{fields}");
}

#[test]
fn metadata_survives_the_way_through_its_event() {
    let whole = json!({
        "name": "book_flight", "description": "Books.", "on": "trip.*",
        "where": {"trip.city": ["Shenzhen", "Berlin"], "n": 1, "x": null},
        "match": "(t:Trip)", "each": true, "after": 3, "wakes_self": true, "from": "beginning",
        "reads": {"f": "(t)-[:OFFERED]->(f:Flight)"}, "writes": ["Trip.status", "CHOSE"],
        "emits": ["flight.*"], "effects": ["tool:*", "fs.read"],
        "budget": {"events": 10, "depth": 3, "effects": 4}, "order": -2,
        "enabled": false, "version": "2",
    });
    let metadata = read(whole.clone()).expect("metadata");
    let json = metadata.to_json();
    assert_eq!(read(Value::Object(json.clone())).expect("it is read back"), metadata);
    let mut same = whole;
    same["reads"]["f"] = metadata.reads["f"].as_str().into();
    same["match"] = metadata.trigger.condition.as_ref().expect("a match").pattern().into();
    assert_eq!(Value::Object(json), same);
}

#[test]
fn what_is_as_it_would_be_unsaid_is_left_out() {
    let said = json!({
        "name": "b", "on": "k", "description": null, "each": false, "after": 0, "order": 0,
        "enabled": true, "effects": [], "guard": false, "reads": {}, "budget": {},
    });
    let json = Value::Object(read(said).expect("metadata").to_json());
    assert_eq!(json, json!({"name": "b", "on": "k"}));
}

#[test]
fn an_unknown_or_mistyped_field_is_named() {
    check(json!({}), "fine");
    check(json!({"mathc": "x"}), "b.star.mathc: there is no such field; did you mean `match`?");
    check(json!({"order": "1"}), "b.star.order: expected a whole number, found \"1\"");
    check(json!({"order": 1.5}), "b.star.order: expected a whole number, found 1.5");
    check(json!({"each": 1}), "b.star.each: expected true or false, found 1");
    check(json!({"match": ""}), "b.star.match: expected a text that is not empty, found \"\"");
    check(json!({"writes": "x"}), "b.star.writes: expected a list of texts, found \"x\"");
    check(json!({"reads": {"a": 1}}), "b.star.reads.a: expected a pattern as a text, found 1");
    check(
        json!({"name": "Book Flight"}),
        "b.star.name: `Book Flight` cannot be a name; a name has 1 to 100 of a-z 0-9 _ and \
         begins with a letter",
    );
    check(
        json!({"budget": {"event": 1}}),
        "b.star.budget.event: there is no such field; did you mean `events`?",
    );
    check(
        json!({"writes": ["Trip."]}),
        "b.star.writes: expected a type, such as `Trip`, or a property, such as `Trip.status` \
         or `Trip.*`, found `Trip.`",
    );
}

#[test]
fn a_guard_cannot_be_passed_by() {
    let guard = |more: Value| {
        let mut fields =
            json!({"match": null, "on": "effect.requested", "guard": true, "effects": []});
        for (name, value) in more.as_object().expect("an object") {
            fields[name] = value.clone();
        }
        fields
    };
    check(guard(json!({})), "fine");
    check(guard(json!({"where": {"effect": "tool:pay"}})), "fine");
    check(
        guard(json!({"on": "effect.*"})),
        "b.star.on: a guard hears requests; write on = \"effect.requested\"",
    );
    check(
        guard(
            json!({"match": "(b:Budget) WHERE b.amount < event.payload.args.amount", "each": true}),
        ),
        "b.star.match: a guard's pattern binds what it is about: write (request:_Effect)",
    );
    let about = |pattern: &str| json!({"match": pattern, "guard": true});
    check(
        about("(request:_Effect {effect: 'tool:pay'})<-[:PAID_BY]-(t:Trip {closed: true})"),
        "fine",
    );
    check(guard(json!({"match": "(request:_Effect)<-[:PAID_BY]-(t:Trip)"})), "fine");
    let missing = "may be missing, and a missing value matches nothing, so the guard would not be asked; \
                   compare it in the function";
    for (pattern, what) in [
        ("(request:_Effect) WHERE request.args.amount > 100", "`args` of a request"),
        ("(request:_Effect {behavior: 'pay'})", "`behavior` of a request"),
        ("(request:_Effect) WHERE event.payload.effect = 'tool:pay'", "what `event` says"),
    ] {
        check(guard(json!({"match": pattern})), &format!("b.star.match: {what} {missing}"));
    }
    check(
        about("(request:_Effect), (b:Budget)"),
        "b.star.match: the request does not lead to all of the pattern; put what stands apart into \
         `reads`",
    );
    let vanishes = json!({"match": null, "vanishes": "(request:_Effect)", "guard": true});
    check(vanishes, "b.star.on: a guard hears requests; write on = \"effect.requested\"");
    check(guard(json!({"after": 1})), "b.star.after: a guard speaks at once; drop `after`");
}

#[test]
fn a_delay_is_a_number_of_events_or_a_duration() {
    check(json!({"after": "5s"}), "fine");
    check(
        json!({"after": "soon"}),
        "b.star.after: `soon` is neither a number of events nor a duration",
    );
    let said = ["250ms", "90s", "10m", "2h", "1d", "1 s", "s", "-1s"];
    let ms = said.map(duration_ms);
    let (some, none) = ms.split_at(5);
    assert_eq!(some, [250, 90_000, 600_000, 7_200_000, 86_400_000].map(Some));
    assert_eq!(none, [None, None, None]);
    check(
        json!({"budget": {"cost": 1}}),
        "b.star.budget.cost: this bound is one of the whole flock, in flock.toml, or of a chain of \
         causes, with narrow(budget = {…})",
    );
}

#[test]
fn parts_of_a_trigger_that_do_nothing_together_are_refused() {
    let nothing = read(json!({"name": "b"})).expect_err("no trigger").to_string();
    let expected = "b.star.match: nothing wakes this behavior; give it `match`, `vanishes` or `on`";
    assert_eq!(nothing, expected);
    check(
        json!({"vanishes": "(b:B)"}),
        "b.star.vanishes: a behavior has `match` or `vanishes`, not both; make them two \
         behaviors",
    );
    check(
        json!({"match": null, "vanishes": "(b:B)", "on": "k"}),
        "b.star.vanishes: a match that vanishes is itself the trigger; drop `on`",
    );
    check(
        json!({"where": {"a": 1}}),
        "b.star.where: `where` is about the payload of an event; it needs `on`",
    );
    check(
        json!({"each": true}),
        "b.star.each: `each` is every standing match at an event; it needs `on` and `match`",
    );
    check(json!({"from": "beginning"}), "b.star.from: `from` is about events; it needs `on`");
    check(
        json!({"on": "k", "match": null, "where": {"a": []}}),
        "b.star.where.a: an empty list accepts nothing; give the values that are accepted",
    );
}

#[test]
fn a_read_binds_something_new_under_a_name_of_its_own() {
    let bound = "is bound already, by the match or by the runtime; rename the read";
    check(json!({"reads": {"a": "(a)-->(x)"}}), &format!("b.star.reads.a: `a` {bound}"));
    check(json!({"reads": {"now": "(x:X)"}}), &format!("b.star.reads.now: `now` {bound}"));
    check(
        json!({"reads": {"x": "(a)-->(a)"}}),
        "b.star.reads.x: it binds nothing that the match does not; name what is to be read",
    );
    let names = read(json!({
        "name": "b", "match": "(a:A)-[e:E]->(:B)", "reads": {"x": "(a)-->(y)"},
    }));
    assert_eq!(names.expect("metadata").bound_names(), ["event", "a", "e", "x"]);
}
