//! A prompt as a behavior: a model is asked what the text says, and its answer becomes proposals.
//!
//! ```text
//! ---
//! description: Plans a trip.
//! match: "(trip:Trip {status: 'open'})"
//! model: planner                     # asks the effect model:planner
//! answer: {type: object, required: [plan], properties: {plan: {type: string}}}
//! propose:
//!   - emit: plan.made                # its payload is the answer, unless `payload` says other
//!     changes: [{set: "{{ trip.id }}", properties: {plan: "{{ answer.plan }}"}}]
//! ---
//! Plan the trip to {{ trip.city }}.
//! ```

use std::fmt;
use std::sync::Arc;

use behaviors::{Behavior, Firing, KindPattern, Loaded, Metadata, Proposals, ReactError};
use jsonschema::Validator;
use minijinja::Value as Jinja;
use serde_json::{Map, Value, json};

use crate::file::{Said, error_at};
use crate::program::result_of;
use crate::template::{self, context, environment};
use crate::yaml;

/// The fields that are a prompt's own.
const FIELDS: [&str; 4] = ["model", "system", "answer", "propose"];
/// The fields of a proposal that are not the proposal's.
const TURNS: [&str; 2] = ["for_each", "when"];

struct Prompt {
    metadata: Metadata,
    path: String,
    text: String,
    /// The effect that answers: `model:NAME`.
    effect: String,
    system: Option<String>,
    /// What the model is told, and the line where that begins.
    body: (usize, String),
    answer: Option<(Value, Validator)>,
    propose: Vec<Map<String, Value>>,
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prompt({}, {})", self.path, self.effect)
    }
}

/// Loads a prompt; `path` is relative to the flock.
///
/// # Errors
/// It cannot be used, with file, line and column.
pub fn load_prompt(path: &str, text: &str) -> Result<Loaded, ReactError> {
    Ok(Loaded::new(Arc::new(Prompt::read(path, text)?), text))
}

impl Prompt {
    fn read(path: &str, text: &str) -> Result<Prompt, ReactError> {
        let (front, first, body) = split(path, text)?;
        let read = yaml::read(&front);
        let (fields, places) = read.map_err(|(place, what)| error_at(path, text, place, what))?;
        let mut said = Said { path, text, fields, places, start: (1, 1) };
        let (mut metadata, own) = said.metadata(&FIELDS)?;
        let model = match own.get("model") {
            Some(Value::String(model)) if is_name(model) => model.clone(),
            Some(_) => return Err(said.refuse("model", "model: expected a name such as `planner`")),
            None => {
                let what = "model: a prompt is answered by a model; write `model: NAME`, and \
                            [models.NAME] in flock.toml";
                return Err(said.refuse("model", what));
            }
        };
        let effect = format!("model:{model}");
        metadata.effects.push(KindPattern::parse(&effect).expect("a name is no glob"));
        let prompt = Prompt {
            metadata,
            path: path.to_owned(),
            text: text.to_owned(),
            effect,
            system: system(&own, &said)?,
            body: (first, body.to_owned()),
            answer: schema(&own, &said)?,
            propose: propose(&own, &said)?,
        };
        prompt.check(&said)?;
        Ok(prompt)
    }

    /// Reads every template once, so that a wrong one is told when the file is saved.
    fn check(&self, said: &Said<'_>) -> Result<(), ReactError> {
        let environment = environment();
        let (first, body) = &self.body;
        environment.template_from_str(body).map_err(|error| {
            let line = first + error.line().unwrap_or(1).saturating_sub(1);
            error_at(said.path, said.text, (line, 1), template::told(&error))
        })?;
        if let Some(system) = &self.system {
            let checked = template::check(&environment, &json!(system));
            checked.map_err(|what| said.refuse("system", format!("system: {what}")))?;
        }
        for (nth, proposal) in self.propose.iter().enumerate() {
            let field = format!("propose[{nth}]");
            let wrong = |what: String| said.refuse(&field, format!("{field}: {what}"));
            let mut values = proposal.clone();
            for turn in TURNS {
                if let Some(Value::String(expression)) = values.remove(turn) {
                    let read = environment.compile_expression(&expression);
                    read.map_err(|error| wrong(format!("{turn}: {}", template::told(&error))))?;
                }
            }
            template::check(&environment, &Value::Object(values)).map_err(wrong)?;
        }
        Ok(())
    }

