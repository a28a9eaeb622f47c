//! Behaviors written as Starlark files: save a file and it is a behavior.
//!
//! 1. Hermetic: a script sees its firing and nothing else; it cannot load, open or ask.
//! 2. The same everywhere: the same firing gives the same proposals, and the same error.
//! 3. Bounded: steps, depth and memory have limits; steps are counted the same on every machine.
//! 4. Without loss: integers stay integers, floats stay floats, and what JSON cannot hold is refused.
//! 5. Honest: an error names file, line and column as its author wrote them.
//!
//! It does not stop a hostile script from taking memory between two checks: a host for strangers'
//! scripts runs in a process of its own, which `behaviors` draws the border for.

#![allow(
    unsafe_code,
    unused_qualifications,
    reason = "starlark's derive macros write an unsafe impl and full paths; no line here does"
)]

mod bind;
mod change;
mod convert;
mod fstring;
mod host;
mod load;
mod numbers;
mod random;
mod reaction;
mod session;
mod source;
mod surface;
mod values;

pub use crate::host::{Limits, ScriptError, ScriptHost};
