//! What a behavior says about itself. All of it goes into the event that loads the behavior, so the
//! fold needs no source to know when it fires.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::MetadataError;
use crate::fields::Fields;
use crate::kind::KindPattern;
use crate::pattern;
use crate::trigger::{Condition, Trigger};

/// What a behavior says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Its name: a verb phrase such as `close_stale_task`, unique in the flock.
    pub name: String,
    /// What it does, in a sentence.
    pub description: String,
    /// When it fires.
    pub trigger: Trigger,
    /// With `on`: whether it also sees the events before it was loaded.
    pub from_beginning: bool,
    /// What it reads, by name: patterns anchored on the match, bound before it fires.
    pub reads: BTreeMap<String, String>,
    /// What it may write, if it says so: `Type.property`, `Type.*`, or a type to create or remove.
    pub writes: Option<Vec<String>>,
    /// The kinds it may emit, if it says so; globs are allowed.
    pub emits: Option<Vec<KindPattern>>,
    /// The effects it may request; globs are allowed. What is not here is refused.
    pub effects: Vec<KindPattern>,
    /// Whether it speaks before a request leaves.
    pub guard: bool,
    /// Its bounds.
    pub budget: Budget,
    /// Its place among the behaviors that an event wakes: by this number, then by name.
    pub order: i64,
    /// Whether it is loaded at all.
    pub enabled: bool,
    /// Its version in its author's words.
    pub version: Option<String>,
}

/// How much one behavior may do in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// How many events it may emit.
    pub events: Option<u64>,
    /// How often it may fire.
    pub firings: Option<u64>,
    /// How deep in a chain of causes it may fire.
    pub depth: Option<u64>,
    /// How many effects it may request.
    pub effects: Option<u64>,
}

const FIELDS: &[&str] = &[
    "name",
    "description",
    "on",
    "match",
    "where",
    "vanishes",
    "from",
    "after",
    "wakes_self",
    "reads",
    "writes",
    "emits",
    "effects",
    "budget",
    "order",
    "guard",
    "enabled",
    "version",
    "each",
];

impl Metadata {
    /// Reads metadata; `at` names the place in messages.
    ///
    /// # Errors
    /// An unknown field, a field of the wrong type, fields that contradict each other, or one that
    /// this version does not carry out.
    pub fn from_json(map: &Map<String, Value>, at: &str) -> Result<Self, MetadataError> {
        Metadata::read(&Fields::open(map, at, FIELDS)?)
    }

    /// Reads metadata as an author writes it in a file: a description is asked for. `also` are the
    /// fields of the form, named where a wrong one might have meant them.
    ///
    /// # Errors
    /// As `from_json`; or it has no description.
    pub fn of_author(
        map: &Map<String, Value>,
        at: &str,
        also: &[&str],
    ) -> Result<Self, MetadataError> {
        let fields = Fields::open_beside(map, at, FIELDS, also)?;
        let metadata = Metadata::read(&fields)?;
        if metadata.description.is_empty() {
            let what = "say what it does, in a sentence: description = \"…\"";
            return Err(fields.error("description", what));
        }
        Ok(metadata)
    }

    fn read(fields: &Fields<'_>) -> Result<Self, MetadataError> {
        let metadata = Metadata {
            name: read_name(fields)?,
            description: fields.text("description")?.unwrap_or_default().to_owned(),
            trigger: read_trigger(fields)?,
            from_beginning: read_from(fields)?,
            reads: read_reads(fields)?,
            writes: read_writes(fields)?,
            emits: read_kinds(fields, "emits")?,
            effects: read_kinds(fields, "effects")?.unwrap_or_default(),
            guard: fields.flag("guard")?.unwrap_or(false),
            budget: read_budget(fields)?,
            order: fields.integer("order")?.unwrap_or(0),
            enabled: fields.flag("enabled")?.unwrap_or(true),
            version: fields.text("version")?.map(str::to_owned),
        };
        metadata.check_reads(fields)?;
        metadata.check_guard(fields)?;
        Ok(metadata)
    }

    /// The same, where what is not declared is refused: no list is an empty one.
    #[must_use]
    pub fn strict(&self) -> Metadata {
        let mut strict = self.clone();
        strict.emits.get_or_insert_default();
        strict.writes.get_or_insert_default();
        strict
    }

