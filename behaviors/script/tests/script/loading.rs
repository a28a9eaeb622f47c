//! What a file may declare.

use script::{Limits, ScriptHost};

use crate::{check_refused, outcome};

const FUNCTION: &str = "def b(trip):\n    pass\n";

#[test]
fn one_file_declares_several_behaviors() {
    let script = "behavior(name = 'b', match = '(t:T)')\ndef b(t):\n    helper('b')\n\
                  behavior(name = 'a', on = 'k', enabled = True)\ndef a(event):\n    helper('a')\n\
                  behavior(name = 'c', on = 'k', enabled = False)\ndef c(event):\n    helper('c')\n\
                  def helper(x):\n    print(x)\n";
    let loaded = ScriptHost::default().load("b.star", script).expect("it loads");
    let names: Vec<&str> = loaded.iter().map(|one| one.metadata().name.as_str()).collect();
    assert_eq!(names, ["b", "a"], "the one that is not enabled is left out");
    assert_eq!(loaded[0].hash(), loaded[1].hash());
    assert!(loaded[1].actor().starts_with("behavior:a@"));
}

#[test]
fn the_metadata_is_that_of_the_call() {
    let script = "behavior(name = 'b', on = 'k*', where = {'a.b': [1, 'x']}, from_ = 'beginning',\n\
                  order = 3, description = 'Does it.')\ndef b(event):\n    pass\n";
    let loaded = ScriptHost::default().load("b.star", script).expect("it loads");
    assert_eq!(
        serde_json::Value::Object(loaded[0].metadata().to_json()).to_string(),
        "{\"description\":\"Does it.\",\"from\":\"beginning\",\"name\":\"b\",\"on\":\"k*\",\
         \"order\":3,\"where\":{\"a.b\":[1,\"x\"]}}"
    );
}

#[test]
fn a_parameter_is_a_name_that_is_bound() {
    let declared = "behavior(name = \"b\", match = \"(trip:Trip)\")\n";
    check_refused(
        &format!("{declared}def b(tripp):\n    pass\n"),
        "behaviors/b.star:2:1: b gets what its event, match and reads bind; the parameter `tripp` \
         is not known; did you mean `trip`?\n2 | def b(tripp):\n  | ^",
    );
    check_refused(
        &format!("{declared}def b(trip, weather = 3):\n    pass\n"),
        "behaviors/b.star:2:1: b gets what its event, match and reads bind; the parameter \
         `weather` is not known; there is event, trip, settings, rand, now\n\
         2 | def b(trip, weather = 3):\n  | ^",
    );
    check_refused(
        &format!("{declared}def b(*trip):\n    pass\n"),
        "behaviors/b.star:2:1: b is given each thing by its name; write the names in place of * and **\n\
         2 | def b(*trip):\n  | ^",
    );
}

#[test]
fn a_behavior_has_a_function_of_its_name() {
    let declared = "behavior(name = \"b\", on = \"k\")";
    let at = |message: &str| format!("behaviors/b.star:1:1: {message}\n1 | {declared}\n  | ^");
    check_refused(
        &format!("{declared}\ndef bb(event):\n    pass\n"),
        &at("there is no function `b` to react with; did you mean `bb`?; write def b(…):"),
    );
    check_refused(&format!("{declared}\nb = 3\n"), &at("`b` is no function; write def b(…):"));
    check_refused(
        "x = 1\n",
        "behaviors/b.star: this file declares no behavior; write behavior(name = \"…\", …) and a \
         function of that name",
    );
    check_refused(
        &format!("{declared}\n{declared}\ndef b(event):\n    pass\n"),
        &format!(
            "behaviors/b.star:2:1: b is declared twice in this file; give one of them another \
             name\n2 | {declared}\n  | ^"
        ),
    );
}

