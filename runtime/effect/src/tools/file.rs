//! A tool file: what is run, what it takes and gives, what it promises and what it wants.
#![allow(missing_docs, reason = "the fields of errors are facts named by the message")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::class::Class;
use crate::error::EffectError;
use crate::executor::Limits;
use crate::schema::Schema;

/// Why the tools of a flock cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    #[error("{path} cannot be read: {source}", path = path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}:{line}:{column}: {what}", path = path.display())]
    File { path: PathBuf, line: usize, column: usize, what: String },
    #[error("{path}: the server does not answer as MCP: {error}", path = path.display())]
    Server { path: PathBuf, error: Box<EffectError> },
}

/// A tool file that can be used.
#[derive(Debug)]
pub(crate) struct ToolFile {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) runs: Runs,
    pub(crate) reconcile: Option<Vec<String>>,
    pub(crate) class: Class,
    pub(crate) classes: BTreeMap<String, Class>,
    pub(crate) limits: Limits,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) effects: Vec<Want>,
    pub(crate) reads: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) args: Schema,
    pub(crate) result: Option<Schema>,
}

/// What a tool is, in the end.
#[derive(Debug)]
pub(crate) enum Runs {
    /// A command, started for each attempt.
    Command(Vec<String>),
    /// A server of many tools, started once.
    Mcp(Vec<String>),
}

/// What a tool wants of the machine. What it does not name it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Want {
    /// The machine's network.
    Network,
    /// To change files of the workspace.
    Write,
}

impl Want {
    /// What a person is asked for.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Want::Network => "the network",
            Want::Write => "to write in the workspace",
        }
    }
}

/// The fields, as they are written.
const FIELDS: [&str; 17] = [
    "description",
    "command",
    "mcp",
    "class",
    "classes",
    "reconcile",
    "timeout",
    "cancel_within",
    "key_window",
    "concurrent",
    "output_bytes",
    "memory_bytes",
    "effects",
    "reads",
    "env",
    "args",
    "result",
];

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    description: String,
    command: Option<Vec<String>>,
    mcp: Option<Vec<String>>,
    #[serde(default)]
    class: Class,
    #[serde(default)]
    classes: BTreeMap<String, Class>,
    reconcile: Option<Vec<String>>,
    timeout: Option<Span>,
    cancel_within: Option<Span>,
    key_window: Option<Span>,
    concurrent: Option<usize>,
    output_bytes: Option<usize>,
    memory_bytes: Option<u64>,
    #[serde(default)]
    effects: Vec<Want>,
    #[serde(default)]
    reads: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    args: Option<Value>,
    result: Option<Value>,
}

/// A duration as it is written: `500ms`, `30s`, `10m`, `24h`.
#[derive(Clone, Copy, Debug)]
struct Span(Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = match unit {
            "ms" => Some(1),
            "s" => Some(1000),
            "m" => Some(60_000),
            "h" => Some(3_600_000),
            _ => None,
        };
        let number = number.parse().ok().zip(unit);
        let millis = number.and_then(|(number, unit): (u64, u64)| number.checked_mul(unit));
        let millis = millis.filter(|millis| (1..=366 * 86_400_000).contains(millis));
        millis.map(|millis| Span(Duration::from_millis(millis))).ok_or_else(|| {
            let what = format!("`{text}` is no duration; write 500ms, 30s, 10m or 24h");
            serde::de::Error::custom(what)
        })
    }
}

/// Reads a tool file.
pub(super) fn read(path: &Path) -> Result<ToolFile, ToolError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|source| ToolError::Read { path: path.to_owned(), source })?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<ToolFile, ToolError> {
    let at = |span: Option<std::ops::Range<usize>>, what: String| {
        let before = &text[..span.map_or(0, |span| span.start.min(text.len()))];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        ToolError::File { path: path.to_owned(), line, column, what }
    };
    let toml = |error: toml::de::Error| at(error.span(), error.message().to_owned());
    let table = toml::de::DeTable::parse(text).map_err(toml)?;
    for key in table.get_ref().keys() {
        if !FIELDS.contains(&key.get_ref().as_ref()) {
            let hint = did_you_mean(key.get_ref());
            let what = format!("a tool has no `{}`{hint}", key.get_ref());
            return Err(at(Some(key.span()), what));
        }
    }
    let raw: Raw = toml::from_str(text).map_err(toml)?;
    let place = |field: &str| {
        let keys = table.get_ref().keys();
        keys.into_iter().find(|key| key.get_ref() == field).map(toml::Spanned::span)
    };
    build(path, raw).map_err(|(field, what)| at(place(field), what))
}