    fn ask(&self, firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
        let (environment, context) = (environment(), context(firing));
        let file = (self.path.as_str(), self.text.as_str());
        let mut messages = Vec::new();
        if let Some(system) = &self.system {
            let rendered = template::fill(&environment, &json!(system), &context);
            let content = rendered.map_err(|what| self.error(&format!("system: {what}")))?;
            messages.push(json!({"role": "system", "content": content}));
        }
        let (first, body) = (self.body.0, self.body.1.as_str());
        let content = template::render(&environment, file, (first, body), &context)?;
        messages.push(json!({"role": "user", "content": content.trim()}));
        let mut args = json!({"messages": messages});
        if let Some((schema, _)) = &self.answer {
            args["schema"] = schema.clone();
        }
        out.request(&self.effect, args, None);
        Ok(())
    }

    fn propose(
        &self,
        answer: &Value,
        firing: &Firing<'_>,
        out: &mut Proposals<'_>,
    ) -> Result<(), ReactError> {
        let (environment, mut context) = (environment(), context(firing));
        context.push(("answer".to_owned(), template::jinja(answer)));
        for (nth, proposal) in self.propose.iter().enumerate() {
            let at = format!("{}, propose[{nth}]", self.path);
            let wrong = |what: String| ReactError::new(format!("{at}: {what}"));
            let expression = |turn: &str| proposal.get(turn).and_then(Value::as_str);
            let items: Vec<Option<Jinja>> = match expression("for_each") {
                None => vec![None],
                Some(each) => {
                    let list = template::evaluate(&environment, each, &context).map_err(wrong)?;
                    let items = list.try_iter().map_err(|error| wrong(template::told(&error)))?;
                    items.map(Some).collect()
                }
            };
            for item in items {
                let known = context.len();
                context.extend(item.map(|item| ("item".to_owned(), item)));
                let met = match expression("when") {
                    None => true,
                    Some(when) => {
                        let met = template::evaluate(&environment, when, &context);
                        met.map_err(wrong)?.is_true()
                    }
                };
                if met {
                    let said = self.said(&environment, proposal, &context);
                    out.say_json(&said.map_err(wrong)?, &at)?;
                }
                context.truncate(known);
            }
        }
        Ok(())
    }

    /// A proposal with its templates filled in.
    fn said(
        &self,
        environment: &minijinja::Environment<'_>,
        proposal: &Map<String, Value>,
        context: &[(String, Jinja)],
    ) -> Result<Value, String> {
        let mut proposal = proposal.clone();
        TURNS.iter().for_each(|turn| {
            proposal.remove(*turn);
        });
        if proposal.contains_key("emit") && !proposal.contains_key("payload") {
            let item = context.iter().any(|(name, _)| name == "item");
            let subject = if item { "{{ item }}" } else { "{{ answer }}" };
            let filled = template::fill(environment, &json!(subject), context)?;
            let payload = if filled.is_object() { filled } else { json!({"answer": filled}) };
            let mut whole = template::fill(environment, &Value::Object(proposal), context)?;
            whole["payload"] = payload;
            return Ok(whole);
        }
        template::fill(environment, &Value::Object(proposal), context)
    }

    /// What the model said, if it fits what was asked for.
    fn answer(&self, payload: &Map<String, Value>) -> Result<Value, String> {
        let result = result_of(payload)?;
        let text = result.get("text").and_then(Value::as_str);
        let answer = match (result.get("answer"), text) {
            (Some(answer), _) => answer.clone(),
            (None, Some(text)) if self.answer.is_some() => parsed(text)?,
            (None, Some(text)) => Value::from(text),
            (None, None) => return Err("the answer of a model has an `answer` or a `text`".into()),
        };
        let Some((_, schema)) = &self.answer else { return Ok(answer) };
        let errors = schema.iter_errors(&answer).take(4).map(|error| {
            let at = error.instance_path().to_string();
            if at.is_empty() { error.to_string() } else { format!("{at}: {error}") }
        });
        let errors: Vec<String> = errors.collect();
        if errors.is_empty() {
            return Ok(answer);
        }
        let shown: String = answer.to_string().chars().take(200).collect();
        Err(format!("the answer does not fit `answer`: {}; it was {shown}", errors.join("; ")))
    }

    fn error(&self, what: &str) -> ReactError {
        ReactError::new(format!("{}: {what}", self.path))
    }
}

