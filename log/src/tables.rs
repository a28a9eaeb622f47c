//! What a backend keeps, and the rules of writing that no backend decides for itself.
//!
//! Every backend stores five tables: branches, tips, blocks, keys and blobs. `land`, `land_offer`,
//! `create`, `fork` and `claim` are the only code that writes them, so a rule (what a key means,
//! when a head has moved) is the same for all.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;

use crate::batch::Batch;
use crate::block::{BLOCK_BYTES_MAX, BLOCK_EVENTS_MAX, Block, Compression, Packed};
use crate::branch::{Branch, ForkPoint, Lineage, Tip};
use crate::chain::{self, genesis};
use crate::error::{AppendError, Corruption, EventError, LogError};
use crate::event::Event;
use crate::id::{BatchId, BranchId, BranchName, Epoch, Hash, Head, Offset};
use crate::log::{Append, Appended, Landed, Offer};

/// What never changes about a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BranchRecord {
    pub(crate) name: BranchName,
    pub(crate) fork: Option<ForkPoint>,
}

/// The tables of one store as they are read.
pub(crate) trait Tables {
    fn branch_count(&self) -> Result<u32, LogError>;
    fn branch_record(&self, branch: BranchId) -> Result<Option<BranchRecord>, LogError>;
    fn has_branch(&self, name: &BranchName) -> Result<bool, LogError>;
    fn tip(&self, branch: BranchId) -> Result<Option<Tip>, LogError>;
    /// The block of the branch itself that holds `offset`, or the last one before it.
    fn own_block(&self, branch: BranchId, offset: Offset) -> Result<Option<Block>, LogError>;
    fn own_key(&self, branch: BranchId, key: &str) -> Result<Option<Offset>, LogError>;
}

/// The tables of one store within one commit.
pub(crate) trait WriteTables: Tables {
    fn has_blob(&self, hash: &Hash) -> Result<bool, LogError>;
    fn blob(&self, hash: &Hash) -> Result<Option<Bytes>, LogError>;
    fn compression(&self) -> Compression;

    fn put_branch(&mut self, branch: BranchId, record: &BranchRecord) -> Result<(), LogError>;
    fn put_tip(&mut self, branch: BranchId, tip: &Tip) -> Result<(), LogError>;
    fn put_block(&mut self, block: &Block) -> Result<(), LogError>;
    fn put_key(&mut self, branch: BranchId, key: &str, offset: Offset) -> Result<(), LogError>;
    fn put_blob(&mut self, hash: &Hash, bytes: &Bytes) -> Result<(), LogError>;
}

/// One branch as the caller sees it.
pub(crate) fn branch(tables: &dyn Tables, id: BranchId) -> Result<Branch, LogError> {
    let record = tables.branch_record(id)?.ok_or_else(|| no_branch(id))?;
    Ok(Branch { id, name: record.name, fork: record.fork, tip: tip(tables, id)? })
}

fn no_branch(id: BranchId) -> LogError {
    LogError::NoBranch { name: id.to_string() }
}

/// How far a branch reaches.
pub(crate) fn tip(tables: &dyn Tables, id: BranchId) -> Result<Tip, LogError> {
    tables.tip(id)?.ok_or_else(|| no_branch(id))
}

/// All branches, by number.
pub(crate) fn branches(tables: &dyn Tables) -> Result<Vec<Branch>, LogError> {
    (0..tables.branch_count()?).map(|number| branch(tables, BranchId::new(number))).collect()
}

/// The branch and its ancestors.
pub(crate) fn lineage(tables: &dyn Tables, id: BranchId) -> Result<Lineage, LogError> {
    Lineage::of(id, |id| Ok(branch(tables, id)?.fork))
}

/// Makes an empty branch.
pub(crate) fn create(tables: &mut dyn WriteTables, name: &BranchName) -> Result<Branch, LogError> {
    let tip = Tip { head: Head::EMPTY, link: genesis(), epoch: Epoch::UNCLAIMED, taken: 0 };
    add_branch(tables, name, None, tip)
}

/// Makes a branch that shares a prefix of `parent`.
pub(crate) fn fork(
    tables: &mut dyn WriteTables,
    parent: BranchId,
    cut: Head,
    name: &BranchName,
    serving: &str,
) -> Result<Branch, LogError> {
    let head = tip(tables, parent)?.head;
    if cut > head {
        return Err(LogError::BeyondHead { branch: parent, head, asked: cut });
    }
    let (link, taken) = match cut.last() {
        None => (genesis(), 0),
        Some(last) => link_and_taken(tables, parent, last)?,
    };
    let serving = serving.to_owned();
    let fork = ForkPoint { parent, cut, link, serving };
    let tip = Tip { head: cut, link, epoch: Epoch::UNCLAIMED, taken };
    add_branch(tables, name, Some(fork), tip)
}

