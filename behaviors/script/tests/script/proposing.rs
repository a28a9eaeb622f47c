//! What a reaction proposes.

use crate::{check, check_error};

#[test]
fn an_event_carries_every_kind_of_change() {
    check(
        "t = create('Trip', a = 1, b = 2.0, c = [None, {'x': True}])\n\
         emit('x.y', {'k': (1, 'two')}, t, link(t, 'PART', trip, w = 1), set(t, z = 1),\n\
         \x20    ensure('Z', id = 'z:1'), ensure_link('z:1', 'E', t), add(b, amount = -1),\n\
         \x20    append(trip, tags = 'x'), unset(trip, 'a', 'b'), remove(flights[0]),\n\
         \x20    key = 'once')\n\
         emit('x.z', {}, set(t, later = True), link(trip, 'NEXT', 'trip:9', id = 'chosen'))",
        r##"x.y {"k":[1,"two"]} key once
  {"create":null,"properties":{"a":1,"b":2.0,"c":[null,{"x":true}]},"type":"Trip"}
  {"from":"@0#0","link":"PART","properties":{"w":1},"to":"trip:1"}
  {"properties":{"z":1},"set":"@0#0"}
  {"ensure":"z:1","properties":{},"type":"Z"}
  {"ensure_link":"E","from":"z:1","to":"@0#0"}
  {"add":"budget:1","properties":{"amount":-1}}
  {"append":"trip:1","properties":{"tags":"x"}}
  {"names":["a","b"],"unset":"trip:1"}
  {"remove":"f1"}
x.z {}
  {"properties":{"later":true},"set":"@0#0"}
  {"from":"trip:1","id":"chosen","link":"NEXT","to":"trip:9"}"##,
    );
    check("emit('x.y')", "x.y {}");
    check(
        "emit('x.y', {}, *[set(f, seen = True) for f in flights])",
        "x.y {}\n  {\"properties\":{\"seen\":true},\"set\":\"f1\"}\n  \
         {\"properties\":{\"seen\":true},\"set\":\"f2\"}",
    );
    check(
        "emit('x.y', {}, set(trip, x = 1, type = 2, id = 3))",
        "x.y {}\n  {\"properties\":{\"id\":3,\"type\":2,\"x\":1},\"set\":\"trip:1\"}",
    );
}

#[test]
fn values_keep_their_kind_both_ways() {
    check(
        "emit('x', event.payload)",
        "x {\"a\":{\"b\":1},\"big\":18446744073709551615,\"one\":1,\"onef\":1.0,\
         \"small\":-9223372036854775808}",
    );
    check(
        "emit('x', {'a': 9223372036854775807 + 1, 'b': 0.1 + 0.2, 'c': 4 / 2, 'd': 4 // 2})",
        "x {\"a\":9223372036854775808,\"b\":0.30000000000000004,\"c\":2.0,\"d\":2}",
    );
}

#[test]
fn a_long_text_passes_as_what_stands_for_it() {
    let blob = serde_json::json!({"$blob": "ab".repeat(32), "head": "It began", "size": 5000});
    let mut scene = crate::scene();
    scene["event"]["payload"] = serde_json::json!({"text": blob});
    let script = format!(
        "{}def b(event, trip):\n    text = event.payload.text\n    \
         print(text.size, text['$blob'][:4])\n    \
         emit('x', {{}}, set(trip, text = text))\n",
        crate::DECLARED
    );
    let loaded = script::ScriptHost::default().load("b.star", &script).expect("it loads");
    let scene = behaviors::testing::Scene::new(scene);
    let reply = behaviors::testing::react(&**loaded[0].behavior(), &scene).expect("it reacts");
    assert_eq!(reply.printed, ["5000 abab"]);
    let log::Change::Write { properties, .. } = &reply.proposals[0].changes[0] else {
        panic!("a write");
    };
    assert_eq!(properties["text"], blob);
}

