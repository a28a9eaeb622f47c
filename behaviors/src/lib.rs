//! What should follow: behaviors, what wakes them, what they may see and what they may propose.
//!
//! 1. Pure: a reaction is a function of its `Firing`. It sees no clock, file, thread or chance; its
//!    random numbers have a name and are the same in every run.
//! 2. Whole or not at all: a reaction that fails proposes nothing.
//! 3. Declared: with `emits` and `writes` a behavior binds itself, and is held to it.
//! 4. Honest: what only the runtime may say (`effect.*`, types that begin with `_`, …) is refused.
//!
//! A behavior never acts and never writes: it proposes events, and `runtime` makes them happen.
//! A new Rust behavior is one file in `library/`; nothing else is edited.

mod behavior;
mod error;
mod fields;
mod kind;
mod library;
mod message;
mod metadata;
mod pattern;
mod proposal;
mod registry;
mod rules;
mod said;
mod shown;
mod stream;
mod suggest;
pub mod testing;
mod texts;
mod trigger;
mod view;
mod word;

pub use crate::behavior::{Behavior, Reaction, RustBehavior};
pub use crate::error::{MessageError, MetadataError, ReactError};
pub use crate::kind::KindPattern;
pub use crate::library::library;
pub use crate::message::{decode_reply, encode_reply};
pub use crate::metadata::{Budget, Metadata, duration_ms};
pub use crate::proposal::{Emission, Proposal, Proposals, Reply};
pub use crate::registry::{Loaded, Registry};
pub use crate::rules::{is_runtime_kind, is_runtime_type};
pub use crate::stream::Stream;
pub use crate::suggest::did_you_mean;
pub use crate::texts::Texts;
pub use crate::trigger::{Condition, Trigger};
pub use crate::view::{Binding, ElementView, EventView, Firing, Read};
pub use crate::word::Word;