    /// The metadata as JSON, in one form: what is as it would be unsaid is left out.
    #[must_use]
    pub fn to_json(&self) -> Map<String, Value> {
        let mut map = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                map.insert(name.to_owned(), value);
            }
        };
        let said = |flag: bool| flag.then_some(Value::Bool(true));
        let trigger = &self.trigger;
        put("name", Some(self.name.as_str().into()));
        put(
            "description",
            Some(self.description.as_str().into()).filter(|_| !self.description.is_empty()),
        );
        put("on", trigger.on.as_ref().map(|on| on.as_str().into()));
        put("where", filter_json(&trigger.filter));
        match &trigger.condition {
            None => {}
            Some(Condition::Matches(pattern)) => put("match", Some(pattern.as_str().into())),
            Some(Condition::Vanishes(pattern)) => put("vanishes", Some(pattern.as_str().into())),
        }
        put("each", said(trigger.each));
        put("after", (trigger.after > 0).then(|| trigger.after.into()));
        put("after", trigger.after_ms.map(|ms| format!("{ms}ms").into()));
        put("wakes_self", said(trigger.wakes_self));
        put("from", self.from_beginning.then(|| "beginning".into()));
        let reads = || self.reads.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect();
        put("reads", (!self.reads.is_empty()).then(|| Value::Object(reads())));
        put("writes", self.writes.as_ref().map(|writes| writes.clone().into()));
        let emits = self.emits.as_ref();
        put("emits", emits.map(|emits| emits.iter().map(KindPattern::as_str).collect()));
        let effects = self.effects.iter().map(KindPattern::as_str);
        put("effects", (!self.effects.is_empty()).then(|| effects.collect()));
        put("guard", said(self.guard));
        put("budget", self.budget.to_json());
        put("order", (self.order != 0).then(|| self.order.into()));
        put("enabled", (!self.enabled).then_some(Value::Bool(false)));
        put("version", self.version.as_deref().map(Value::from));
        map
    }

    /// The names that a reaction can be given: `event`, the variables of the match, the reads.
    #[must_use]
    pub fn bound_names(&self) -> Vec<String> {
        let mut names = vec!["event".to_owned()];
        names.extend(self.variables());
        names.extend(self.reads.keys().cloned());
        names
    }

    /// The names that the match binds, in pattern order.
    fn variables(&self) -> Vec<String> {
        let condition = self.trigger.condition.as_ref();
        condition.map_or(Vec::new(), |condition| {
            let pattern = pattern::read(condition.pattern());
            pattern::names(&pattern.expect("a pattern was read before it was kept"))
        })
    }

    /// Refuses a guard that could be passed by: one that a request does not always reach.
    fn check_guard(&self, fields: &Fields<'_>) -> Result<(), MetadataError> {
        if !self.guard {
            return Ok(());
        }
        let trigger = &self.trigger;
        let hears = trigger.on.as_ref().map(KindPattern::exact);
        if hears != Some(Some("effect.requested")) && !(hears.is_none() && trigger.is_match()) {
            let what = "a guard hears requests; write on = \"effect.requested\"";
            return Err(fields.error("on", what));
        }
        if let Some(condition) = &trigger.condition {
            let read = pattern::read(condition.pattern());
            let read = read.expect("a pattern was read before it was kept");
            if let Some(what) = pattern::refused_guard(&read) {
                return Err(fields.error("match", what));
            }
        }
        if trigger.after > 0 || trigger.after_ms.is_some() {
            return Err(fields.error("after", "a guard speaks at once; drop `after`"));
        }
        Ok(())
    }

    /// Refuses reads that hide another name that a reaction can be given, or bind nothing new.
    fn check_reads(&self, fields: &Fields<'_>) -> Result<(), MetadataError> {
        let variables = self.variables();
        for (name, text) in &self.reads {
            let refuse = |what: String| Err(fields.error(&format!("reads.{name}"), what));
            let taken = ["event", "settings", "rand", "now"].contains(&name.as_str());
            if taken || variables.contains(name) {
                return refuse(format!(
                    "`{name}` is bound already, by the match or by the runtime; rename the read"
                ));
            }
            let pattern = pattern::read(text).expect("a pattern was read before it was kept");
            if pattern::names(&pattern).iter().all(|bound| variables.contains(bound)) {
                return refuse(
                    "it binds nothing that the match does not; name what is to be read".to_owned(),
                );
            }
        }
        Ok(())
    }
}