/// A text as JSON; models like to fence it.
fn parsed(text: &str) -> Result<Value, String> {
    let inner = text.trim();
    let fenced = inner.strip_prefix("```json").or_else(|| inner.strip_prefix("```"));
    let inner = fenced.and_then(|rest| rest.strip_suffix("```")).unwrap_or(inner);
    serde_json::from_str(inner.trim()).map_err(|error| {
        let shown: String = text.chars().take(200).collect();
        format!("the answer is no JSON ({error}); it was {shown}")
    })
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !name.is_empty() && name.chars().all(plain)
}

/// The front matter at its lines, the line where the rest begins, and the rest.
fn split<'t>(path: &str, text: &'t str) -> Result<(String, usize, &'t str), ReactError> {
    let fence = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    if !lines.next().is_some_and(fence) {
        let what = "a prompt begins with a line `---`, its fields as YAML and another line `---`; \
                    write at least description, model and a trigger";
        return Err(error_at(path, text, (1, 1), what));
    }
    let (mut front, mut number) = ("\n".to_owned(), 2);
    let mut at = text.find('\n').map_or(text.len(), |end| end + 1);
    for line in lines {
        at += line.len();
        number += 1;
        if fence(line) {
            return Ok((front, number, &text[at..]));
        }
        front.push_str(line);
    }
    Err(error_at(path, text, (1, 1), "the fields are not closed; write a line `---` after them"))
}

fn system(own: &Map<String, Value>, said: &Said<'_>) -> Result<Option<String>, ReactError> {
    match own.get("system") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(said.refuse("system", "system: expected a text")),
    }
}

fn schema(
    own: &Map<String, Value>,
    said: &Said<'_>,
) -> Result<Option<(Value, Validator)>, ReactError> {
    let Some(schema) = own.get("answer").filter(|schema| !schema.is_null()) else {
        return Ok(None);
    };
    let validator = jsonschema::validator_for(schema).map_err(|error| {
        let at = error.instance_path().to_string();
        let field = format!("answer{}", at.replace('/', "."));
        said.refuse(&field, format!("answer: at `{at}` this is no JSON Schema: {error}"))
    })?;
    Ok(Some((schema.clone(), validator)))
}

fn propose(
    own: &Map<String, Value>,
    said: &Said<'_>,
) -> Result<Vec<Map<String, Value>>, ReactError> {
    let none = "propose: says what follows from the answer, a list such as `- emit: plan.made`";
    let list = own.get("propose").and_then(Value::as_array).filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| said.refuse("propose", none))?;
    let one = |(nth, value): (usize, &Value)| {
        let field = format!("propose[{nth}]");
        let map = value.as_object().ok_or_else(|| said.refuse(&field, none))?;
        for turn in TURNS {
            if map.get(turn).is_some_and(|value| !value.is_string()) {
                let what = format!("{field}.{turn}: expected an expression, such as answer.claims");
                return Err(said.refuse(&format!("{field}.{turn}"), what));
            }
        }
        Ok(map.clone())
    };
    list.iter().enumerate().map(one).collect()
}

impl Behavior for Prompt {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn asks(&self) -> Option<&str> {
        Some(&self.effect)
    }

    fn react(&self, firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
        let Some(payload) = firing.answer else { return self.ask(firing, out) };
        let whole = firing.texts.whole(Value::Object(payload.to_json()));
        let payload = whole.as_object().ok_or_else(|| self.error("its answer is no object"))?;
        let answer = self.answer(payload).map_err(|what| self.error(&what))?;
        self.propose(&answer, firing, out)
    }
}

#[cfg(test)]
mod tests {
    use behaviors::testing::{Scene, react, reply_text};

    use super::*;

    const PLAN: &str = r#"---
description: Plans a trip.
match: "(trip:Trip {status: 'open'})"
reads: {flights: "(trip)-[:OFFERED]->(flights:Flight)"}
writes: [Trip.plan]
emits: [plan.*]
model: planner
system: You plan trips.
answer:
  type: object
  required: [plan, stops]
  properties: {plan: {type: string}, stops: {type: array, items: {type: string}}}
propose:
  - emit: plan.made
    changes: [{set: "{{ trip.id }}", properties: {plan: "{{ answer.plan }}"}}]
  - emit: plan.stop
    for_each: answer.stops
    when: item != 'skip'
    payload: {stop: "{{ item }}", of: "{{ answer.stops | length }}"}
---
Plan {{ trip.city }}:
{% for flight in flights %}
- {{ flight.price }}
{% endfor %}
"#;

    fn prompt(text: &str) -> Result<Prompt, ReactError> {
        Prompt::read("behaviors/plan_trip.md", text)
    }

