//! Tests of the pattern language and of matching.

mod reading;