impl Budget {
    fn to_json(self) -> Option<Value> {
        let mut map = Map::new();
        for (name, bound) in [
            ("events", self.events),
            ("firings", self.firings),
            ("depth", self.depth),
            ("effects", self.effects),
        ] {
            if let Some(bound) = bound {
                map.insert(name.to_owned(), bound.into());
            }
        }
        (!map.is_empty()).then_some(Value::Object(map))
    }
}

fn read_name(fields: &Fields<'_>) -> Result<String, MetadataError> {
    let Some(name) = fields.text("name")? else {
        return Err(
            fields.error("name", "every behavior has a name; write name = \"do_something\"")
        );
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if starts && name.len() <= 100 && name.chars().all(plain) {
        return Ok(name.to_owned());
    }
    let rule = "a name has 1 to 100 of a-z 0-9 _ and begins with a letter";
    Err(fields.error("name", format!("`{name}` cannot be a name; {rule}")))
}

fn read_trigger(fields: &Fields<'_>) -> Result<Trigger, MetadataError> {
    let on = fields.text("on")?.map(KindPattern::parse).transpose();
    let on = on.map_err(|what| fields.error("on", what))?;
    let pattern = |field: &str| -> Result<Option<String>, MetadataError> {
        let Some(text) = fields.text(field)? else { return Ok(None) };
        let read = pattern::read(text).map_err(|what| fields.error(field, what))?;
        Ok(Some(read.canonical().to_owned()))
    };
    let condition = match (pattern("match")?, pattern("vanishes")?) {
        (Some(_), Some(_)) => {
            let both = "a behavior has `match` or `vanishes`, not both; make them two behaviors";
            return Err(fields.error("vanishes", both));
        }
        (Some(pattern), None) => Some(Condition::Matches(pattern)),
        (None, Some(pattern)) => Some(Condition::Vanishes(pattern)),
        (None, None) => None,
    };
    let (after, after_ms) = read_after(fields)?;
    let trigger = Trigger {
        on,
        filter: read_filter(fields)?,
        condition,
        each: fields.flag("each")?.unwrap_or(false),
        after,
        after_ms,
        wakes_self: fields.flag("wakes_self")?.unwrap_or(false),
    };
    let guard = fields.flag("guard")?.unwrap_or(false);
    check_trigger(&trigger, guard, fields)?;
    Ok(trigger)
}

/// Refuses parts of a trigger that do nothing together.
fn check_trigger(trigger: &Trigger, guard: bool, fields: &Fields<'_>) -> Result<(), MetadataError> {
    let refuse = |field: &str, what: &str| Err(fields.error(field, what));
    match (&trigger.on, &trigger.condition) {
        (None, None) => {
            return refuse(
                "match",
                "nothing wakes this behavior; give it `match`, `vanishes` or `on`",
            );
        }
        (Some(_), Some(Condition::Vanishes(_))) => {
            return refuse("vanishes", "a match that vanishes is itself the trigger; drop `on`");
        }
        _ => {}
    }
    if trigger.on.is_none() && !trigger.filter.is_empty() {
        return refuse("where", "`where` is about the payload of an event; it needs `on`");
    }
    if trigger.each && (trigger.on.is_none() || trigger.condition.is_none()) {
        return refuse(
            "each",
            "`each` is every standing match at an event; it needs `on` and `match`",
        );
    }
    // What a guard's pattern has to be is another rule.
    let Some(condition) = trigger.condition.as_ref().filter(|_| !guard) else { return Ok(()) };
    let read = pattern::read(condition.pattern()).expect("a pattern was read before it was kept");
    let field = if trigger.is_vanishes() { "vanishes" } else { "match" };
    pattern::refused(trigger, &read).map_or(Ok(()), |what| refuse(field, &what))
}

fn read_filter(fields: &Fields<'_>) -> Result<BTreeMap<String, Vec<Value>>, MetadataError> {
    let mut filter = BTreeMap::new();
    for (path, accepted) in fields.object("where")?.into_iter().flatten() {
        let wrong = |what: &str| Err(fields.error(&format!("where.{path}"), what));
        if path.split('.').any(str::is_empty) {
            return wrong("expected a path into the payload, such as `trip` or `args.amount`");
        }
        let literals = match accepted {
            Value::Array(literals) => literals.clone(),
            literal => vec![literal.clone()],
        };
        if literals.is_empty() {
            return wrong("an empty list accepts nothing; give the values that are accepted");
        }
        if literals.iter().any(|literal| literal.is_array() || literal.is_object()) {
            return wrong("expected a text, number, truth value or null, or a list of those");
        }
        filter.insert(path.clone(), literals);
    }
    Ok(filter)
}

fn filter_json(filter: &BTreeMap<String, Vec<Value>>) -> Option<Value> {
    let literal = |literals: &Vec<Value>| match literals.as_slice() {
        [one] => one.clone(),
        many => Value::Array(many.to_vec()),
    };
    let map: Map<String, Value> = filter.iter().map(|(k, v)| (k.clone(), literal(v))).collect();
    (!map.is_empty()).then_some(Value::Object(map))
}

/// The delay in events, or in milliseconds.
fn read_after(fields: &Fields<'_>) -> Result<(u64, Option<u64>), MetadataError> {
    let Some(Value::String(text)) = fields.value("after") else {
        return Ok((fields.count("after")?.unwrap_or(0), None));
    };
    let wrong = || format!("`{text}` is neither a number of events nor a duration");
    let ms = duration_ms(text).ok_or_else(|| fields.error("after", wrong()))?;
    Ok((0, Some(ms)))
}

/// The milliseconds of a text such as `250ms`, `90s`, `10m`, `2h` or `1d`.
#[must_use]
pub fn duration_ms(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let unit = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(unit).filter(|ms| *ms < 1 << 52)
}

fn read_from(fields: &Fields<'_>) -> Result<bool, MetadataError> {
    match fields.text("from")? {
        None => Ok(false),
        Some("beginning") if fields.value("on").is_some() => Ok(true),
        Some("beginning") => Err(fields.error("from", "`from` is about events; it needs `on`")),
        Some(other) => {
            Err(fields.error("from", format!("expected \"beginning\", found `{other}`")))
        }
    }
}

fn read_reads(fields: &Fields<'_>) -> Result<BTreeMap<String, String>, MetadataError> {
    let mut reads = BTreeMap::new();
    for (name, pattern) in fields.object("reads")?.into_iter().flatten() {
        let at = format!("reads.{name}");
        let Some(text) = pattern.as_str() else {
            return Err(fields.error(&at, format!("expected a pattern as a text, found {pattern}")));
        };
        let read = pattern::read(text).map_err(|what| fields.error(&at, what))?;
        reads.insert(name.clone(), read.canonical().to_owned());
    }
    Ok(reads)
}

fn read_writes(fields: &Fields<'_>) -> Result<Option<Vec<String>>, MetadataError> {
    let writes = fields.texts("writes")?;
    let whole = |text: &String| !text.is_empty() && !text.split('.').any(str::is_empty);
    if let Some(bad) = writes.iter().flatten().find(|text| !whole(text)) {
        let what =
            "expected a type, such as `Trip`, or a property, such as `Trip.status` or `Trip.*`";
        return Err(fields.error("writes", format!("{what}, found `{bad}`")));
    }
    Ok(writes)
}

fn read_kinds(fields: &Fields<'_>, field: &str) -> Result<Option<Vec<KindPattern>>, MetadataError> {
    let Some(kinds) = fields.texts(field)? else { return Ok(None) };
    let parsed: Result<_, String> = kinds.iter().map(|kind| KindPattern::parse(kind)).collect();
    parsed.map(Some).map_err(|what| fields.error(field, what))
}

fn read_budget(fields: &Fields<'_>) -> Result<Budget, MetadataError> {
    let Some(map) = fields.object("budget")? else { return Ok(Budget::default()) };
    for whole in ["tokens", "cost", "wall"] {
        if map.contains_key(whole) {
            let what = "this bound is one of the whole flock, in flock.toml, or of a chain of causes, \
                        with narrow(budget = {…})";
            return Err(fields.error(&format!("budget.{whole}"), what));
        }
    }
    let at = fields.error("budget", "").at;
    let budget = Fields::open(map, &at, &["events", "firings", "depth", "effects"])?;
    Ok(Budget {
        events: budget.count("events")?,
        firings: budget.count("firings")?,
        depth: budget.count("depth")?,
        effects: budget.count("effects")?,
    })
}

#[cfg(test)]
mod tests;