fn add_branch(
    tables: &mut dyn WriteTables,
    name: &BranchName,
    fork: Option<ForkPoint>,
    tip: Tip,
) -> Result<Branch, LogError> {
    if tables.has_branch(name)? {
        return Err(LogError::BranchExists { name: name.clone() });
    }
    let id = BranchId::new(tables.branch_count()?);
    let record = BranchRecord { name: name.clone(), fork };
    tables.put_branch(id, &record)?;
    tables.put_tip(id, &tip)?;
    branch(tables, id)
}

/// The link of the event at `offset`, and how many activations had been taken there.
fn link_and_taken(
    tables: &dyn Tables,
    id: BranchId,
    offset: Offset,
) -> Result<(Hash, u64), LogError> {
    let block = block_with(tables, id, offset)?;
    let events = block.events()?;
    let (mut link, mut found) = (block.before, None);
    for event in &events {
        link = chain::link(&link, event.offset(), &event.digest());
        if event.offset() == offset {
            found = Some((link, event.taken()));
        }
    }
    // Only the whole block can be compared with what was stored.
    if link != block.after {
        block.verify(&events)?;
    }
    Ok(found.expect("the block holds the offset"))
}

/// The block that holds `offset`, on the branch or the ancestor that owns it.
pub(crate) fn block_with(
    tables: &dyn Tables,
    id: BranchId,
    offset: Offset,
) -> Result<Block, LogError> {
    let owner = lineage(tables, id)?.owner(offset).branch;
    let block = tables.own_block(owner, offset)?;
    let block = block.filter(|block| offset < block.head().next());
    let gone = || Corruption { branch: owner, offset, what: "the event is missing".to_owned() };
    block.ok_or_else(|| gone().into())
}

/// Claims a branch: every older claim is over.
pub(crate) fn claim(tables: &mut dyn WriteTables, id: BranchId) -> Result<Epoch, LogError> {
    let tip = tip(tables, id)?;
    let epoch = tip.epoch.next();
    tables.put_tip(id, &Tip { epoch, ..tip })?;
    Ok(epoch)
}

/// Lands a batch, whose id is `name`, at exactly its place, or says why not. `packed` may hold its
/// records, as `pack` makes them.
pub(crate) fn land(
    tables: &mut dyn WriteTables,
    append: &Append,
    name: BatchId,
    packed: Option<&[Packed]>,
) -> Result<Appended, AppendError> {
    let Append { branch: id, batch, expected, epoch } = append;
    let tip = tip(tables, *id)?;
    if *epoch != tip.epoch {
        return Err(AppendError::Superseded { branch: *id, held: *epoch, current: tip.epoch });
    }
    if *expected != tip.head {
        let (branch, expected, actual) = (*id, *expected, tip.head);
        return Err(AppendError::TailMoved { branch, expected, actual });
    }
    append.check_place();
    write(tables, Place { id: *id, tip }, batch, name, packed)
}

/// Lands events from outside at the head, wherever it is. The batch that they make is named in
/// `name` before anything of it is written.
pub(crate) fn land_offer(
    tables: &mut dyn WriteTables,
    id: BranchId,
    offer: &Offer,
    name: &mut BatchId,
) -> Result<Appended, AppendError> {
    let tip = tip(tables, id)?;
    if let Some(expected) = offer.expected.filter(|expected| *expected != tip.head) {
        return Err(AppendError::TailMoved { branch: id, expected, actual: tip.head });
    }
    let mut drafts = offer.drafts.clone();
    drafts.iter_mut().for_each(|draft| draft.taken = tip.taken);
    let batch = Batch::of_drafts(tip.head.next(), &drafts)?;
    *name = batch.id(id, tip.head);
    write(tables, Place { id, tip }, &batch, *name, None)
}

/// Where a batch is to land.
#[derive(Clone, Copy)]
struct Place {
    id: BranchId,
    tip: Tip,
}

fn write(
    tables: &mut dyn WriteTables,
    place: Place,
    batch: &Batch,
    name: BatchId,
    packed: Option<&[Packed]>,
) -> Result<Appended, AppendError> {
    let Place { id, tip } = place;
    let (events, blobs) = batch.parts();
    let (fresh, landed) = without_repeats(tables, id, tip.head, events)?;
    for named in &blobs.named {
        let hash = named.hash;
        let given = blobs.given.iter().find(|(known, _)| *known == hash);
        let text = match given {
            Some((_, text)) => Some(text.clone()),
            None => tables.blob(&hash)?,
        };
        let text = text.ok_or(EventError::NoBlob { hash })?;
        if !named.is_true_of(&text) {
            return Err(EventError::BlobDiffers { hash }.into());
        }
    }
    // From here on nothing refuses the batch, so a refused one has written nothing.
    for (hash, bytes) in &blobs.given {
        if !tables.has_blob(hash)? {
            tables.put_blob(hash, bytes)?;
        }
    }
    let ours;
    let packed = match packed {
        Some(packed) if fresh.len() == events.len() => packed,
        _ => {
            ours = pack(&fresh, tables.compression());
            &ours
        }
    };
    let mut link = tip.link;
    for (part, packed) in parts(&fresh).zip(packed) {
        let block = Block::write(id, name, link, part, packed);
        link = block.after;
        tables.put_block(&block)?;
    }
    for (event, _) in fresh.iter() {
        if let Some(key) = event.key() {
            tables.put_key(id, key, event.offset())?;
        }
    }
    let taken = fresh.last().map_or(tip.taken, |(event, _)| event.taken());
    let head = tip.head.plus(fresh.len() as u64);
    if head > tip.head {
        tables.put_tip(id, &Tip { head, link, epoch: tip.epoch, taken })?;
    }
    Ok(Appended { head, link, landed })
}

