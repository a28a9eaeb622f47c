//! The effect `timer`: the runtime itself answers it when its time has come.
//!
//! `{"after": "10m"}` is once, after the request; `{"at": "2026-01-05T09:00:00Z"}` once, at a time;
//! `{"every": "1m", "from": ms}` at the next tick of a clock that began at `from` (else at the
//! request). Ticks that were missed, because nothing ran, are one: the answer says which tick it is
//! for and how many before it were missed.

use behaviors::duration_ms;
use effect::{Blame, EffectError};
use serde_json::{Value, json};

/// When a timer is due, and for `every`, how long a tick is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    pub(crate) due: i64,
    every: Option<i64>,
}

impl Timer {
    /// Reads the arguments of a timer that was requested at `requested`.
    pub(crate) fn read(args: &Value, requested: i64) -> Result<Timer, EffectError> {
        let wrong = |what: String| {
            let action = "write {\"after\": \"10m\"}, {\"at\": TIME} or {\"every\": \"1m\"}";
            EffectError::new("arguments.schema", Blame::Caller, what, action)
        };
        let duration = |name: &str| -> Result<Option<i64>, EffectError> {
            let Some(value) = args.get(name) else { return Ok(None) };
            let ms = value.as_str().and_then(duration_ms).filter(|ms| *ms > 0);
            let ms = ms.and_then(|ms| i64::try_from(ms).ok());
            ms.map(Some).ok_or_else(|| wrong(format!("/args/{name}: {value} is no duration")))
        };
        if let Some(every) = duration("every")? {
            let from = args.get("from").and_then(Value::as_i64).unwrap_or(requested);
            let ticks = (requested - from).div_euclid(every) + 1;
            let due = ticks.checked_mul(every).and_then(|after| from.checked_add(after));
            let due = due.ok_or_else(|| wrong("/args/from: out of range".to_owned()))?;
            return Ok(Timer { due, every: Some(every) });
        }
        if let Some(after) = duration("after")? {
            return Ok(Timer { due: requested.saturating_add(after), every: None });
        }
        let Some(at) = args.get("at") else {
            return Err(wrong("/args: there is none of after, at, every".to_owned()));
        };
        let time = at.as_str().and_then(|text| text.parse::<log::Time>().ok());
        let time = time.ok_or_else(|| wrong(format!("/args/at: {at} is no time")))?;
        Ok(Timer { due: time.ms(), every: None })
    }

    /// The answer of a timer that is due at `now`.
    pub(crate) fn answer(self, now: i64) -> Value {
        let Some(every) = self.every else {
            return json!({"due": self.due});
        };
        let missed = (now - self.due).max(0) / every;
        json!({"due": self.due + missed * every, "missed": missed})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: Value) -> Result<Timer, EffectError> {
        Timer::read(&args, 10_500)
    }

    #[test]
    fn a_timer_is_due_after_at_or_every() {
        let due = |args| read(args).expect("a timer").due;
        assert_eq!(due(json!({"after": "2s"})), 12_500);
        assert_eq!(due(json!({"at": "1970-01-01T00:00:20Z"})), 20_000);
        assert_eq!(due(json!({"every": "1s"})), 11_500);
        assert_eq!(due(json!({"every": "1s", "from": 0})), 11_000);
        assert_eq!(due(json!({"every": "1s", "from": 10_500})), 11_500);
    }

    /// Eight hours down with a tick a minute were once 480 paid runs.
    #[test]
    fn missed_ticks_are_one_that_counts_them() {
        let timer = read(json!({"every": "1m", "from": 0})).expect("a timer");
        assert_eq!(timer.answer(60_000), json!({"due": 60_000, "missed": 0}));
        let hours = 8 * 3_600_000;
        assert_eq!(timer.answer(60_000 + hours + 7), json!({"due": 60_000 + hours, "missed": 480}));
    }

    #[test]
    fn what_is_no_timer_is_refused_with_its_field() {
        let says = |args: Value| read(args).expect_err("no timer").message;
        assert_eq!(says(json!({})), "/args: there is none of after, at, every");
        assert_eq!(says(json!({"after": "soon"})), "/args/after: \"soon\" is no duration");
        assert_eq!(says(json!({"every": "0s"})), "/args/every: \"0s\" is no duration");
        assert_eq!(says(json!({"at": 7})), "/args/at: 7 is no time");
    }
}