#[test]
fn what_json_cannot_hold_is_refused_with_its_place() {
    let infinity = "cannot be stored; test for it and emit what it means";
    check_error(
        "x = 1e300 * 1e10\nemit('x',\n  {'deep': {'price': x}})",
        2,
        1,
        &format!("payload.deep.price: infinity {infinity}"),
    );
    check_error(
        "x = 1e300 * 1e10\nset(trip, a = [1, x - x])",
        2,
        1,
        &format!("a.1: NaN {infinity}"),
    );
    check_error(
        "emit('x', {'n': 1 << 70})",
        1,
        1,
        "payload.n: the integer 1180591620717411303424 fits neither 64 bits nor JSON; \
         use str(1180591620717411303424)",
    );
    check_error("emit('x', {1: 2})", 1, 1, "payload: the key 1 is not a string; write str(1)");
    check_error(
        "emit('x', {'t': trip})",
        1,
        1,
        "payload.t: Trip(trip:1) is an element; write its id, x.id",
    );
    check_error(
        "emit('x', {'t': len})",
        1,
        1,
        "payload.t: len of type function cannot be stored; write it as text or as a dict",
    );
    check_error("emit('x', [1])", 1, 1, "payload is a dict, found [1] of type list");
    check_error(
        "x = []\nx.append(x)\nemit('x', {'x': x})",
        3,
        1,
        "payload.x.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.…: nested more than 64 deep; flatten it",
    );
}

#[test]
fn a_change_belongs_to_exactly_one_event() {
    let lost = "this change is in no event, so it would be lost; \
                give it to emit(kind, payload, change)";
    check_error("x = 1\nc = create('A',\n  n = 1)\nemit('x')", 2, 5, lost);
    check_error("set(trip, n = 1)", 1, 1, lost);
    check_error(
        "c = create('A')\nemit('x', {}, c)\nemit('x', {}, c)",
        3,
        1,
        "change 1 of `x` is in an event already; make another",
    );
    check_error(
        "c = create('A')\nemit('x', {}, link(c, 'X', trip), c)",
        2,
        1,
        "change 1 of `x`: it is about something that is not made yet; emit what makes it before, \
         or put it before in the same event",
    );
    check_error(
        "c = set(trip, n = 1)\nemit('x', {}, c, add(c, n = 1))",
        2,
        1,
        "change 2 of `x`: it is about a change that makes nothing; give the element itself",
    );
}

#[test]
fn a_slip_in_emit_is_told_with_what_to_write() {
    check_error(
        "emit('x', set(trip, n = 1))",
        1,
        1,
        "the payload comes before the changes: emit(kind, {}, change)",
    );
    check_error(
        "emit('x', {}, [set(trip, n = 1)])",
        1,
        1,
        "what follows the payload is changes, such as set(x, name = value), found [<change>] of \
         type list; a list of changes is given as *changes",
    );
    check_error(
        "emit('x', {}, add(trip, tags = 'x'))",
        1,
        15,
        "add adds numbers, but `tags` is \"x\"; use set or append",
    );
    check_error(
        "emit('x', {}, set(trip))",
        1,
        15,
        "set writes nothing: name the properties, set(x, property = value)",
    );
    check_error(
        "emit('x', {}, ensure('A'))",
        1,
        15,
        "ensure needs the id to look for, id = \"…\"; create makes a new one",
    );
    check_error(
        "emit('x', {}, set(3, n = 1))",
        1,
        15,
        "expected an element, something created here, or an id, found 3 of type int",
    );
}

#[test]
fn a_script_cannot_forge_an_outcome() {
    let only = "is written by the runtime only, so that nobody can forge it; \
                emit an event of a kind of your own";
    for kind in ["effect.ended", "grant.given", "behavior.failed", "attempt.ended"] {
        check_error(&format!("emit('{kind}')"), 1, 1, &format!("`{kind}` {only}"));
    }
    check_error(
        "emit('x', {}, create('_Grant'))",
        1,
        1,
        "elements of type `_Grant` are written by the runtime only; a type of your own does not \
         begin with `_`",
    );
}

