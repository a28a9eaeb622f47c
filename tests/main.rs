//! The tests, one chapter a file, in reading order.
#![allow(clippy::unwrap_used, reason = "a test says what failed where it fails")]

mod contract;
mod format;
mod jsonl;
mod store;
mod stop;
mod share;
mod guest;

mod crash;
mod power;
mod faults;
mod damage;
mod tamper;
mod space;
mod crowd;

mod oracle;
mod recover;
mod round;
mod world;
mod refire;
mod bounds;
mod forge;
mod examples;

mod support;
mod tidy;
