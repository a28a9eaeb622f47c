//! Tests of the pattern language and of matching.

mod agree;
mod grammar;
mod logic;
mod naive;
mod random;
mod reading;
mod wider;
