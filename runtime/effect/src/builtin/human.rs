//! `human.ask`: a question that a person answers.
//!
//! Nothing is run for it: the runtime keeps the question among what waits for a person, and the
//! answer is recorded as the outcome. This executor says what a question is. If it is run all the
//! same, what it can honestly say is that nobody has answered.

use serde_json::{Value, json};

use crate::answer::{Answer, Seen};
use crate::call::Call;
use crate::class::Class;
use crate::error::{Blame, EffectError};
use crate::executor::{Executor, Limits, Pending};
use crate::schema::Schema;

/// Asks a person.
#[derive(Debug)]
pub(super) struct Ask {
    schema: Schema,
}

impl Ask {
    pub(super) fn new() -> Self {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["question"],
            "properties": {
                "question": {"type": "string", "minLength": 1},
                "details": {"type": "string", "default": ""},
                "choices": {"type": "array", "items": {"type": "string"}, "default": []},
            },
        });
        Ask { schema: Schema::new(schema).expect("a built-in schema is one") }
    }
}

fn waiting() -> EffectError {
    EffectError::new(
        "human.waiting",
        Blame::Policy,
        "a person has not answered yet",
        "answer it: `starling effects` lists what waits, `starling approve ID` answers",
    )
}

impl Executor for Ask {
    fn class(&self) -> Class {
        // Asking twice is no harm, but only a person can say what the answer is.
        Class::Opaque
    }

    fn limits(&self) -> Limits {
        Limits::default()
    }

    fn check(&self, args: &Value) -> Result<Value, EffectError> {
        self.schema.arguments("human.ask", args)
    }

    fn run<'a>(&'a self, _call: &'a Call) -> Pending<'a, Answer> {
        Box::pin(async { Answer::Unknown(waiting()) })
    }

    fn look<'a>(&'a self, _call: &'a Call, _intent: &'a Value) -> Pending<'a, Seen> {
        Box::pin(async { Seen::Pending })
    }
}
