//! The tests, one chapter a file, in reading order.

mod contract;
mod format;
mod stop;
mod store;
mod support;
