//! Templates: what a prompt is rendered from, and values that are made of an answer.
//!
//! Deterministic: no clock, no chance, keys in order, a bound on steps. What is not there is an
//! error that names it, and never an empty text.

use behaviors::{Binding, ElementView, Firing, ReactError, Read, Texts};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Environment, UndefinedBehavior, Value as Jinja};
use serde_json::{Map, Number, Value};

/// How many steps one rendering may take.
const FUEL: u64 = 200_000;

/// An environment that knows what every template may use.
pub(crate) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    let lines = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(lines.expect("the delimiters are those of everybody"));
    environment
}

/// What a template sees: `event`, the variables of the match, the reads, `settings`, `now`.
pub(crate) fn context(firing: &Firing<'_>) -> Vec<(String, Jinja)> {
    let texts = firing.texts;
    let mut context = vec![
        ("event".to_owned(), jinja(&texts.whole(firing.event.to_json()))),
        ("settings".to_owned(), jinja(&Value::Object(firing.settings.clone().into_owned()))),
        ("now".to_owned(), Jinja::from(firing.now.ms())),
    ];
    let bound = firing.bound.iter();
    context.extend(bound.map(|(name, bound)| ((*name).to_owned(), binding(bound, texts))));
    context.extend(firing.reads.iter().map(|read| (read.name.to_owned(), rows(read, texts))));
    context
}

/// A context as the engine wants it.
pub(crate) fn object(context: &[(String, Jinja)]) -> Jinja {
    Jinja::from_pairs(context.iter().cloned())
}

/// An element: its properties, and in their place `id`, `type` and an edge's ends.
fn element(view: &ElementView<'_>, texts: Texts<'_>) -> Jinja {
    let Value::Object(mut map) = texts.whole(Value::Object(view.properties.to_json())) else {
        return Jinja::UNDEFINED;
    };
    map.insert("id".to_owned(), Value::from(view.id));
    map.insert("type".to_owned(), Value::from(view.type_name));
    if let Some((from, to)) = view.ends {
        map.insert("from".to_owned(), Value::from(from));
        map.insert("to".to_owned(), Value::from(to));
    }
    jinja(&Value::Object(map))
}

fn binding(binding: &Binding<'_>, texts: Texts<'_>) -> Jinja {
    match binding {
        Binding::Null => Jinja::from(()),
        Binding::Element(view) => element(view, texts),
        Binding::Path(edges) => edges.iter().map(|edge| element(edge, texts)).collect(),
    }
}

fn rows(read: &Read<'_>, texts: Texts<'_>) -> Jinja {
    if read.variables.len() == 1 {
        return read.bindings.iter().map(|bound| binding(bound, texts)).collect();
    }
    let record = |row: &[Binding<'_>]| {
        let pairs = read.variables.iter().zip(row);
        Jinja::from_pairs(pairs.map(|(name, bound)| ((*name).to_owned(), binding(bound, texts))))
    };
    read.rows().map(record).collect()
}

/// A JSON value for a template.
pub(crate) fn jinja(value: &Value) -> Jinja {
    match value {
        Value::Null => Jinja::from(()),
        Value::Bool(truth) => Jinja::from(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Jinja::from(number),
            (None, Some(number)) => Jinja::from(number),
            (None, None) => Jinja::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Jinja::from(text.as_str()),
        Value::Array(items) => items.iter().map(jinja).collect(),
        Value::Object(map) => {
            Jinja::from_pairs(map.iter().map(|(name, value)| (name.clone(), jinja(value))))
        }
    }
}

/// What a template gave, as JSON.
fn json(value: &Jinja) -> Result<Value, String> {
    Ok(match value.kind() {
        ValueKind::None => Value::Null,
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::Number => {
            let whole = value.is_integer();
            let whole = whole.then(|| i64::try_from(value.clone()).ok()).flatten();
            let float = || f64::try_from(value.clone()).ok().and_then(Number::from_f64);
            let number = whole.map(Number::from).or_else(float);
            Value::Number(number.ok_or_else(|| format!("{value} is no number that can be stored"))?)
        }
        ValueKind::String => Value::from(value.as_str().unwrap_or_default()),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter().map_err(|error| error.to_string())?;
            items.map(|item| json(&item)).collect::<Result<_, _>>()?
        }
        ValueKind::Map => {
            let mut map = Map::new();
            for key in value.try_iter().map_err(|error| error.to_string())? {
                let inner = value.get_item(&key).map_err(|error| error.to_string())?;
                let name = key.as_str().ok_or_else(|| format!("the key {key} is no text"))?;
                map.insert(name.to_owned(), json(&inner)?);
            }
            Value::Object(map)
        }
        _ => return Err(format!("`{value}` is no value that can be stored")),
    })
}

