//! A behavior: when it fires, and what it then proposes.

use serde_json::Value;

use crate::error::{MetadataError, ReactError};
use crate::metadata::Metadata;
use crate::proposal::Proposals;
use crate::view::Firing;

/// When it fires, and what it then proposes. Pure: the same firing, the same proposals.
pub trait Behavior: Send + Sync {
    /// What it says about itself. Never changes.
    fn metadata(&self) -> &Metadata;

    /// The effect that answers for it, if it cannot answer by itself: it then reacts twice. First
    /// it asks that effect, and nothing else; then it is shown the answer and proposes.
    fn asks(&self) -> Option<&str> {
        None
    }

    /// Whether it reacts somewhere else, where many firings are better handed over at once.
    fn is_remote(&self) -> bool {
        false
    }

    /// Is shown a firing that will probably come, so that its reaction can begin. What `react`
    /// proposes does not depend on it.
    fn prepare(&self, _firing: &Firing<'_>) {}

    /// Proposes what should follow.
    ///
    /// # Errors
    /// The reaction failed; what it proposed so far does not count.
    fn react(&self, firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError>;
}

/// A reaction written in Rust.
pub type Reaction = fn(&Firing<'_>, &mut Proposals<'_>) -> Result<(), ReactError>;

/// A behavior made of its metadata and a function.
#[derive(Clone, Debug)]
pub struct RustBehavior {
    metadata: Metadata,
    reaction: Reaction,
}

impl RustBehavior {
    /// A behavior with these fields of `Metadata`, as JSON, and this reaction.
    ///
    /// # Errors
    /// The metadata cannot be used.
    pub fn new(metadata: &Value, reaction: Reaction) -> Result<Self, MetadataError> {
        let Some(fields) = metadata.as_object() else {
            let what = format!("metadata is an object, found {metadata}");
            let (at, field) = ("a Rust behavior".to_owned(), String::new());
            return Err(MetadataError { at, field, what });
        };
        Ok(RustBehavior { metadata: Metadata::from_json(fields, "a Rust behavior")?, reaction })
    }
}

impl Behavior for RustBehavior {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn react(&self, firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
        (self.reaction)(firing, out)
    }
}
