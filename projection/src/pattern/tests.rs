//! Tests of the pattern language and of matching.

mod agree;
mod naive;
mod random;
mod reading;
