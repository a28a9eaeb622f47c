//! The tests, one chapter a file, in reading order.
#![allow(clippy::unwrap_used, reason = "a test says what failed where it fails")]

mod contract;
mod guest;
mod jsonl;
mod oracle;
mod share;
mod format;
mod stop;
mod store;
mod support;
mod tidy;
mod crash;
mod crowd;
mod damage;
mod faults;
mod power;
mod space;
mod stop;
mod store;
mod support;
mod tamper;
