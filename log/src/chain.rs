//! The hash chain of a branch: an edited, missing or reordered event is found, with its offset.
//!
//! `link(n)` is keyed BLAKE3, with `link(n-1)` as the key, over n as 8 bytes, little-endian, and
//! the digest of event n; before the first event stands `genesis`. A fork continues its parent's
//! chain. Batches leave no trace in it.

use crate::id::{Hash, Offset};

/// The link before the first event of a store's history.
#[must_use]
pub fn genesis() -> Hash {
    Hash::from_bytes(*blake3::hash(b"starling log, format 1").as_bytes())
}

/// The link of the event at `offset`, whose digest is given, after the link of its predecessor.
#[must_use]
pub fn link(before: &Hash, offset: Offset, digest: &Hash) -> Hash {
    let mut input = [0u8; 40];
    input[..8].copy_from_slice(&offset.get().to_le_bytes());
    input[8..].copy_from_slice(digest.as_bytes());
    Hash::from_bytes(*blake3::keyed_hash(before.as_bytes(), &input).as_bytes())
}
