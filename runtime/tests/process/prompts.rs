//! Prompts: answered by a recorded model, or visibly not.

use serde_json::{Value, json};

use crate::Place;

const PLANNING: &str = r#"
[grants]
effects = ["model:planner"]
[models.planner]
provider = "recorded"
answers = "answers.jsonl"
[settings]
margin = 0.1
[[start]]
kind = "goal.stated"
changes = [{ create = "trip:1", type = "Trip", properties = { status = "open", city = "Shenzhen" } }]
"#;

const PLAN: &str = r#"---
description: Plans a trip that is open.
match: "(trip:Trip {status: 'open'})"
emits: [plan.made]
writes: [Trip.status, Trip.plan]
model: planner
answer: {type: object, required: [plan], properties: {plan: {type: string}}}
propose:
  - emit: plan.made
    changes: [{set: "{{ trip.id }}", properties: {plan: "{{ answer.plan }}", status: planned}}]
---
Plan {{ trip.city }} with a margin of {{ settings.margin }}.
"#;

fn planned(answer: &Value) -> Place {
    let content = "Plan Shenzhen with a margin of 0.1.";
    let schema =
        json!({"type": "object", "required": ["plan"], "properties": {"plan": {"type": "string"}}});
    let args = json!({"messages": [{"role": "user", "content": content}], "schema": schema});
    let line = json!({"effect": "model:planner", "args": args, "result": answer}).to_string();
    let files = [("behaviors/plan_trip.md", PLAN), ("answers.jsonl", line.as_str())];
    let place = Place::new(PLANNING, &files);
    place.ok(&["run", ".", "--trust"]);
    place.ok(&["replay", "--refire"]);
    place
}

#[test]
fn a_prompt_is_answered_by_a_recorded_model() {
    let long = "by air ".repeat(2000);
    for answer in
        [json!({"answer": {"plan": long}}), json!({"text": format!("{{\"plan\": \"{long}\"}}")})]
    {
        let place = planned(&answer);
        let trip = place.ok(&["show", "trip:1", "--json"]).out;
        assert!(
            trip.contains("\"status\":\"planned\"") && trip.contains("\"size\":14000"),
            "{trip}"
        );
        assert_eq!(place.of_kind("plan.made").len(), 1);
        assert_eq!(place.of_kind("effect.dispatched")[0]["executor"], "recorded");
        // The log of one run is the record of another.
        let log = place.ok(&["export"]).out;
        place.write("answers.jsonl", &log);
        place.ok(&["run", ".", "--trust", "--fresh"]);
        assert_eq!(place.of_kind("plan.made").len(), 1);
    }
}

#[test]
fn a_wrong_answer_is_seen_and_nothing_of_it_is_applied() {
    let place = planned(&json!({"answer": {"plan": 7}}));
    assert!(place.failure().contains("/plan: 7 is not of type \"string\""), "{}", place.failure());
    assert_eq!(place.of_kind("plan.made").len(), 0);
    let trip = place.ok(&["show", "trip:1", "--json"]).out;
    assert!(trip.contains("\"status\":\"open\""), "{trip}");
}

#[test]
fn what_no_model_here_can_answer_is_told() {
    let place = Place::new(PLANNING, &[("behaviors/plan_trip.md", PLAN), ("answers.jsonl", "")]);
    place.ok(&["run", ".", "--trust"]);
    let failure = place.failure();
    assert!(failure.contains("no answer of model:planner is recorded for this"), "{failure}");
    place.write("flock.toml", &PLANNING.replace("\"recorded\"", "\"openai\""));
    place.fails(&["run", ".", "--trust"], 2, "there is no provider `openai` in this version");
    place.write(
        "flock.toml",
        &PLANNING
            .replace("[models.planner]\nprovider = \"recorded\"\nanswers = \"answers.jsonl\"", ""),
    );
    place.ok(&["run", ".", "--trust", "--fresh"]);
    assert!(place.failure().contains("there is no effect `model:planner`"), "{}", place.failure());
}
