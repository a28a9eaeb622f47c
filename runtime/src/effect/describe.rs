//! Open effects told to people: what each waits for, and what can be said about it.

use effect::Class;
use log::{EventId, Time};
use serde_json::{Value, json};

use super::action::{Action, Stage};

/// How an open effect stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It will go on by itself: room, a timer, an answer.
    Open,
    /// A person is asked.
    Waits,
    /// It may have taken effect, and only a person can say.
    Unknown,
}

/// An open effect.
#[derive(Clone, Debug)]
pub struct OpenEffect {
    /// The action.
    pub action: EventId,
    /// What is asked for.
    pub effect: String,
    /// The arguments that leave.
    pub args: Value,
    /// Who asked, and where.
    pub behavior: String,
    /// The offset of the request.
    pub offset: u64,
    /// How it stands.
    pub standing: Standing,
    /// What it waits for, in words.
    pub waits_for: String,
    /// Until when, if there is such a time.
    pub until: Option<Time>,
    /// What may be done about it when its outcome is not known.
    pub class: Option<Class>,
    /// The commands that answer it, without the names of store and branch.
    pub commands: Vec<String>,
}

impl OpenEffect {
    pub(crate) fn of(action: &Action) -> OpenEffect {
        let facts = &action.facts;
        let id = &facts.id.to_string()[..12];
        let person = |waits_for: &str, commands: &[String], standing, until| {
            (standing, waits_for.to_owned(), until, commands.to_vec())
        };
        let yes_no = [format!("approve {id}"), format!("deny {id} REASON")];
        let cancel = [format!("cancel {id}")];
        let (standing, waits_for, until, commands) = match &facts.stage {
            Stage::Requested => person("its turn", &cancel, Standing::Open, None),
            Stage::Held { expires } => {
                person("a person's approval", &yes_no, Standing::Waits, Some(*expires))
            }
            Stage::Linked { to } => {
                let words = format!("the same intent under way as {}", &to.to_string()[..12]);
                person(&words, &[], Standing::Open, None)
            }
            Stage::Running(running) if running.executor == "person" => {
                let until = Some(running.deadline);
                let ask = [format!("approve {id} ANSWER"), format!("deny {id} REASON")];
                let commands = if facts.effect == "human.approve" { &yes_no } else { &ask };
                person("a person's answer", commands, Standing::Waits, until)
            }
            Stage::Running(running) if running.executor == "clock" => {
                person("its time", &cancel, Standing::Open, Some(running.deadline))
            }
            Stage::Running(running) => {
                let words = format!("the answer to attempt {}", running.attempt);
                person(&words, &cancel, Standing::Open, Some(running.deadline))
            }
            Stage::Waiting { until } => {
                person("the next attempt", &cancel, Standing::Open, Some(*until))
            }
            Stage::Unknown(doubt) => match &doubt.person {
                None => person("a look at the world", &[], Standing::Open, Some(doubt.next)),
                Some(why) => {
                    let settle =
                        [format!("settle {id} succeeded RESULT"), format!("settle {id} failed")];
                    person(why, &settle, Standing::Unknown, None)
                }
            },
        };
        let class = match &facts.stage {
            Stage::Running(running) => Some(running.class),
            Stage::Unknown(doubt) => Some(doubt.class),
            _ => None,
        };
        OpenEffect {
            action: facts.id,
            effect: facts.effect.to_string(),
            args: action.args(),
            behavior: facts.behavior.to_string(),
            offset: facts.offset,
            standing,
            waits_for,
            until: until.and_then(Time::from_ms),
            class,
            commands,
        }
    }

    /// As JSON, in one form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "action": self.action.to_string(),
            "effect": self.effect,
            "args": self.args,
            "behavior": self.behavior,
            "offset": self.offset,
            "standing": match self.standing {
                Standing::Open => "open",
                Standing::Waits => "waits",
                Standing::Unknown => "unknown",
            },
            "waits_for": self.waits_for,
            "until": self.until.map(|until| until.to_string()),
            "class": self.class.map(Class::as_str),
            "commands": self.commands,
        })
    }
}
