//! Making it happen: the engine that folds, matches, fires and appends, and the commands around it.
//!
//! 1. A run is a function of its log: kill it anywhere, start it again, and the log is the same.
//! 2. Durable before visible: readers see what the disk holds.
//! 3. Idle is idle: at rest nothing is due, nothing is written and nothing is asked of the
//!    processor.

pub mod cli;
mod clock;
mod effect;
mod engine;
mod flock;
mod fork;
mod history;
mod import;
mod kinds;
mod promote;
mod scripts;
mod snapshot;
mod tags;

pub use crate::effect::{Driver, Executors, OpenEffect, Recorded, Scope, Serving, Standing, Turn};
pub use crate::engine::{
    Bounds, DEPTH_DEFAULT, Divergence, Engine, EngineError, Failed, FoldError, Library, Reached,
    Refired, Schedule, Start, Step, Undeclared, refire, refire_up_to, start_branch,
};
pub use crate::flock::{
    Consent, Flock, FlockError, Follow, Looks, Overrides, Question, Report, Source, Synced,
    TrustError, start, sync, sync_live,
};
pub use crate::fork::{Changes, Feed, ForkError, Parting, Prepared, parting};
pub use crate::history::{
    Part, Turned, Turning, Unsound, Verified, bisect, first_difference, first_true, verify, writers,
};
pub use crate::kinds::check_outside_kind;
pub use crate::promote::{Disagreement, Land, PromoteError, Promoted, Promotion, Side};
pub use crate::scripts::serve_scripts_if_asked;
pub use crate::snapshot::Snapshots;