#[test]
fn in_a_longer_call_it_is_told_at_its_field() {
    let refused = |fields: &str, expected: &str| {
        let script = format!("behavior(\n    name = \"b\",\n{fields})\ndef b(trip):\n    pass\n");
        let error = ScriptHost::default().load("b.star", &script).expect_err("it is wrong");
        let told = error.to_string();
        assert!(told.starts_with(expected), "{told}");
        let line = error.details().line.expect("a line") as usize;
        assert_eq!(error.details().line_text.as_deref(), script.lines().nth(line - 1));
    };
    refused(
        "    wites = [],\n",
        "b.star:3:5: b.wites: there is no such field; did you mean `writes`?",
    );
    let reads = "    on = \"k\",\n    reads = {\n        \"all\": \"(all:Trip\",\n    },\n";
    refused(reads, "b.star:5:9: b.reads.all: pattern, line 1, column 10");
    refused("    match = \"(t:T)\", from_ = \"now\",\n", "b.star:1:1: b.from: ");
}

#[test]
fn metadata_that_cannot_be_used_is_told_at_its_call() {
    let refused = |fields: &str, message: &str| {
        let declared = format!("behavior(name = \"b\", match = \"(trip:Trip)\", {fields})");
        check_refused(
            &format!("{declared}\n{FUNCTION}"),
            &format!("behaviors/b.star:1:1: {message}\n1 | {declared}\n  | ^"),
        );
    };
    refused(
        "guard = True",
        "b.match: a guard's pattern binds what it is about: write (request:_Effect)",
    );
    refused("wites = []", "b.wites: there is no such field; did you mean `writes`?");
    refused("after = \"soon\"", "b.after: `soon` is neither a number of events nor a duration");
}

#[test]
fn what_a_reaction_says_is_refused_while_a_file_is_loaded() {
    for call in ["request(\"tool:x\", {})", "allow()", "deny(\"no\")", "rewrite({})", "narrow()"] {
        let name = call.split('(').next().expect("a name");
        check_refused(
            &format!(
                "{call}
"
            ),
            &format!(
                "behaviors/b.star:1:1: {name} belongs into a reaction; a file that is loaded only \
                 declares
1 | {call}
  | ^"
            ),
        );
    }
}

#[test]
fn loading_reaches_nothing_outside_and_proposes_nothing() {
    check_refused(
        "load(\"x.star\", \"y\")\n",
        "behaviors/b.star:1:1: `load` is not allowed: a script stands alone\n\
         1 | load(\"x.star\", \"y\")\n  | ^",
    );
    check_refused(
        "emit(\"x\")\n",
        "behaviors/b.star:1:1: emit belongs into a reaction; a file that is loaded only declares\n\
         1 | emit(\"x\")\n  | ^",
    );
    check_refused(
        "print(\"x\")\n",
        "behaviors/b.star:1:1: print belongs into a reaction; a file that is loaded only declares\n\
         1 | print(\"x\")\n  | ^",
    );
    let inside = "behavior(name = 'b', match = '(trip:Trip)')\ndef b(trip):\n    \
                  behavior(name = 'c', on = 'k')\n";
    assert_eq!(
        outcome(inside, Limits::default()).lines().next(),
        Some(
            "error: behaviors/b.star:3:5: behavior(…) belongs at the top of the file; a reaction \
             declares nothing"
        )
    );
}

#[test]
fn a_file_that_cannot_be_read_is_told_with_its_place() {
    check_refused(
        "behavior(name = \"b\", on = \"k\")\ndef b(event):\n    while True:\n        pass\n",
        "behaviors/b.star:3:5: Parse error: cannot use reserved keyword `while`\n\
         3 |     while True:\n  |     ^",
    );
    check_refused(
        "behavior(name = \"b\", on = \"k\")\ndef b(event):\n    emitt(\"x\")\n",
        "behaviors/b.star:3:5: Variable `emitt` not found, did you mean `emit`?\n\
         3 |     emitt(\"x\")\n  |     ^",
    );
    check_refused(
        "x = f\"{1:.2f}\"\n",
        "behaviors/b.star:1:9: a format such as {x:.2f} is not supported; write {round(x, 2)} or \
         \"%.2f\" % x\n1 | x = f\"{1:.2f}\"\n  |         ^",
    );
}
