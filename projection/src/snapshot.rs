//! A fold stopped at an offset: the graph as bytes.

use crate::graph::Graph;

/// The first byte of every snapshot.
pub const SNAPSHOT_VERSION: u8 = 1;

/// Why bytes are not a snapshot. Fold the log from its beginning instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are facts named by the message that shows them")]
pub enum SnapshotError {
    #[error("the snapshot has format {found}, this version reads {known}")]
    Version { found: u8, known: u8 },
    #[error("the snapshot is damaged: {what}")]
    Damaged { what: &'static str },
}

impl Graph {
    /// The graph as bytes: the same graph gives the same bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        todo!("skeleton")
    }

    /// Reads what `encode` wrote. Indexes must be declared again.
    ///
    /// # Errors
    /// Another format, or damaged bytes.
    pub fn decode(_bytes: &[u8]) -> Result<Graph, SnapshotError> {
        todo!("skeleton")
    }
}
