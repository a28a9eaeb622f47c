//! Errors of effects: facts that a behavior, a retry policy and a person can act on.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why an attempt failed, in the five fields that every error of an effect has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectError {
    /// Its domain and kind, dotted: `network.timeout`, `arguments.schema`, `process.exit`.
    pub kind: String,
    /// Whether trying the same again may help.
    pub retryable: bool,
    /// Who can mend it.
    pub blame: Blame,
    /// What stays the same when the same thing goes wrong again: no times, ids or line numbers.
    pub signature: String,
    /// What to do about it, in one sentence.
    pub suggested_action: String,
    /// What happened, for people.
    pub message: String,
    /// All that was written about it, where that is more than the message holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<str>>,
}

/// Who can mend an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// Whoever asked: the arguments are wrong.
    Caller,
    /// The tool or what it was pointed at.
    Tool,
    /// What it depends on outside: the network, a provider.
    Provider,
    /// This machine: a program that is missing, a full disk.
    Machine,
    /// A grant, guard or sandbox said no.
    Policy,
}

impl EffectError {
    /// An error whose signature is its kind and the message without what varies.
    #[must_use]
    pub fn new(kind: &str, blame: Blame, message: impl Into<String>, action: &str) -> Self {
        let message = message.into();
        let signature = format!("{kind}: {}", stable(&message));
        EffectError {
            kind: kind.to_owned(),
            retryable: false,
            blame,
            signature,
            suggested_action: action.to_owned(),
            message,
            output: None,
        }
    }

    /// The same, with all that was written about it.
    #[must_use]
    pub fn with_output(mut self, output: impl Into<Box<str>>) -> Self {
        self.output = Some(output.into());
        self
    }

    /// The same, and trying again may help.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// The first word of its kind: retry budgets are counted per domain.
    #[must_use]
    pub fn domain(&self) -> &str {
        self.kind.split('.').next().unwrap_or(&self.kind)
    }
}

/// The first line of a message with every number, and every hexadecimal word of eight digits or
/// more, replaced by `#`. An error code such as E0425 stays.
fn stable(message: &str) -> String {
    let line = message.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
    let mut out = String::new();
    let mut word = String::new();
    let flush = |word: &mut String, out: &mut String| {
        let number = word.chars().all(|c| c.is_ascii_digit()) && !word.is_empty();
        let hash = word.len() >= 8 && word.chars().all(|c| c.is_ascii_hexdigit());
        let varies = number || hash;
        out.push_str(if varies { "#" } else { word });
        word.clear();
    };
    for c in line.chars() {
        if c.is_alphanumeric() {
            word.push(c);
            continue;
        }
        flush(&mut word, &mut out);
        out.push(c);
    }
    flush(&mut word, &mut out);
    out.chars().take(200).collect()
}

impl fmt::Display for EffectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({}); {}", self.message, self.kind, self.suggested_action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_failure_at_another_place_has_the_same_signature() {
        let at = |line: &str| {
            EffectError::new("process.exit", Blame::Tool, format!("E0425 at line {line}"), "fix it")
        };
        assert_eq!(at("12").signature, at("907").signature);
        assert_eq!(at("12").signature, "process.exit: E0425 at line #");
    }
}