#[test]
fn a_script_is_held_to_what_it_declares() {
    let script = "behavior(name = 'b', match = '(trip:Trip)', emits = ['a.*'],\n         \
                  writes = ['Trip.n'])\n\
                  def b(trip):\n    emit('a.x', {}, set(trip, n = 1))\n    \
                  emit('a.y', {}, set(trip, m = 1))\n";
    let found = crate::outcome(script, script::Limits::default());
    assert_eq!(
        found.trim_end(),
        "error: behaviors/b.star:5:5: b does not declare that it writes `Trip.m`; \
         add \"Trip.m\" to its `writes`\n5 |     emit('a.y', {}, set(trip, m = 1))\n  |     ^"
    );
}

#[test]
fn what_is_printed_is_beside_the_proposals() {
    check("print('a', 1)\nemit('x')\nprint(2.0)", "print: a 1\nprint: 2.0\nx {}");
}

#[test]
fn a_reaction_that_fails_proposes_nothing() {
    check_error("emit('x')\nfail('no', trip.n)", 2, 1, "fail: no 3");
    check_error(
        "emit('x')\ny = trip.n + 'a'",
        2,
        5,
        "Operation `+` not supported for types `int` and `string`",
    );
}

/// The words besides events: what they propose, and who may say them.
#[test]
fn a_reaction_asks_for_effects_and_a_guard_judges_them() {
    let scene = || {
        serde_json::json!({
            "event": {"kind": "effect.requested", "payload": {"effect": "tool:x", "args": {"n": 1}}},
            "bound": {"trip": {"id": "trip:1", "type": "Trip"}},
        })
    };
    let says = |fields: &str, parameter: &str, body: &str, expected: &str| {
        let text = format!("behavior(name = 'b', {fields})\ndef b({parameter}):\n    {body}\n");
        let loaded = script::ScriptHost::default().load("b.star", &text).expect("it loads");
        let scene = behaviors::testing::Scene::new(scene());
        let reply = behaviors::testing::react(&**loaded[0].behavior(), &scene);
        let found = reply.as_ref().map_or_else(
            |error| error.message.clone(),
            |_| behaviors::testing::reply_text(&reply).trim_end().to_owned(),
        );
        assert_eq!(found, expected, "{body}");
    };
    let asks = "match = '(trip:Trip)', effects = ['tool:*']";
    says(
        asks,
        "trip",
        "emit('x', {}, link(trip, 'PAYS', request('tool:pay', {'n': 1}, key = 'pay')))",
        "request tool:pay {\"n\":1} key pay\nx {}\n  \
         {\"from\":\"trip:1\",\"link\":\"PAYS\",\"to\":\"@0#0\"}",
    );
    says(
        asks,
        "trip",
        "emit('x', {}, set(request('tool:pay'), status = 'succeeded'))",
        "elements of type `_Effect` are written by the runtime only; a type of your own does not \
         begin with `_`",
    );
    says(
        asks,
        "trip",
        "request('fs.write', {})",
        "b does not declare the effect `fs.write`; add \"fs.write\" to its `effects`",
    );
    says(
        asks,
        "trip",
        "narrow(effects = ['tool:a'], budget = {'effects': 3})",
        "narrow  {\"budget\":{\"effects\":3},\"effects\":[\"tool:a\"]}",
    );
    says(asks, "trip", "allow()", "`allow` is a guard's word; b says no guard = True");
    let guards = "on = 'effect.requested', guard = True";
    says(guards, "event", "allow()", "allow  {}");
    says(guards, "event", "deny('too much')", "deny  {\"reason\":\"too much\"}");
    says(guards, "event", "rewrite({'n': event.payload.args.n + 1})", "rewrite  {\"n\":2}");
    says(guards, "event", "allow(); allow()", "b gives two verdicts; give one");
}
