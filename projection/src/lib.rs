//! What is therefore so: the graph that a log folds into.
//!
//! 1. Pure: the graph after event n is a function of events 0 to n and of nothing else.
//! 2. Whole: all changes of an event are applied, or none.
//! 3. Cheap copies: a clone takes microseconds and shares nothing that can be mutated.
//! 4. One order: elements are listed as they were created; no result depends on hash order.
//! 5. Comparable: equal worlds have equal state hashes, and two worlds are compared at the cost of
//!    their difference.
//!
//! The projection runs no user code and cannot look outside: no clock, randomness, file or thread.

mod delta;
mod diff;
mod fold;
mod graph;
mod json;
mod merge;
mod pattern;
mod query;
mod refusal;
mod schema;
mod snapshot;
mod state_hash;
mod validate;
mod varint;
mod world;

pub use crate::delta::{Delta, Operation, Written};
pub use crate::diff::{Difference, PropertyDifference, diff};
pub use crate::graph::{Born, EdgeRef, ElementRef, ElementView, Graph, NodeRef, TypeId};
pub use crate::merge::{Clash, Conflict, Merged, Wanted, merge};
pub use crate::pattern::{
    Aspect, DeltaRows, Env, ErrorClass, Exhausted, Explanation, Fault, Fixed, Kind, Pattern,
    PatternError, Problem, Row, SearchPlan, Stage, Steps, Types, Variable, Watch,
};
pub use crate::query::{Query, QueryEdge, QueryError, QueryNode, QueryValue};
pub use crate::refusal::Refusal;
pub use crate::schema::SCHEMA_DECLARED;
pub use crate::snapshot::{SNAPSHOT_VERSION, SnapshotError};
pub use crate::validate::check_chosen_id;
pub use crate::world::{Before, World};
