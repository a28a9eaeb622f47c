//! The tests, one chapter a file, in reading order.

mod contract;
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
