//! Behaviors written as Starlark files: save a file and it is a behavior.
//!
//! 1. Hermetic: a script sees its firing and nothing else; it cannot load, open or ask.
//! 2. The same everywhere: the same firing gives the same proposals, and the same error.
//! 3. Bounded: steps, depth and memory have limits; steps are counted the same on every machine.
//! 4. Without loss: integers stay integers, floats stay floats, the rest is refused by name.
//! 5. Honest: an error names file, line and column as its author wrote them.
//!
//! What a script says:
//! - `behavior(name = …, …)` declares, with the fields of `Metadata` (`from` is spelled `from_`);
//!   the function of that name is the reaction. Its parameters are names that event, match and
//!   reads bind, or `settings`, `rand`, `now` (milliseconds since 1970).
//! - `x.id` and `x.type` are an element's own, `x.p` and `x["id"]` properties, None if missing;
//!   `"p" in x`; `ends(e)` are the ids of an edge's ends.
//! - `event.kind`, `.payload`, `.actor`, `.key`, `.id`, `.time`; objects give their entries as
//!   attributes.
//! - `emit(kind, payload = {}, *changes, key = None)` proposes an event; `create`, `ensure`,
//!   `link`, `ensure_link`, `set`, `add`, `append`, `unset` and `remove` are changes: values that
//!   exactly one event must carry.
//! - `rand.below(n)`, `.uniform()`, `.choice(xs)`, `.shuffle(xs)` (a new list) and
//!   `.normal(mean, deviation)` are named random numbers.
//! - `math.sqrt`, `exp`, `log`, `pow`, `floor`, `ceil`, `sin`, `cos`, `tan`, `atan2`, `pi`, `e`;
//!   `sum(xs)`, `round(x, digits)`.
//! - `print(…)` shows a line, `f"{x.price + 1} {x!r}"` holds any expression.
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
mod words;

pub use crate::host::{Limits, ScriptError, ScriptHost};
