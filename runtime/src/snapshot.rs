//! The world at any offset of a branch.

use log::{BranchId, Head, Log, LogError, Offset, read};
use projection::Graph;

use crate::engine::{EngineError, FoldError};

/// The graph that the events of a branch before `cut.next()` fold into.
pub(crate) fn graph_at(log: &dyn Log, branch: BranchId, cut: Head) -> Result<Graph, EngineError> {
    let mut graph = Graph::new();
    for event in read(log, branch, Offset::ZERO..cut.next())? {
        let event = event.map_err(LogError::from)?;
        let refused = |refusal| FoldError::Refused { offset: event.offset(), refusal };
        graph.apply(&event).map_err(refused)?;
    }
    Ok(graph)
}
