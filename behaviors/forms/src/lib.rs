//! Behaviors that cannot answer by themselves: executables in any language, and prompts.
//!
//! 1. Pure all the same: each reacts twice. First it asks the effect that answers for it,
//!    `exec:NAME` or `model:NAME`; then it turns the recorded answer into proposals.
//! 2. The same metadata as any behavior, read by the same code.
//! 3. Honest: an answer that does not fit is a failure that says why, and nothing of it is applied.
//! 4. An error names file, line and column as their author wrote them.
//!
//! Nothing here starts a program or calls a model: that is what effects are for.

mod block;
mod file;
mod program;
mod prompt;
mod template;
mod yaml;

pub use crate::block::has_block;
pub use crate::program::{Bounds, ProgramFile};
pub use crate::prompt::load_prompt;
