//! Making it happen: commands, and with them everything that touches the world outside the log.

pub mod cli;
mod clock;