type Sealed = (Event, Hash);

/// Leaves out what a durable key says has landed before, and closes the gaps.
fn without_repeats<'a>(
    tables: &dyn Tables,
    id: BranchId,
    head: Head,
    events: &'a [Sealed],
) -> Result<(Cow<'a, [Sealed]>, Vec<Landed>), AppendError> {
    let fresh = |offset| Landed { offset, repeated: false };
    if events.iter().all(|(event, _)| event.key().is_none()) {
        let landed = events.iter().map(|(event, _)| fresh(event.offset())).collect();
        return Ok((Cow::Borrowed(events), landed));
    }
    let mut kept: Vec<Sealed> = Vec::with_capacity(events.len());
    let mut landed = Vec::with_capacity(events.len());
    let mut in_batch: HashMap<&str, usize> = HashMap::new();
    for (event, digest) in events {
        let offset = head.next().plus(kept.len() as u64);
        if let Some(key) = event.key() {
            let first = match in_batch.get(key) {
                Some(place) => Some(kept[*place].0.clone()),
                None => keyed_event(tables, id, key)?,
            };
            if let Some(first) = first {
                if !first.same_content(event) {
                    let (branch, key, first) = (id, key.to_owned(), first.offset());
                    return Err(AppendError::KeyConflict { branch, key, first });
                }
                landed.push(Landed { offset: first.offset(), repeated: true });
                continue;
            }
            in_batch.insert(key, kept.len());
        }
        landed.push(fresh(offset));
        kept.push((event.clone().at(offset), *digest));
    }
    Ok((Cow::Owned(kept), landed))
}

/// Where a key stands along the ancestry of a branch; `own_key` looks among a branch's own.
pub(crate) fn find_key(
    lineage: &Lineage,
    own_key: impl Fn(BranchId) -> Result<Option<Offset>, LogError>,
) -> Result<Option<Offset>, LogError> {
    for segment in lineage.segments().iter().rev() {
        let found = own_key(segment.branch)?;
        let found = found.filter(|offset| segment.to.is_none_or(|to| *offset < to));
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn keyed_event(tables: &dyn Tables, id: BranchId, key: &str) -> Result<Option<Event>, LogError> {
    let found = find_key(&lineage(tables, id)?, |branch| tables.own_key(branch, key))?;
    let Some(offset) = found else { return Ok(None) };
    let block = block_with(tables, id, offset)?;
    let place = block.first.distance_to(offset) as usize;
    Ok(block.events()?.into_iter().nth(place))
}

/// The records of a batch's blocks, which need not know where they will stand.
pub(crate) fn pack(events: &[(Event, Hash)], compression: Compression) -> Vec<Packed> {
    parts(events).map(|part| Packed::of(part, compression)).collect()
}

/// Cuts events into what fits a block.
fn parts(events: &[Sealed]) -> impl Iterator<Item = &[Sealed]> {
    let mut rest = events;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (mut count, mut bytes) = (0, 0);
        while count < rest.len().min(BLOCK_EVENTS_MAX) && (count == 0 || bytes < BLOCK_BYTES_MAX) {
            bytes += rest[count].0.record().len();
            count += 1;
        }
        let (part, tail) = rest.split_at(count);
        rest = tail;
        Some(part)
    })
}

/// The stored blocks from `from` to `head`, through the ancestors; see `Log::blocks`. `own_block`
/// finds the block of a branch itself that holds an offset, or the last one before it.
pub(crate) fn blocks(
    lineage: &Lineage,
    head: Head,
    from: Offset,
    bytes_max: usize,
    mut own_block: impl FnMut(BranchId, Offset) -> Result<Option<Block>, LogError>,
) -> Result<Vec<Block>, LogError> {
    let (mut found, mut bytes, mut at) = (Vec::new(), 0, from);
    while at < head.next() && (found.is_empty() || bytes < bytes_max) {
        let segment = lineage.owner(at);
        let block = own_block(segment.branch, at)?;
        let block = block.filter(|block| at < block.head().next());
        let Some(block) = block else {
            let what = "the event is missing".to_owned();
            return Err(Corruption { branch: segment.branch, offset: at, what }.into());
        };
        bytes += block.bytes().len();
        let end = block.head().next();
        at = segment.to.map_or(end, |to| end.min(to));
        found.push(block);
    }
    Ok(found)
}
