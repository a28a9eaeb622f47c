//! One plain sentence for every event: what happened, what it did to the graph, and why.
//!
//! A kind that deserves words of its own gets an arm in `what`; any other is told by its payload
//! and its changes, so that no event is without a sentence.

mod effects;

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;

use log::{Cause, ChangeRef, Event, EventId, MapRef, Offset, ValueRef, WriteOp};

/// How many changes of one event are told.
const CHANGES_MAX: usize = 3;
/// How many entries of a payload are told.
const ENTRIES_MAX: usize = 4;
/// How much of a text is told.
const TEXT_MAX: usize = 40;
/// How many events back a cause is known by its offset.
const REMEMBERED_MAX: usize = 100_000;

/// Tells events in order, remembering where each stood, to say what caused what.
#[derive(Default)]
pub(super) struct Narrator {
    offsets: HashMap<EventId, Offset>,
    order: VecDeque<EventId>,
}

impl Narrator {
    /// The line of one event, without newline: offset, actor, kind, sentence, cause.
    pub(super) fn line(&mut self, event: &Event) -> String {
        let mut line =
            format!("{:>6}  {}  {}", event.offset().get(), plain(event.actor()), event.kind());
        let what = what(event);
        if !what.is_empty() {
            write!(line, "  {what}").expect("a String takes every write");
        }
        if let Some(cause) = event.cause() {
            write!(line, "  {}", self.why(&cause)).expect("a String takes every write");
        }
        self.remember(event);
        line
    }

    /// Remembers where an event stands that is not told.
    pub(super) fn remember(&mut self, event: &Event) {
        self.offsets.insert(event.id(), event.offset());
        self.order.push_back(event.id());
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.offsets.remove(&oldest);
        }
    }

    fn why(&self, cause: &Cause) -> String {
        let (id, by) = match cause {
            Cause::Firing { event, behavior, .. } => (event, format!(" by {behavior}")),
            Cause::Action { action } => (action, String::new()),
        };
        match self.offsets.get(id) {
            Some(offset) => format!("<- {offset}{by}"),
            None => format!("<- event {}{by}", &id.to_string()[..8]),
        }
    }
}

/// What an event of the runtime says, in words of its own.
fn runtime_words(event: &Event) -> Option<String> {
    let payload = event.payload();
    let text = |name: &str| payload.get(name).and_then(ValueRef::as_str).map(plain);
    let number = |name: &str| payload.get(name).and_then(ValueRef::as_i64).unwrap_or(0);
    let withdrawn = match number("withdrawn") {
        0 => String::new(),
        many => format!("; {many} that waited are withdrawn"),
    };
    Some(match event.kind() {
        "flock.started" => {
            let (name, schedule) = (text("name")?, text("schedule")?);
            format!("the flock {name} begins: schedule {schedule}, seed {}", number("seed"))
        }
        "flock.changed" => {
            let fields: Vec<String> = payload.iter().map(|(name, _)| plain(name)).collect();
            format!("flock.toml has another {}", fields.join(", "))
        }
        "flock.exhausted" => {
            let (budget, behavior) = (text("budget")?, text("behavior")?);
            let cycle =
                text("cycle").map_or(String::new(), |cycle| format!("; it repeats {cycle}"));
            format!("{budget} = {} was reached when {behavior} was due{cycle}", number("limit"))
        }
        "behavior.loaded" => {
            let hash: String = text("hash")?.chars().take(8).collect();
            format!("{} is live, from {} ({hash})", text("name")?, text("path")?)
        }
        "behavior.removed" => format!("{} is gone{}", text("name")?, withdrawn),
        "behavior.disabled" => format!("{} is switched off{}", text("name")?, withdrawn),
        "behavior.enabled" => format!("{} is switched on again", text("name")?),
        "behavior.rejected" => {
            let error = text("error")?;
            format!("{} is broken: {}", text("path")?, error.lines().next().unwrap_or(""))
        }
        "behavior.suspended" => format!("{} is suspended: {}", text("name")?, text("why")?),
        "behavior.failed" => {
            let place =
                text("file").map_or(String::new(), |file| format!("{file}:{}: ", number("line")));
            format!("fails at {place}{}", text("error")?)
        }
        "behavior.conflicted" => format!("gives way in its round: {}", text("why")?),
        _ => return effects::words(event),
    })
}

