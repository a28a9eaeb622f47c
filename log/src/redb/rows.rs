//! The bytes of the small rows: tips, branch records and blobs. `FORMAT.md` describes them.

use bytes::Bytes;

use crate::block::{Compression, compress, decompress};
use crate::branch::{ForkPoint, Tip};
use crate::id::{BranchId, BranchName, Epoch, Hash, Head};
use crate::tables::BranchRecord;
use crate::value::{read_bytes, read_str, read_varint, write_str, write_varint};

/// The length of a stored tip.
pub(super) const TIP_BYTES: usize = 56;

/// Head, link, epoch and taken.
pub(super) fn write_tip(tip: &Tip) -> [u8; TIP_BYTES] {
    let mut bytes = [0; TIP_BYTES];
    bytes[..8].copy_from_slice(&tip.head.count().to_le_bytes());
    bytes[8..40].copy_from_slice(tip.link.as_bytes());
    bytes[40..48].copy_from_slice(&tip.epoch.get().to_le_bytes());
    bytes[48..].copy_from_slice(&tip.taken.to_le_bytes());
    bytes
}

pub(super) fn read_tip(bytes: &[u8; TIP_BYTES]) -> Tip {
    let mut rest: &[u8] = bytes;
    let whole = "a tip has 56 bytes";
    let head = read_u64(&mut rest).expect(whole);
    let link = read_hash(&mut rest).expect(whole);
    let epoch = read_u64(&mut rest).expect(whole);
    let taken = read_u64(&mut rest).expect(whole);
    Tip { head: Head::of_count(head), link, epoch: Epoch::new(epoch), taken }
}

/// The name, then a fork's parent, cut, link and serving mode.
pub(super) fn write_branch(record: &BranchRecord) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(100);
    write_str(&mut bytes, record.name.as_str());
    if let Some(fork) = &record.fork {
        write_varint(&mut bytes, u64::from(fork.parent.get()));
        write_varint(&mut bytes, fork.cut.count());
        bytes.extend_from_slice(fork.link.as_bytes());
        write_str(&mut bytes, &fork.serving);
    }
    bytes
}

/// Reads the record of branch `id`.
pub(super) fn read_branch(id: BranchId, bytes: &[u8]) -> Result<BranchRecord, &'static str> {
    let mut rest = bytes;
    let name: BranchName = read_str(&mut rest)?.parse().map_err(|_| "a name of a wrong form")?;
    if rest.is_empty() {
        return Ok(BranchRecord { name, fork: None });
    }
    let parent = read_varint(&mut rest)?;
    let parent = u32::try_from(parent).ok().filter(|parent| *parent < id.get());
    let parent = BranchId::new(parent.ok_or("a parent that is not older than its fork")?);
    let cut = Head::of_count(read_varint(&mut rest)?);
    let link = read_hash(&mut rest)?;
    let serving = read_str(&mut rest)?.to_owned();
    if !rest.is_empty() {
        return Err("bytes after its end");
    }
    Ok(BranchRecord { name, fork: Some(ForkPoint { parent, cut, link, serving }) })
}

/// How the text is packed, its length, and the text.
pub(super) fn write_blob(text: &Bytes) -> Vec<u8> {
    let (codec, body) = compress(text.to_vec(), Compression::WherePays);
    let mut bytes = Vec::with_capacity(body.len() + 11);
    bytes.push(codec);
    write_varint(&mut bytes, text.len() as u64);
    bytes.extend_from_slice(&body);
    bytes
}

/// Reads the text that has this hash.
pub(super) fn read_blob(hash: &Hash, bytes: &Bytes) -> Result<Bytes, &'static str> {
    let mut rest: &[u8] = bytes;
    let codec = read_bytes(&mut rest, 1)?[0];
    let length = usize::try_from(read_varint(&mut rest)?).map_err(|_| "a length over the end")?;
    let start = bytes.len() - rest.len();
    // zstd packs a byte into no less than a 2^17th of one, so a damaged length asks for no more.
    if length >> 17 > rest.len() {
        return Err("a length over the end");
    }
    let text = decompress(codec, bytes.slice(start..), length)?;
    if Hash::of(&text) == *hash { Ok(text) } else { Err("it has another hash") }
}

pub(super) fn read_u64(rest: &mut &[u8]) -> Result<u64, &'static str> {
    let bytes = read_bytes(rest, 8)?;
    Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes were read")))
}

pub(super) fn read_hash(rest: &mut &[u8]) -> Result<Hash, &'static str> {
    let bytes = read_bytes(rest, 32)?;
    Ok(Hash::from_bytes(bytes.try_into().expect("32 bytes were read")))
}
