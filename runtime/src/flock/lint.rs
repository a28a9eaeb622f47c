//! What is wrong with a flock that can be told without running it.

use std::collections::BTreeSet;

use behaviors::{Condition, KindPattern, Metadata, did_you_mean};
use projection::Pattern;
use serde_json::{Value, json};

use super::Flock;
use super::sources::Source;
use super::triggers::Triggers;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// It will not do what it says.
    Error,
    /// It may not be what is meant.
    Warning,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// The file, relative to the flock.
    pub(crate) path: String,
    /// The line, where it is known.
    pub(crate) line: Option<usize>,
    /// What is wrong and how to mend it.
    pub(crate) what: String,
}

impl Finding {
    /// As JSON.
    pub(crate) fn to_json(&self) -> Value {
        let level = if self.level == Level::Error { "error" } else { "warning" };
        json!({"level": level, "path": self.path, "line": self.line, "what": self.what})
    }
}

/// A behavior with the file that declares it.
#[derive(Clone, Copy)]
struct Declared<'f> {
    source: &'f Source,
    metadata: &'f Metadata,
}

/// Everything that is wrong with a flock, file by file.
pub(crate) fn lint(flock: &Flock) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut all = Vec::new();
    for source in &flock.sources {
        match &source.declared {
            Ok(declared) => all.extend(
                declared.iter().map(|loaded| Declared { source, metadata: loaded.metadata() }),
            ),
            // It names its file and line itself.
            Err(error) => found.push(Finding {
                level: Level::Error,
                path: source.path.clone(),
                line: None,
                what: error.clone(),
            }),
        }
    }
    let grants = flock.granted("effects");
    let granted: Vec<KindPattern> =
        grants.iter().filter_map(|text| KindPattern::parse(text).ok()).collect();
    let tools =
        effect::tools::list(&flock.folder, &flock.uses).map_or(Vec::new(), |listing| listing.tools);
    for declared in &all {
        declares(declared, &mut found);
        guards(declared, &mut found);
        effects(flock, &granted, &tools, declared, &mut found);
    }
    // What a broken file would make or wake is not known.
    if flock.sources.iter().all(|source| source.declared.is_ok()) {
        types(flock, &all, &mut found);
        loops(flock, &all, &mut found);
    }
    for source in &flock.sources {
        calls(source, &mut found);
    }
    named_guards(flock, &all, &mut found);
    found.sort_by(|a, b| (&a.path, a.line, a.level).cmp(&(&b.path, b.line, b.level)));
    found
}

impl Declared<'_> {
    fn finding(&self, level: Level, near: &str, what: String) -> Finding {
        let name = &self.metadata.name;
        let path = self.source.path.clone();
        Finding {
            level,
            path,
            line: line_of(&self.source.text, name, near),
            what: format!("{name}: {what}"),
        }
    }

    /// Every pattern, with the field that has it.
    fn patterns(&self) -> Vec<(String, Pattern)> {
        let condition = self.metadata.trigger.condition.as_ref();
        let field = if self.metadata.trigger.is_vanishes() { "vanishes" } else { "match" };
        let own = condition.map(|condition| (field.to_owned(), Condition::pattern(condition)));
        let reads = self.metadata.reads.iter();
        let reads = reads.map(|(name, text)| (format!("reads.{name}"), text.as_str()));
        let all = own.into_iter().chain(reads);
        all.filter_map(|(field, text)| Some((field, Pattern::parse(text).ok()?))).collect()
    }
}

/// The line of a field of a behavior: the first after its name that has the word, or the name's.
pub(super) fn line_of(text: &str, name: &str, near: &str) -> Option<usize> {
    let word = near.rsplit('.').next().unwrap_or(near);
    let quoted = format!("\"{name}\"");
    let named = text.lines().position(|line| line.contains(&quoted));
    let from = named.unwrap_or(0);
    let has = |line: &str| {
        let plain = line.trim_start().trim_start_matches(['#', '/', '-', ';', '%', ' ']);
        plain.strip_prefix(word).is_some_and(|rest| rest.trim_start().starts_with(['=', ':']))
            || line.contains(&format!(" {word} = "))
            || line.contains(&format!("\"{word}\":"))
    };
    let field = text.lines().skip(from).position(has).map(|at| at + from);
    field.or(named).map(|at| at + 1)
}

