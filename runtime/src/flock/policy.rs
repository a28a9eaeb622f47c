//! What `flock.toml` says about effects: grants, guards, approvals, retries, the workspace and
//! recorded answers; and how undeclared writes are taken.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use behaviors::{KindPattern, did_you_mean, duration_ms};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::effect::Serving;

/// `[grants]`: what may leave. Without it nothing does.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grants {
    #[serde(default)]
    effects: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
    approval: Option<String>,
    at_once: Option<usize>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    local_hosts: Vec<String>,
}

/// `[answers]`: what the world said once, served instead of asking it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answers {
    file: PathBuf,
    mode: Option<String>,
}

/// The parts of `flock.toml` about effects.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) grants: Option<Grants>,
    pub(super) guards: Vec<String>,
    pub(super) workspace: Option<PathBuf>,
    pub(super) retry: toml::Table,
    pub(super) models: BTreeMap<String, toml::Table>,
    pub(super) lint: Lint,
}

/// `[lint]`: what is only told, or refused.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lint {
    undeclared: Option<String>,
}

/// The fields of the flock's first event that come from them. What is not said is left out, so that
/// a flock without effects begins as ever.
pub(super) const FIELDS: [&str; 7] =
    ["grants", "guards", "lint", "models", "retry", "set", "workspace"];

impl Said {
    /// What the log is told.
    pub(super) fn payload(&self) -> Result<Map<String, Value>, String> {
        let mut payload = Map::new();
        if let Some(grants) = &self.grants {
            payload.insert("grants".to_owned(), grants.payload()?);
        }
        if !self.guards.is_empty() {
            payload.insert("guards".to_owned(), json!(self.guards));
        }
        if !self.models.is_empty() {
            let models = serde_json::to_value(&self.models);
            payload.insert("models".to_owned(), models.map_err(|error| error.to_string())?);
        }
        if !self.retry.is_empty() {
            payload.insert("retry".to_owned(), retry(&self.retry)?);
        }
        match self.lint.undeclared.as_deref() {
            // It is told unless it is refused.
            None | Some("warn") => {}
            Some("error") => {
                payload.insert("lint".to_owned(), json!({"undeclared": "error"}));
            }
            Some(other) => {
                return Err(format!("lint.undeclared: `{other}` is neither warn nor error"));
            }
        }
        if let Some(workspace) = &self.workspace {
            payload.insert("workspace".to_owned(), json!(workspace));
        }
        Ok(payload)
    }
}

impl Grants {
    fn payload(&self) -> Result<Value, String> {
        for (field, patterns) in [("effects", &self.effects), ("ask", &self.ask)] {
            for pattern in patterns {
                KindPattern::parse(pattern).map_err(|what| format!("grants.{field}: {what}"))?;
            }
        }
        let mut map = Map::new();
        map.insert("effects".to_owned(), json!(self.effects));
        if !self.ask.is_empty() {
            map.insert("ask".to_owned(), json!(self.ask));
        }
        for (field, list) in [("hosts", &self.hosts), ("local_hosts", &self.local_hosts)] {
            if !list.is_empty() {
                map.insert(field.to_owned(), json!(list));
            }
        }
        match self.at_once {
            None => {}
            Some(0) => {
                return Err("grants.at_once: nothing could leave; write 1 or more".to_owned());
            }
            Some(most) => {
                map.insert("at_once".to_owned(), json!(most));
            }
        }
        if let Some(approval) = &self.approval {
            duration_ms(approval).ok_or_else(|| {
                format!("grants.approval: `{approval}` is no duration; write 10m or 24h")
            })?;
            map.insert("approval".to_owned(), json!(approval));
        }
        Ok(Value::Object(map))
    }
}

fn retry(table: &toml::Table) -> Result<Value, String> {
    let entry = |(name, value): (&String, &toml::Value)| {
        let count = value.as_integer().and_then(|n| u64::try_from(n).ok());
        let count = count.ok_or_else(|| {
            format!("retry.{name}: expected how often, a whole number from 0, found {value}")
        })?;
        Ok((name.clone(), json!(count)))
    };
    table.iter().map(entry).collect::<Result<Map<_, _>, String>>().map(Value::Object)
}

/// `[models.NAME]`: who answers for a model; here recorded answers, beside `flock.toml`.
pub(super) fn models(
    said: &BTreeMap<String, toml::Table>,
    folder: &Path,
) -> Result<BTreeMap<String, PathBuf>, String> {
    let mut models = BTreeMap::new();
    for (name, table) in said {
        let text = |field: &str| table.get(field).and_then(toml::Value::as_str);
        let at = format!("models.{name}");
        match text("provider") {
            Some("recorded") => {}
            Some(other) => {
                return Err(format!(
                    "{at}.provider: there is no provider `{other}` in this version{}; there is \
                     `recorded`, with answers = \"answers.jsonl\"",
                    did_you_mean(other, ["recorded"])
                ));
            }
            None => return Err(format!("{at}: name its provider: provider = \"recorded\"")),
        }
        if let Some(field) =
            table.keys().find(|key| !["provider", "answers"].contains(&key.as_str()))
        {
            let hint = did_you_mean(field, ["provider", "answers"]);
            return Err(format!("{at}: a recorded model has no `{field}`{hint}"));
        }
        let answers = text("answers").ok_or_else(|| {
            format!("{at}: name the file of its answers: answers = \"answers.jsonl\"")
        })?;
        models.insert(name.clone(), folder.join(answers));
    }
    Ok(models)
}

impl Answers {
    /// The file, beside `flock.toml`, and how it is served.
    pub(super) fn read(&self, folder: &Path) -> Result<(PathBuf, Serving), String> {
        let mode = self.mode.as_deref().unwrap_or(Serving::Recorded.as_str());
        let serving = Serving::from_name(mode).ok_or_else(|| {
            let modes = ["live", "recorded", "recorded_then_live"];
            let hint = did_you_mean(mode, modes);
            format!("answers.mode: `{mode}` is none of {}{hint}", modes.join(", "))
        })?;
        Ok((folder.join(&self.file), serving))
    }
}
