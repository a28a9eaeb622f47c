//! An append-only log of events, kept on disk, with cheap branches.
//!
//! 1. Order: events on a branch have consecutive offsets, starting at zero.
//! 2. Permanence: once an append is acknowledged, its events survive a crash and a loss of power.
//! 3. Honesty: a damaged record is reported with its offset, never skipped.
//! 4. Forks are free: a branch shares its prefix with its parent, at any offset.
//!
//! The log does not know what an event means; that is the job of `projection`. It runs no behavior,
//! reads no clock, and waits for nobody but the disk.

mod address;
mod backup;
mod batch;
mod block;
mod branch;
mod chain;
mod change;
mod claims;
mod derive;
mod encode;
mod error;
mod event;
mod guest;
mod id;
mod jsonl;
mod log;
mod memory;
mod read;
mod redb;
mod store;
mod tables;
mod tail;
mod value;

pub use crate::address::{Address, At};
pub use crate::backup::backup;
pub use crate::batch::Batch;
pub use crate::block::{Block, FORMAT_VERSION};
pub use crate::branch::{Branch, ForkPoint, Lineage, Segment, Tip};
pub use crate::chain::{genesis, link};
pub use crate::change::{Change, ChangeRef, ChangesRef, NamesRef, WriteOp, change_reference};
pub use crate::derive::{Derivation, element_id, ensured_edge_id};
pub use crate::error::{AppendError, Corruption, EventError, LogError, NameError};
pub use crate::event::{Bound, Cause, Draft, EVENT_MAX, Event};
pub use crate::guest::{GuestLog, Server};
pub use crate::id::{
    BatchId, BranchId, BranchName, Epoch, EventId, Hash, Head, Hex, LogId, Offset, Time,
};
pub use crate::jsonl::{
    Escapes, ImportError, Imported, LINE_MAX, LineError, export, import, read_line, write_line,
};
pub use crate::log::{Append, Appended, Claim, Delivery, Landed, Log, Offer, Pending};
pub use crate::memory::MemoryLog;
pub use crate::read::{Events, find_batch, link_at, read, read_ahead, read_all, read_one, verify};
pub use crate::redb::RedbLog;
pub use crate::store::{Missing, Store};
pub use crate::tail::tail;
pub use crate::value::{
    BLOB_HEAD, BlobRef, Blobs, DEPTH_MAX, INLINE_MAX, ListRef, MapRef, NamedBlob, ValueRef,
    ValueWriter, parse_object,
};
