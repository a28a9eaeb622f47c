//! Forks: what one changes at its cut, and what its parent was told after it, told again at the
//! same place.
//!
//! A fork record says where it was cut and how answers are served; everything else that a fork
//! changes are its first events. The outside events of its ancestors, up to where they were when
//! the fork was made, are fed to it each at its place, so that an unchanged fork has its parent's
//! events byte for byte.

mod changes;
mod feed;
mod history;
mod parting;

pub use changes::{Changes, ForkError, Prepared};
pub(crate) use changes::{follows, follows_draft};
pub use feed::Feed;
pub use parting::{Parting, parting};
