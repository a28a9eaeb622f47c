//! The tests, one chapter a file, in reading order.

mod store;
mod support;