/// What is not declared is not held to anything.
fn declares(declared: &Declared<'_>, found: &mut Vec<Finding>) {
    let Metadata { emits, writes, guard, .. } = declared.metadata;
    for (field, missing) in [("emits", emits.is_none()), ("writes", writes.is_none())] {
        if missing && !guard {
            let what =
                format!("declares no `{field}`, so it is not held to any and no graph shows them");
            found.push(declared.finding(Level::Warning, "name", what));
        }
    }
}

/// A guard that compares the payload in a pattern is blind where the payload lacks the value.
fn guards(declared: &Declared<'_>, found: &mut Vec<Finding>) {
    if !declared.metadata.guard {
        return;
    }
    for (field, pattern) in declared.patterns() {
        if pattern.uses_event() {
            let what = format!(
                "`{field}` of a guard compares the request: where it lacks the value nothing is read, and \
                 the guard sees nothing to deny; read all of them and compare in the reaction"
            );
            found.push(declared.finding(Level::Error, &field, what));
        }
    }
}

/// Effects that nobody grants, or nobody does.
fn effects(
    flock: &Flock,
    granted: &[KindPattern],
    tools: &[effect::tools::Listed],
    declared: &Declared<'_>,
    found: &mut Vec<Finding>,
) {
    for effect in &declared.metadata.effects {
        let Some(name) = effect.exact() else { continue };
        if name.starts_with("exec:") {
            continue;
        }
        if !granted.iter().any(|grant| grant.fits(name)) {
            let what = format!("nobody grants `{name}`; add it to [grants] effects in flock.toml");
            found.push(declared.finding(Level::Warning, "effects", what));
        }
        let tool = |tool: &effect::tools::Listed| {
            KindPattern::parse(&tool.effect).is_ok_and(|known| known.fits(name))
        };
        let missing = match name.split_once(':') {
            Some(("tool", tool_name)) if !tools.iter().any(tool) => {
                let known = tools.iter().map(|tool| tool.effect.as_str());
                let hint = did_you_mean(name, known);
                Some(format!("there is no {name}, which would be tools/{tool_name}.toml{hint}"))
            }
            Some(("model", model)) if !flock.models.contains_key(model) => {
                let known = flock.models.keys().map(String::as_str);
                let hint = did_you_mean(model, known);
                Some(format!(
                    "flock.toml names no [models.{model}]{hint}; write what answers for it: provider = \
                     \"recorded\", answers = \"answers.jsonl\""
                ))
            }
            _ => None,
        };
        if let Some(what) = missing {
            found.push(declared.finding(Level::Warning, "effects", what));
        }
    }
}

/// Types that are matched and that nothing makes.
fn types(flock: &Flock, all: &[Declared<'_>], found: &mut Vec<Finding>) {
    let mut made: BTreeSet<String> = BTreeSet::new();
    for event in &flock.events {
        let changes: Vec<Value> = event.changes.iter().map(log::Change::to_json).collect();
        for change in &changes {
            let names = ["type", "link", "ensure_link"];
            made.extend(names.iter().filter_map(|name| change[*name].as_str()).map(str::to_owned));
        }
        // A schema names types by its keys, a start event may by its payload.
        let payload = Value::Object(event.payload.clone());
        texts(&payload, &mut made);
    }
    for declared in all {
        let writes = declared.metadata.writes.iter().flatten();
        made.extend(writes.map(|entry| entry.split('.').next().unwrap_or(entry).to_owned()));
    }
    // Who declares no writes may make whatever its text names.
    let silent: Vec<&str> = all
        .iter()
        .filter(|declared| declared.metadata.writes.is_none())
        .map(|declared| declared.source.text.as_str())
        .collect();
    let is_made = |name: &str| {
        let quoted = [format!("\"{name}\""), format!("'{name}'")];
        made.contains(name)
            || silent.iter().any(|text| quoted.iter().any(|quoted| text.contains(quoted)))
    };
    for declared in all {
        let mut told = BTreeSet::new();
        for (field, pattern) in declared.patterns() {
            let types = pattern.interest().into_iter().filter_map(|watch| watch.type_name);
            for name in types.filter(|name| !name.starts_with('_') && !is_made(name)) {
                if told.insert(name.clone()) {
                    let hint = did_you_mean(&name, made.iter().map(String::as_str));
                    let what = format!(
                        "`{field}` asks for the type {name}, which no start event and no behavior makes{hint}"
                    );
                    found.push(declared.finding(Level::Warning, &field, what));
                }
            }
        }
    }
}

fn texts(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            into.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(map) => map.iter().for_each(|(name, inner)| {
            into.insert(name.clone());
            texts(inner, into);
        }),
        _ => {}
    }
}

