//! The tests, one chapter a file, in reading order.

mod contract;
mod faults;
mod power;
mod stop;
mod store;
mod support;