/// The file as a tool; an error is with the field that it is about.
fn build(path: &Path, raw: Raw) -> Result<ToolFile, (&'static str, String)> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = stem.unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(plain) {
        let what = format!("`{name}` is no name of a tool: letters, digits, `_` and `-`");
        return Err(("description", what));
    }
    let runs = match (raw.command, raw.mcp) {
        (Some(argv), None) => Runs::Command(filled(argv, "command")?),
        (None, Some(argv)) => Runs::Mcp(filled(argv, "mcp")?),
        (Some(_), Some(_)) => return Err(("mcp", "a tool is a `command` or an `mcp`".into())),
        (None, None) => {
            return Err(("description", "it says no `command` = [program, argument, …]".into()));
        }
    };
    let is_server = matches!(runs, Runs::Mcp(_));
    for (field, said) in [("args", raw.args.is_some()), ("result", raw.result.is_some())] {
        if is_server && said {
            return Err((field, "the schemas of an MCP server come from the server".into()));
        }
    }
    if !is_server && !raw.classes.is_empty() {
        return Err((
            "classes",
            "`classes` is for an MCP server; a command has one `class`".into(),
        ));
    }
    if raw.class == Class::Queryable && raw.reconcile.is_none() {
        let what = "a queryable tool says how it is asked: reconcile = [program, argument, …], which \
                    prints {\"status\": \"found\", \"result\": …}, {\"status\": \"absent\"} or \
                    {\"status\": \"pending\"}";
        return Err(("class", what.into()));
    }
    let standard = Limits::default();
    let limits = Limits {
        timeout: raw.timeout.map_or(standard.timeout, |span| span.0),
        concurrent: raw.concurrent.unwrap_or(standard.concurrent).max(1),
        output_bytes: raw.output_bytes.unwrap_or(standard.output_bytes),
        cancel_within: raw.cancel_within.map_or(standard.cancel_within, |span| span.0),
        key_window: raw.key_window.map_or(standard.key_window, |span| span.0),
    };
    let any = serde_json::json!({"type": "object"});
    Ok(ToolFile {
        path: path.to_owned(),
        name,
        description: raw.description,
        runs,
        reconcile: raw.reconcile.map(|argv| filled(argv, "reconcile")).transpose()?,
        class: raw.class,
        classes: raw.classes,
        limits,
        memory_bytes: raw.memory_bytes,
        effects: raw.effects,
        reads: raw.reads,
        env: raw.env,
        args: Schema::new(raw.args.unwrap_or(any)).map_err(|what| ("args", what))?,
        result: raw.result.map(Schema::new).transpose().map_err(|what| ("result", what))?,
    })
}

fn filled(argv: Vec<String>, field: &'static str) -> Result<Vec<String>, (&'static str, String)> {
    if argv.first().is_none_or(String::is_empty) {
        return Err((field, format!("`{field}` names no program")));
    }
    if argv.iter().any(|word| word.contains('\0')) {
        return Err((field, format!("`{field}` has a NUL in it")));
    }
    Ok(argv)
}

/// `; did you mean `x`?` for the nearest field, or nothing when none is near.
fn did_you_mean(wrong: &str) -> String {
    let distance = |name: &str| strsim::damerau_levenshtein(wrong, name);
    let near = |name: &&&str| distance(name) <= 1 + wrong.chars().count() / 4;
    let best = FIELDS.iter().filter(near).min_by_key(|name| distance(name));
    best.map_or_else(
        || format!("; it has {}", FIELDS.join(", ")),
        |name| format!("; did you mean `{name}`?"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(Path::new("tools/pay.toml"), text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn an_unknown_field_is_named_with_its_line_and_the_nearest_one() {
        let said = error("command = [\"pay\"]\nclas = \"keyed\"\n");
        assert_eq!(said, "tools/pay.toml:2:1: a tool has no `clas`; did you mean `class`?");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let said = error("command = [\"pay\"]\n\ntimeout = \"soon\"\n");
        assert!(said.starts_with("tools/pay.toml:3:11: `soon` is no duration"), "{said}");
        let said = error("command = [\"pay\"]\nclass = \"queryable\"\n");
        assert!(said.starts_with("tools/pay.toml:2:1: a queryable tool says how"), "{said}");
        let said = error("command = [\"pay\"]\n[args]\ntype = \"objet\"\n");
        assert!(said.starts_with("tools/pay.toml:2:2: at"), "{said}");
        let said = error("command = [\"pay\"\nclass = 1");
        assert!(said.starts_with("tools/pay.toml:2:"), "{said}");
        let said = error("description = \"nothing to run\"");
        assert!(said.contains("it says no `command`"), "{said}");
    }

    #[test]
    fn what_is_not_declared_is_not_had() {
        let file = parse(Path::new("tools/pay.toml"), "command = [\"pay\"]").expect("enough");
        assert_eq!((file.class, file.effects.len()), (Class::Opaque, 0));
        assert_eq!(file.limits, Limits::default());
    }
}
