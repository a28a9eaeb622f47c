//! The tests, one chapter a file, in reading order.
