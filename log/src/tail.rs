//! Following a branch: its events from any offset, then live.
//!
//! A head that is announced is only a wake-up; the events come from the log. So a slow reader never
//! holds up the writer and never misses an event.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::error::LogError;
use crate::event::Event;
use crate::id::{BranchId, Head, Offset};
use crate::log::Log;
use crate::read::read;

/// How many events wait for a slow reader.
const AHEAD_MAX: usize = 1024;

/// The events of `branch` from `from` on, without end. Dropping the stream ends it; an error ends
/// it too.
///
/// # Errors
/// There is no such branch.
///
/// # Panics
/// Outside a tokio runtime.
pub fn tail(
    log: Arc<dyn Log>,
    branch: BranchId,
    from: Offset,
) -> Result<ReceiverStream<Result<Event, LogError>>, LogError> {
    let mut heads = log.watch(branch)?;
    let (sender, receiver) = mpsc::channel(AHEAD_MAX);
    tokio::spawn(async move {
        let mut next = from;
        loop {
            let head: Head = *heads.borrow_and_update();
            while next < head.next() {
                let (log, stop) = (Arc::clone(&log), next.plus(AHEAD_MAX as u64).min(head.next()));
                let fetch = tokio::task::spawn_blocking(move || fetch(&*log, branch, next, stop));
                let Ok(found) = fetch.await else { return };
                let failed = found.last().is_none_or(Result::is_err);
                for event in found {
                    if sender.send(event).await.is_err() {
                        return;
                    }
                }
                if failed {
                    return;
                }
                next = stop;
            }
            tokio::select! {
                changed = heads.changed() => if changed.is_err() { return },
                () = sender.closed() => return,
            }
        }
    });
    Ok(ReceiverStream::new(receiver))
}

fn fetch(
    log: &dyn Log,
    branch: BranchId,
    from: Offset,
    stop: Offset,
) -> Vec<Result<Event, LogError>> {
    match read(log, branch, from..stop) {
        Ok(events) => events.collect(),
        Err(error) => vec![Err(error)],
    }
}
