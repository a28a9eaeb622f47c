//! The tests, one chapter a file, in reading order.
#![allow(clippy::unwrap_used, reason = "a test says what failed where it fails")]

mod contract;
mod format;
mod guest;
mod jsonl;
mod share;
mod stop;
mod store;

mod crash;
mod crowd;
mod damage;
mod faults;
mod power;
mod space;
mod tamper;

mod asking;
mod bounds;
mod conformance;
mod effects;
mod examples;
mod flocks;
mod forge;
mod forks;
mod history;
mod import;
mod late;
mod live;
mod oracle;
mod promote;
mod recover;
mod refire;
mod replay;
mod round;
mod tck;
mod wake;
mod world;

mod purity;
mod support;
mod tidy;