/// What an event says and does.
pub(super) fn what(event: &Event) -> String {
    let mut parts = Vec::new();
    if let Some(words) = runtime_words(event) {
        return words;
    }
    let said = entries(event.payload(), ": ");
    if !said.is_empty() {
        parts.push(said);
    }
    let changes: Vec<_> = event.changes().iter().collect();
    for (index, told) in changes.iter().take(CHANGES_MAX).enumerate() {
        parts.push(change(event, index, *told));
    }
    if changes.len() > CHANGES_MAX {
        parts.push(format!("and {} changes more", changes.len() - CHANGES_MAX));
    }
    parts.join("; ")
}

fn change(event: &Event, index: usize, told: ChangeRef<'_>) -> String {
    let made = |type_name: &str| short(&log::element_id(type_name, &event.id(), index));
    let element = |id: &str| element(event, id);
    let with = |properties: MapRef<'_>| match entries(properties, ": ") {
        none if none.is_empty() => none,
        some => format!(" ({some})"),
    };
    match told {
        ChangeRef::Create { id, type_name, properties } => {
            let id = id.map_or_else(|| made(type_name), element);
            format!("creates {} {id}{}", plain(type_name), with(properties))
        }
        ChangeRef::Ensure { id, type_name, properties } => {
            format!("ensures {} {}{}", plain(type_name), element(id), with(properties))
        }
        ChangeRef::Link { type_name, from, to, properties, .. }
        | ChangeRef::EnsureLink { type_name, from, to, properties } => {
            let (from, to) = (element(from), element(to));
            format!("links {from} -{}-> {to}{}", plain(type_name), with(properties))
        }
        ChangeRef::Write { op, id, properties, .. } => {
            let (verb, joined) = match op {
                WriteOp::Set => ("sets", " = "),
                WriteOp::Add => ("adds to", " + "),
                WriteOp::Append => ("appends to", " << "),
            };
            format!("{verb} {} {}", element(id), entries(properties, joined))
        }
        ChangeRef::Unset { id, names } => {
            let names: Vec<String> = names.iter().map(plain).collect();
            format!("unsets {} {}", element(id), names.join(", "))
        }
        ChangeRef::Remove { id } => format!("removes {}", element(id)),
    }
}

/// An element by its id; `#2` is the one that change 2 of the event makes.
fn element(event: &Event, id: &str) -> String {
    let made_by = log::change_reference(id).and_then(|index| {
        let change = event.changes().iter().nth(index)?;
        Some(match change {
            ChangeRef::Create { id: Some(id), .. } | ChangeRef::Ensure { id, .. } => short(id),
            ChangeRef::Create { type_name, .. } | ChangeRef::Link { type_name, .. } => {
                short(&log::element_id(type_name, &event.id(), index))
            }
            _ => return None,
        })
    });
    made_by.unwrap_or_else(|| short(id))
}

/// A derived id by the first of its digits, as git does.
fn short(id: &str) -> String {
    match id.split_once('#') {
        Some((type_name, digits)) if digits.len() == 32 && digits.is_ascii() => {
            format!("{}#{}", plain(type_name), &digits[..8])
        }
        _ => plain(id),
    }
}

fn entries(map: MapRef<'_>, joined: &str) -> String {
    let mut told: Vec<String> = map
        .iter()
        .take(ENTRIES_MAX)
        .map(|(key, value)| format!("{}{joined}{}", plain(key), short_value(value)))
        .collect();
    if map.iter().nth(ENTRIES_MAX).is_some() {
        told.push("…".to_owned());
    }
    told.join(", ")
}

fn short_value(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::String(text) => format!("\"{}\"", cut(text)),
        ValueRef::Blob(blob) => format!("\"{}\" ({} bytes)", cut(blob.head), blob.size),
        ValueRef::List(list) => format!("list of {}", list.iter().count()),
        ValueRef::Map(map) if map.is_empty() => "{}".to_owned(),
        ValueRef::Map(map) => {
            format!("{{{} …}}", map.iter().map(|(key, _)| key).next().map_or(String::new(), plain))
        }
        other => other.to_json().to_string(),
    }
}

fn cut(text: &str) -> String {
    let shown: String = text.chars().take(TEXT_MAX).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("{}{more}", plain(&shown))
}

/// Text that cannot break its line or play tricks on a terminal.
fn plain(text: &str) -> String {
    let hidden = |c: char| {
        let breaks = matches!(c, '\u{2028}' | '\u{2029}');
        let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        c.is_control() || breaks || turns
    };
    text.chars().map(|c| if hidden(c) { '\u{fffd}' } else { c }).collect()
}