    fn error(text: &str) -> String {
        prompt(text).expect_err("it is wrong").to_string()
    }

    fn scene(answer: Value) -> Scene {
        let trip = json!({"id": "t", "type": "Trip", "properties": {"city": "Shenzhen"}});
        let flight = |n: i64| json!({"id": "f", "type": "Flight", "properties": {"price": n}});
        Scene::new(json!({
            "bound": {"trip": trip}, "reads": {"flights": [flight(5), flight(7)]}, "answer": answer,
        }))
    }

    fn answered(result: Value) -> String {
        let prompt = prompt(PLAN).expect("it is whole");
        let answer = json!({"status": "succeeded", "result": result});
        reply_text(&react(&prompt, &scene(answer)))
    }

    #[test]
    fn a_model_is_asked_with_what_the_firing_sees() {
        let prompt = prompt(PLAN).expect("it is whole");
        let asked = react(&prompt, &scene(Value::Null)).expect("it asks");
        assert_eq!(asked.proposals[0].kind, "model:planner");
        let messages = &asked.proposals[0].payload["messages"];
        assert_eq!(messages[0], json!({"role": "system", "content": "You plan trips."}));
        assert_eq!(messages[1]["content"], "Plan Shenzhen:\n- 5\n- 7");
        assert_eq!(asked.proposals[0].payload["schema"]["required"], json!(["plan", "stops"]));
    }

    #[test]
    fn an_answer_becomes_the_proposals_that_are_declared() {
        let answer = json!({"plan": "by air", "stops": ["A", "skip", "B"]});
        let expected = "plan.made {\"plan\":\"by air\",\"stops\":[\"A\",\"skip\",\"B\"]}\n  \
            {\"properties\":{\"plan\":\"by air\"},\"set\":\"t\"}\n\
            plan.stop {\"of\":3,\"stop\":\"A\"}\nplan.stop {\"of\":3,\"stop\":\"B\"}\n";
        assert_eq!(answered(json!({"answer": answer})), expected);
        let fenced = format!("```json\n{answer}\n```");
        assert_eq!(answered(json!({"text": fenced})), expected);
    }

    #[test]
    fn a_wrong_answer_is_a_failure_and_nothing_of_it_is_proposed() {
        let found = answered(json!({"answer": {"plan": 1, "stops": []}}));
        let says = "error: behaviors/plan_trip.md: the answer does not fit `answer`: /plan: 1 is not of \
                    type \"string\"; it was {\"plan\":1,\"stops\":[]}\n";
        assert_eq!(found, says);
        assert!(answered(json!({"text": "Sure!"})).contains("the answer is no JSON"));
        let answer = json!({"status": "failed", "error": {"message": "busy"}});
        let prompt = prompt(PLAN).expect("it is whole");
        let found = reply_text(&react(&prompt, &scene(answer)));
        assert_eq!(found, "error: behaviors/plan_trip.md: it was not answered (failed): busy\n");
    }

    #[test]
    fn what_is_wrong_is_said_at_its_line() {
        let said = error(&PLAN.replace("writes:", "wriets:"));
        let starts =
            "behaviors/plan_trip.md:5:1: wriets: there is no such field; did you mean `writes`?";
        assert!(said.starts_with(starts), "{said}");
        let said = error(&PLAN.replace("(flights:Flight)", "(flights:Flight"));
        assert!(said.starts_with("behaviors/plan_trip.md:4:9: reads.flights: "), "{said}");
        let said = error(&PLAN.replace("{% endfor %}", ""));
        assert!(said.starts_with("behaviors/plan_trip.md:2"), "{said}");
        let said = error(&PLAN.replace("type: object", "type: objet"));
        assert!(said.starts_with("behaviors/plan_trip.md:10:3: answer: "), "{said}");
        let said = error(&PLAN.replace("{{ answer.plan }}", "{{ answer. }}"));
        assert!(said.contains("propose[0]"), "{said}");
        assert!(error("Plan it.").contains("a prompt begins with a line `---`"));
        assert!(error(&PLAN.replace("model: planner\n", "")).contains("write `model: NAME`"));
    }

    #[test]
    fn what_the_prompt_names_and_is_not_there_fails_the_firing() {
        let prompt = prompt(&PLAN.replace("trip.city", "trip.town")).expect("it is whole");
        let found = reply_text(&react(&prompt, &scene(Value::Null)));
        assert!(found.starts_with("error: behaviors/plan_trip.md:21:1: "), "{found}");
    }
}
