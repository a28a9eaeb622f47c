//! What a reaction sees.

use crate::{check, check_error};

#[test]
fn an_element_has_its_own_id_and_type_and_any_property() {
    check("print(trip.id, trip.type, trip.status)", "print: trip:1 Trip compared");
    check("print(trip['id'], trip['type'])", "print: own round");
    check("print(trip.nothing, trip['nothing'])", "print: None None");
    check("print('n' in trip, 'nothing' in trip)", "print: True False");
    check("print(hasattr(trip, 'n'), hasattr(trip, 'nothing'))", "print: True False");
    check("print(trip, flights)", "print: Trip(trip:1) [Flight(f1), Flight(f2)]");
}

#[test]
fn elements_are_equal_by_id_and_can_be_keys() {
    check("print(trip == trip, trip == b, flights[0] == offers[0].f)", "print: True False True");
    check("print({trip: 1}[trip], trip in [b, trip])", "print: 1 True");
}

#[test]
fn the_event_and_its_payload_are_attributes() {
    check(
        "print(event.kind, event.payload.a.b, event.key, event.actor, event.time == now)",
        "print: trip.compared 1 once user:ann True",
    );
    check("print(event.payload.nothing, event.id)", "print: None 07070707070707070707070707070707");
    check(
        "print(len(event.payload), sorted(event.payload.a), 'a' in event.payload)",
        "print: 5 [\"b\"] True",
    );
    check(
        "print([k for k in trip.config], trip.config['items'])",
        "print: [\"deep\", \"items\"] [1]",
    );
    check(
        "print(trip.config == {'deep': {'k': 1}, 'items': [1]}, trip.config == {'deep': 1})",
        "print: True False",
    );
    check_error(
        "x = 1\nprint(event.kindd)",
        2,
        7,
        "Object of type `event` has no attribute `kindd`, did you mean `kind`?",
    );
    check_error(
        "print(event.payload.nothing.more)",
        1,
        7,
        "Object of type `NoneType` has no attribute `more`",
    );
}

#[test]
fn a_read_of_several_variables_gives_records() {
    check(
        "print(offers[0].f.price, offers[0].o.id, ends(offers[0].o))",
        "print: 300 o:1 (\"trip:1\", \"f1\")",
    );
    check("print(path, ends(path[0]))", "print: [NEXT(e:1)] (\"x\", \"y\")");
    check_error("ends(trip)", 1, 1, "only an edge has ends, found Trip(trip:1) of type element");
}

#[test]
fn a_setting_that_is_not_there_is_an_error() {
    check("print(settings.margin, settings['margin'], 'x' in settings)", "print: 0.1 0.1 False");
    check_error(
        "settings.margn",
        1,
        1,
        "Object of type `settings` has no attribute `margn`, did you mean `margin`?",
    );
    check_error("settings['margn']", 1, 1, "`settings` has no `margn`; did you mean `margin`?");
}

#[test]
fn nothing_that_is_seen_can_be_changed() {
    let seen = "what a reaction sees cannot be changed in place; emit an event with \
                set(x, name = value) instead";
    check_error("trip.status = 1", 1, 1, seen);
    check_error("trip['status'] = 1", 1, 1, seen);
    check_error("event.payload.a['b'] = 2", 1, 1, seen);
    check_error("settings.margin = 2", 1, 1, seen);
    let part = "this cannot be changed: it is part of what the reaction sees, or was made when the \
                file was loaded; change a copy, such as list(x)";
    check_error("trip.tags.append('b')", 1, 1, part);
    check(
        "tags = list(trip.tags)\ntags.append('b')\nprint(tags, trip.tags + [1])",
        "print: [\"a\", \"b\"] [\"a\", 1]",
    );
}

#[test]
fn random_numbers_are_those_of_the_firing() {
    let draw = "print(rand.below(1000), rand.uniform() < 1, rand.choice('xyz'.elems()) in 'xyz')";
    let found = crate::outcome(
        &format!("{}def b(rand):\n    {draw}\n", crate::DECLARED),
        script::Limits::default(),
    );
    let scene = behaviors::testing::Scene::new(crate::scene());
    let expected = scene.firing("b").rand.below(1000);
    assert_eq!(found.trim_end(), format!("print: {expected} True True"));
    check(
        "print(sorted(rand.shuffle([3, 1, 2])), type(rand.normal(10, 2.5)))",
        "print: [1, 2, 3] float",
    );
    check_error(
        "rand.below(0)",
        1,
        1,
        "rand.below needs a whole number from 1, found 0 of type int",
    );
    check_error("rand.choice([])", 1, 1, "rand.choice needs at least one value to choose from");
}

#[test]
fn numbers_are_the_same_on_every_machine() {
    check(
        "print(math.sqrt(2), math.exp(1), math.log(8, 2), math.pow(2, 0.5))",
        "print: 1.4142135623730951 2.7182818284590455 3.0 1.4142135623730951",
    );
    check(
        "print(math.floor(-1.5), math.ceil(1.2), math.floor(7), math.sin(1), math.cos(1))",
        "print: -2 2 7 0.8414709848078965 0.5403023058681398",
    );
    check(
        "print(math.pi, round(2.5), round(3.5), round(2.675, 2), sum([1, 2.5]), sum([1, 2]))",
        "print: 3.141592653589793 2 4 2.67 3.5 3",
    );
    check("print(7 // 2, -7 // 2, -7 % 3, 7 / 2, 1 == 1.0)", "print: 3 -4 2 3.5 True");
    check_error("math.sqrt(-1)", 1, 1, "math.sqrt(-1) is not a number that can be stored");
    check_error("math.log(0)", 1, 1, "math.log(0) is not a number that can be stored");
    check_error("math.sqrt('4')", 1, 1, "expected a number, found \"4\" of type string");
}

#[test]
fn any_expression_stands_in_an_f_string() {
    check(
        "print(f\"{flights[0].price + 1} of {trip['id']} is {trip.id!r} {{}}\")",
        "print: 301 of own is \"trip:1\" {}",
    );
    check_error(
        "x = f\"é {trip.n} {trip.n + 'a'}\"",
        1,
        19,
        "Operation `+` not supported for types `int` and `string`",
    );
}
