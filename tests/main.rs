//! The tests, one chapter a file, in reading order.

mod contract;
mod stop;
mod store;
mod support;
