//! The tests, one chapter a file, in reading order.
#![allow(clippy::unwrap_used, reason = "a test says what failed where it fails")]

mod guest;
mod jsonl;
