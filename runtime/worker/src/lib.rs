//! Scripts in a process of their own: whatever a script does to it, the host goes on.
//!
//! 1. The same: a script that reacts here or in the host proposes the same, and fails the same.
//! 2. Shut in: the process opens no file, starts nothing and speaks to nobody but its host. Its
//!    memory has a bound, and who does not answer in time is ended.
//! 3. Told: a firing that ended its process failed, with what ended it. That was the doing of the
//!    machine and not of the script alone, so its error is marked `stopped` and is taken from the
//!    log ever after.
//! 4. Ahead: firings that will come are handed over early, many at once. An answer counts only for
//!    exactly the firing that was shown, so being early changes nothing but the time it takes.
//!
//! It knows neither logs nor graphs. A firing and a reply are what `behaviors` makes of them.

mod client;
mod confine;
mod serve;
mod wire;

pub use client::Worker;
pub use serve::serve_if_asked;