/// A JSON value whose texts are templates. One that is nothing but `{{ expression }}` gives the
/// value of the expression, of whatever type; any other gives a text.
pub(crate) fn fill(
    environment: &Environment<'_>,
    value: &Value,
    context: &[(String, Jinja)],
) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => match expression(text) {
            Some(expression) => json(&evaluate(environment, expression, context)?)?,
            None if text.contains("{{") || text.contains("{%") => {
                let rendered = environment.render_str(text, object(context));
                Value::from(rendered.map_err(|error| told(&error))?)
            }
            None => value.clone(),
        },
        Value::Array(items) => {
            let items = items.iter().map(|item| fill(environment, item, context));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(map) => {
            let entry = |(name, inner): (&String, &Value)| {
                Ok::<_, String>((name.clone(), fill(environment, inner, context)?))
            };
            Value::Object(map.iter().map(entry).collect::<Result<_, _>>()?)
        }
        other => other.clone(),
    })
}

/// The value of an expression.
pub(crate) fn evaluate(
    environment: &Environment<'_>,
    expression: &str,
    context: &[(String, Jinja)],
) -> Result<Jinja, String> {
    let compiled = environment.compile_expression(expression).map_err(|error| told(&error))?;
    let value = compiled.eval(object(context)).map_err(|error| told(&error))?;
    if value.is_undefined() {
        return Err(format!("`{expression}` is not there"));
    }
    Ok(value)
}

/// The expression of a text that is nothing else.
fn expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    (!inner.contains("}}") && !inner.contains("{{")).then(|| inner.trim())
}

/// Whether every text of a value can be read as a template.
pub(crate) fn check(environment: &Environment<'_>, value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => match expression(text) {
            Some(expression) => {
                environment.compile_expression(expression).map(drop).map_err(|error| told(&error))
            }
            None => environment.template_from_str(text).map(drop).map_err(|error| told(&error)),
        },
        Value::Array(items) => items.iter().try_for_each(|item| check(environment, item)),
        Value::Object(map) => map.values().try_for_each(|inner| check(environment, inner)),
        _ => Ok(()),
    }
}

/// An error of the template language in a sentence.
pub(crate) fn told(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

/// Renders a template that begins at line `first` of a file.
pub(crate) fn render(
    environment: &Environment<'_>,
    (path, file): (&str, &str),
    (first, text): (usize, &str),
    context: &[(String, Jinja)],
) -> Result<String, ReactError> {
    environment.render_str(text, object(context)).map_err(|error| {
        let line = first + error.line().unwrap_or(1).saturating_sub(1);
        crate::file::error_at(path, file, (line, 1), told(&error))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(value: Value) -> Result<Value, String> {
        let answer =
            jinja(&json!({"n": 3, "f": 3.0, "list": [{"a": null}], "t": "x", "big": u64::MAX}));
        fill(&environment(), &value, &[("answer".to_owned(), answer)])
    }

    #[test]
    fn a_lone_expression_keeps_its_type_and_a_text_is_a_text() {
        let value = json!({
            "n": "{{ answer.n }}", "list": "{{ answer.list }}", "t": "no. {{ answer.n }}",
            "plain": "x", "sum": "{{ answer.n + 1 }}", "deep": [{"x": "{{ answer.t }}"}], "k": 1,
        });
        let expected = json!({
            "n": 3, "list": [{"a": null}], "t": "no. 3", "plain": "x", "sum": 4,
            "deep": [{"x": "x"}], "k": 1,
        });
        assert_eq!(filled(value), Ok(expected));
        assert_eq!(filled(json!("{{ answer.f }}")).map(|f| f.to_string()), Ok("3.0".to_owned()));
    }

    #[test]
    fn what_is_not_there_is_an_error_and_not_an_empty_text() {
        assert!(filled(json!("{{ answer.gone }}")).is_err());
        assert!(filled(json!("x {{ answer.gone }}")).is_err());
        assert!(filled(json!("{{ anser.n }}")).is_err());
        let endless =
            "{% for a in range(10000) %}{% for b in range(10000) %}.{% endfor %}{% endfor %}";
        assert!(filled(json!(endless)).expect_err("it is bounded").contains("fuel"));
    }
}
