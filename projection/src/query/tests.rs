//! Tests of queries; what `PATTERNS.md` says of them is tested with the patterns.

mod whole;
