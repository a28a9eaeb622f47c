//! A batch as stored: its events as one value, compressed where that pays.
//!
//! The header of a block says where it stands in the hash chain, so blocks can be checked against
//! each other without reading their events, and a block's events against its header without its
//! neighbours.

use std::cell::RefCell;

use bytes::Bytes;
use zstd::bulk::{Compressor, Decompressor};

use crate::chain;
use crate::error::Corruption;
use crate::event::Event;
use crate::id::{BatchId, BranchId, Hash, Head, Offset};
use crate::value::{read_bytes, read_varint, write_varint};

/// The version of everything in `FORMAT.md`; the first byte of every block.
pub const FORMAT_VERSION: u8 = 1;
/// A batch is cut into blocks of at most so many events.
pub(crate) const BLOCK_EVENTS_MAX: usize = 1024;
/// A batch is cut into blocks whose records have about so many bytes at most.
pub(crate) const BLOCK_BYTES_MAX: usize = 1 << 20;

const RAW: u8 = 0;
const ZSTD: u8 = 1;
/// The header of a block takes less.
const HEADER_MAX: usize = 100;
/// Shorter records are stored as they are.
const COMPRESS_MIN: usize = 512;
/// A block's records never take more, so a damaged length cannot ask for all memory.
const RECORDS_MAX: usize = 4 << 20;

/// Whether blocks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// With zstd level 1, where that saves an eighth.
    WherePays,
    /// Never: the block stays in memory.
    Never,
}

/// The records of consecutive events, packed for a block: all of it that does not depend on where
/// the block will stand, so it can be made before that is known.
#[derive(Debug)]
pub(crate) struct Packed {
    count: usize,
    codec: u8,
    records_length: usize,
    body: Vec<u8>,
}

impl Packed {
    pub(crate) fn of(events: &[(Event, Hash)], compression: Compression) -> Packed {
        let lengths = events.iter().map(|(event, _)| event.record().len() + 4);
        let mut records = Vec::with_capacity(lengths.sum());
        for (event, _) in events {
            write_varint(&mut records, event.record().len() as u64);
            records.extend_from_slice(event.record());
        }
        let records_length = records.len();
        let (codec, body) = compress(records, compression);
        Packed { count: events.len(), codec, records_length, body }
    }
}

/// Consecutive events of one branch, as stored.
#[derive(Clone, Debug)]
pub struct Block {
    /// The branch that owns it, which a fork may read through.
    pub branch: BranchId,
    /// The offset of its first event.
    pub first: Offset,
    /// How many events it holds.
    pub count: u64,
    /// The batch that it is, or is a part of.
    pub batch: BatchId,
    /// The link before its first event.
    pub before: Hash,
    /// The link of its last event.
    pub after: Hash,
    /// All of it, as stored.
    bytes: Bytes,
    codec: u8,
    records_length: usize,
    body_start: usize,
}

impl Block {
    /// Makes the block of `events`, each given with its digest, whose first stands after `before`.
    /// `packed` holds their records.
    pub(crate) fn write(
        branch: BranchId,
        batch: BatchId,
        before: Hash,
        events: &[(Event, Hash)],
        packed: &Packed,
    ) -> Block {
        assert!(!events.is_empty(), "a block holds events");
        assert_eq!(events.len(), packed.count, "the records are those of the events");
        let mut after = before;
        for (event, digest) in events {
            after = chain::link(&after, event.offset(), digest);
        }
        let Packed { codec, records_length, ref body, .. } = *packed;
        let mut bytes = Vec::with_capacity(body.len() + HEADER_MAX);
        bytes.push(FORMAT_VERSION);
        bytes.push(codec);
        write_varint(&mut bytes, events.len() as u64);
        write_varint(&mut bytes, records_length as u64);
        bytes.extend_from_slice(batch.as_bytes());
        bytes.extend_from_slice(before.as_bytes());
        bytes.extend_from_slice(after.as_bytes());
        let body_start = bytes.len();
        bytes.extend_from_slice(body);
        Block {
            branch,
            first: events[0].0.offset(),
            count: events.len() as u64,
            batch,
            before,
            after,
            bytes: bytes.into(),
            codec,
            records_length,
            body_start,
        }
    }

