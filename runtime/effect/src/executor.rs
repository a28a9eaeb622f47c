//! The one interface between the runtime and the world.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::Value;

use crate::answer::{Answer, Seen};
use crate::call::Call;
use crate::class::Class;
use crate::error::EffectError;

/// An answer that is not there yet.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Does one kind of effect. A new one is one file that implements this.
pub trait Executor: Debug + Send + Sync {
    /// What may be done about an attempt whose outcome is not known.
    fn class(&self) -> Class;

    /// Its bounds.
    fn limits(&self) -> Limits;

    /// Checks arguments and normalises them: defaults filled in, nothing read from outside. What
    /// this gives is what guards see, what is hashed and what leaves.
    ///
    /// # Errors
    /// The arguments do not fit; the error names the field.
    fn check(&self, args: &Value) -> Result<Value, EffectError>;

    /// What one call may use, at most: it is set aside in every budget above it before the call
    /// leaves. What it used stands in its result, as `usage`: `{"tokens", "cost"}`.
    fn reserve(&self, _args: &Value) -> Usage {
        Usage::default()
    }

    /// Acts, once. Ends with exactly one answer by the call's timeout, or soon after a
    /// cancellation, and leaves nothing running.
    fn run<'a>(&'a self, call: &'a Call) -> Pending<'a, Answer>;

    /// Looks what became of an attempt, without acting. `intent` is what was recorded when it was
    /// dispatched, the fingerprint included.
    fn look<'a>(&'a self, call: &'a Call, intent: &'a Value) -> Pending<'a, Seen>;
}

/// What a call uses besides time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Tokens of a model.
    pub tokens: u64,
    /// Money, in the flock's currency.
    pub cost: f64,
}

/// The bounds of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What one attempt may take.
    pub timeout: Duration,
    /// How many attempts may run at once.
    pub concurrent: usize,
    /// How many bytes of output a tool's result may have; more of it is an error, which holds it.
    pub output_bytes: usize,
    /// How soon after a cancellation an attempt has ended or is reported unknown.
    pub cancel_within: Duration,
    /// For `Class::Keyed`: how long the provider remembers a key.
    pub key_window: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            timeout: Duration::from_secs(60),
            concurrent: 8,
            output_bytes: 256 * 1024,
            cancel_within: Duration::from_secs(5),
            key_window: Duration::from_secs(24 * 3600),
        }
    }
}