/// Behaviors that may wake each other for ever, where nobody has said how far they may go.
fn loops(flock: &Flock, all: &[Declared<'_>], found: &mut Vec<Finding>) {
    if ["depth", "events", "firings"].iter().any(|bound| flock.budget.contains_key(*bound)) {
        return;
    }
    let triggers = Triggers::of(all.iter().map(|declared| declared.metadata), &[]);
    for names in triggers.loops() {
        let first = all.iter().find(|declared| declared.metadata.name == names[0]);
        let Some(first) = first else { continue };
        let way: Vec<&str> = names.iter().chain(names.first()).map(String::as_str).collect();
        let what = format!(
            "may wake itself without end: {}; see that something on the way becomes false, and say in \
             flock.toml how far it may go at most: [budget] depth = 1_000",
            way.join(" -> ")
        );
        found.push(first.finding(Level::Warning, "name", what));
    }
}

/// What a script says with a literal name and no behavior of its file declares.
fn calls(source: &Source, found: &mut Vec<Finding>) {
    let Ok(declared) = &source.declared else { return };
    if !source.path.ends_with(".star") {
        return;
    }
    let mut within = "";
    for (nth, line) in source.text.lines().enumerate() {
        if let Some(defined) = line.strip_prefix("def ") {
            within = defined.split('(').next().unwrap_or_default().trim();
        }
        // A function of no behavior may be called by any of them.
        let own = declared.iter().filter(|loaded| loaded.metadata().name == within);
        let own: Vec<_> = own.collect();
        let own = if own.is_empty() { declared.iter().collect() } else { own };
        let code = line.split('#').next().unwrap_or(line);
        for (call, field) in [("emit", "emits"), ("request", "effects")] {
            for name in literals(code, call) {
                let fits = own.iter().any(|loaded| match call {
                    "emit" => {
                        let emits = loaded.metadata().emits.as_ref();
                        emits.is_none_or(|emits| emits.iter().any(|kind| kind.fits(name)))
                    }
                    _ => loaded.metadata().effects.iter().any(|effect| effect.fits(name)),
                });
                if !fits {
                    let what =
                        format!("{call}(\"{name}\") is not declared; add \"{name}\" to `{field}`");
                    let (path, line) = (source.path.clone(), Some(nth + 1));
                    found.push(Finding { level: Level::Error, path, line, what });
                }
            }
        }
    }
}

/// The literal first arguments of the calls of a function in a line.
fn literals<'t>(line: &'t str, call: &str) -> Vec<&'t str> {
    let opens = format!("{call}(\"");
    let starts = line.match_indices(&opens).filter(|(at, _)| {
        let before = line[..*at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
    });
    let text = |(at, _): (usize, &str)| line[at + opens.len()..].split('"').next();
    starts.filter_map(text).filter(|text| !text.is_empty()).collect()
}

/// Guards that flock.toml names and nobody declares: nothing would leave.
fn named_guards(flock: &Flock, all: &[Declared<'_>], found: &mut Vec<Finding>) {
    let named = flock.policy.get("guards").and_then(Value::as_array).into_iter().flatten();
    let guards = || all.iter().filter(|d| d.metadata.guard).map(|d| d.metadata.name.as_str());
    for name in named.filter_map(Value::as_str) {
        if !guards().any(|guard| guard == name) {
            let hint = did_you_mean(name, guards());
            let what = format!(
                "the guard `{name}` is named and not there, and without it nothing leaves{hint}"
            );
            let path = "flock.toml".to_owned();
            found.push(Finding { level: Level::Error, path, line: None, what });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_of_calls_are_read() {
        let line = r#"emit("a.b", {}); re_emit("x"); emit("", {}); x.emit("y") or emit("c.d")"#;
        assert_eq!(literals(line, "emit"), ["a.b", "c.d"]);
    }

    #[test]
    fn a_field_is_found_after_the_name_of_its_behavior() {
        let text = "behavior(\n  name = \"a\",\n  match = \"x\",\n)\nbehavior(name = \"b\",\n  match = \"y\")\n";
        assert_eq!(line_of(text, "a", "match"), Some(3));
        assert_eq!(line_of(text, "b", "match"), Some(6));
        assert_eq!(line_of(text, "b", "effects"), Some(5));
        assert_eq!(line_of("---\nmatch: x\n---\n", "c", "match"), Some(2));
        assert_eq!(line_of("# /// starling\n# match = 'x'\n", "c", "match"), Some(2));
    }
}