    /// Reads the header of a stored block.
    ///
    /// # Errors
    /// The bytes are not those of a block; the events themselves are checked by `events`.
    pub fn read(branch: BranchId, first: Offset, bytes: Bytes) -> Result<Block, Corruption> {
        let bad = |what: &str| Corruption { branch, offset: first, what: what.to_owned() };
        let mut rest: &[u8] = &bytes;
        let start = read_bytes(&mut rest, 2).map_err(bad)?;
        if start[0] != FORMAT_VERSION {
            return Err(bad(&format!("a block of format {}, not {FORMAT_VERSION}", start[0])));
        }
        let codec = start[1];
        let count = read_varint(&mut rest).map_err(bad)?;
        let length = read_varint(&mut rest).map_err(bad)?;
        let fits = count > 0 && count <= BLOCK_EVENTS_MAX as u64 && length <= RECORDS_MAX as u64;
        if !fits || codec > ZSTD {
            return Err(bad("the header of a block is damaged"));
        }
        let batch = read_bytes(&mut rest, 16).map_err(bad)?.try_into().expect("16 bytes were read");
        let mut hash = || -> Result<Hash, Corruption> {
            let bytes = read_bytes(&mut rest, 32).map_err(bad)?;
            Ok(Hash::from_bytes(bytes.try_into().expect("32 bytes were read")))
        };
        let (before, after) = (hash()?, hash()?);
        let body_start = bytes.len() - rest.len();
        let batch = BatchId::from_bytes(batch);
        let records_length = usize::try_from(length).expect("checked against the limit");
        Ok(Block {
            branch,
            first,
            count,
            batch,
            before,
            after,
            codec,
            records_length,
            body_start,
            bytes,
        })
    }

    /// The head of the branch after this block.
    #[must_use]
    pub fn head(&self) -> Head {
        Head::of_count(self.first.get() + self.count)
    }

    /// The block as stored.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The events, in order, each checked for its form. `verify` checks them against the chain.
    ///
    /// # Errors
    /// The first offset at which the bytes are damaged.
    pub fn events(&self) -> Result<Vec<Event>, Corruption> {
        let bad = |nth: u64, what: &str| Corruption {
            branch: self.branch,
            offset: self.first.plus(nth),
            what: what.to_owned(),
        };
        let records = self.records().map_err(|what| bad(0, what))?;
        let mut events = Vec::with_capacity(self.count as usize);
        let mut rest: &[u8] = &records;
        for nth in 0..self.count {
            let length = read_varint(&mut rest).map_err(|what| bad(nth, what))?;
            let start = records.len() - rest.len();
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            read_bytes(&mut rest, length).map_err(|what| bad(nth, what))?;
            let record = records.slice(start..start + length);
            let event = Event::from_record(record, self.first.plus(nth));
            events.push(event.map_err(|what| bad(nth, what))?);
        }
        if rest.is_empty() {
            Ok(events)
        } else {
            Err(bad(self.count - 1, "bytes after the last event"))
        }
    }

    /// Checks the block's events against its place in the chain.
    ///
    /// # Errors
    /// The block's first offset, when what it holds is not what was written: only the whole block
    /// is covered by the link after it.
    pub fn verify(&self, events: &[Event]) -> Result<(), Corruption> {
        assert_eq!(events.len() as u64, self.count, "the events are this block's");
        let mut link = self.before;
        for event in events {
            link = chain::link(&link, event.offset(), &event.digest());
        }
        if link == self.after {
            return Ok(());
        }
        let last = self.first.plus(self.count - 1);
        let what = format!("the events up to offset {last} do not have the hash that was stored");
        Err(Corruption { branch: self.branch, offset: self.first, what })
    }

    fn records(&self) -> Result<Bytes, &'static str> {
        decompress(self.codec, self.bytes.slice(self.body_start..), self.records_length)
    }
}

thread_local! {
    /// Making these takes longer than packing a small block.
    static ZSTD_CONTEXT: RefCell<(Compressor<'static>, Decompressor<'static>)> = RefCell::new((
        Compressor::new(1).expect("level 1 is a level of zstd"),
        Decompressor::new().expect("zstd needs only memory"),
    ));
}

/// Gives the codec and the bytes as stored.
pub(crate) fn compress(raw: Vec<u8>, compression: Compression) -> (u8, Vec<u8>) {
    if compression == Compression::WherePays && raw.len() >= COMPRESS_MIN {
        let packed = ZSTD_CONTEXT.with_borrow_mut(|(compressor, _)| compressor.compress(&raw));
        let packed = packed.expect("memory can be compressed into memory");
        if packed.len() < raw.len() - raw.len() / 8 {
            return (ZSTD, packed);
        }
    }
    (RAW, raw)
}

/// What `compress` was given; `length` is what that had.
pub(crate) fn decompress(codec: u8, body: Bytes, length: usize) -> Result<Bytes, &'static str> {
    let raw: Bytes = match codec {
        RAW => body,
        ZSTD => {
            let raw = ZSTD_CONTEXT.with_borrow_mut(|(_, reader)| reader.decompress(&body, length));
            raw.map_err(|_| "the bytes cannot be decompressed")?.into()
        }
        _ => return Err("the bytes are compressed in an unknown way"),
    };
    if raw.len() == length { Ok(raw) } else { Err("the bytes have the wrong length") }
}
