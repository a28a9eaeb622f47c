//! Effects: the only door to the outside world.
//!
//! A behavior requests, guards judge, the runtime dispatches an attempt, the attempt ends, the
//! action ends in exactly one outcome, and a later look may settle one that was unknown. Each step
//! is an event with its changes to the graph; what is known is a fold of those, free of any clock
//! or thread. Only the driver waits for the world.
//!
//! 1. An intent is durable before it leaves.
//! 2. Every action ends in one outcome; what cannot be known is `unknown` and says so.
//! 3. What is decided stands: a later receipt is recorded and may contradict, it never overwrites.

mod action;
mod approve;
mod attempt;
mod budget;
mod cancel;
mod describe;
mod driver;
mod events;
mod excerpts;
mod executors;
mod grant;
mod guard;
mod next;
mod policy;
mod reconcile;
mod recorded;
mod retry;
mod state;
mod timer;

pub use self::cancel::Scope;
pub use self::describe::{OpenEffect, Standing};
pub use self::driver::{Driver, Turn};
pub use self::executors::Executors;
pub(crate) use self::recorded::ending_of;
pub use self::recorded::{Recorded, Serving};

pub(crate) use self::action::{Action, Chain, Facts, Stage, is_inner};
pub(crate) use self::approve::{Answered, answered, ended};
pub(crate) use self::events::Ending;
pub(crate) use self::guard::{Asked, REVISIONS_MAX, Verdicts, voice};
pub(crate) use self::next::cancelled;
pub(crate) use self::policy::Policy;
pub(crate) use self::state::{Effects, Ledger, action_of};
