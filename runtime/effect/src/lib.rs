//! What leaves for the world and what comes back: executors of effects.
//!
//! 1. One door: only an executor acts, and only for an attempt whose intent is durable.
//! 2. One answer: every call ends in exactly one `Answer` within its deadline and a stated bound.
//! 3. Honest: what cannot be known is `Unknown`; an executor never guesses.
//!
//! An executor knows no log, no graph and no behavior. It is handed a `Call` and answers it.

mod answer;
mod beneath;
pub mod builtin;
mod call;
mod class;
mod error;
mod executor;
mod http;
mod keeper;
mod mcp;
mod process;
mod program;
mod sandbox;
mod schema;
pub mod tools;

pub use answer::{Answer, Fingerprint, Seen};
pub use call::Call;
pub use class::Class;
pub use error::{Blame, EffectError};
pub use executor::{Executor, Limits, Pending, Usage};
pub use keeper::{keep_if_asked, processes_are_bounded};
pub use process::excerpt;
pub use program::{Program, is_executable};
pub use sandbox::Sandbox;
/// Ends an attempt and all that it started.
pub use tokio_util::sync::CancellationToken as Cancel;
