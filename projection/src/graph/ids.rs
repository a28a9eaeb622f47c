//! From an id to its element: a persistent hash table that grows one bucket at a time.
//!
//! A bucket is a short list of hashes and elements, by hash, with a little room to grow in. Growing
//! by linear hashing has no moment at which everything moves, so no event is slower than its
//! neighbors.

use triomphe::Arc;

use super::element::{EdgeRef, ElementRef, NodeRef};
use super::pages::Pages;

/// Entries per bucket, on average; one that waits for its split has about twice as many. So many
/// that the list of buckets stays in the processor's cache, and so few that a bucket is quickly
/// searched and copied.
const LOAD: usize = 32;
/// A bucket has room for a multiple of so many entries.
const ROOM: usize = 16;
/// How many entries before and after the likely place are compared at once.
const NEAR: usize = 6;
/// The bit that tells edges from nodes.
const EDGE: u32 = 1 << 31;

/// The table. It holds hashes, not ids: whoever asks compares ids.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    buckets: Pages<Bucket>,
    bucket_count: u32,
    len: usize,
}

/// The entries of one bucket, by hash: each is the hash in the upper half and the element in the
/// lower half. After them is room for more.
#[derive(Clone, Debug)]
struct Bucket {
    /// How many there are: here, so that a search reads nothing but the entries it looks at.
    len: u32,
    room: Arc<[u64]>,
}

impl Bucket {
    fn of(entries: &[u64]) -> Bucket {
        Bucket::with(entries, &[], &[])
    }

    /// The entries of three lists, one after the other.
    fn with(first: &[u64], second: &[u64], third: &[u64]) -> Bucket {
        let len = first.len() + second.len() + third.len();
        let free = len.next_multiple_of(ROOM) - len;
        let entries = [first, second, third, &[0; ROOM][..free]].concat();
        let len = u32::try_from(len).expect("elements have numbers");
        Bucket { len, room: entries.into_iter().collect() }
    }

    fn entries(&self) -> &[u64] {
        &self.room[..self.len as usize]
    }

    /// The elements of a hash, and where they begin.
    fn equal(&self, hash: u32) -> (usize, impl Iterator<Item = ElementRef>) {
        let entries = self.entries();
        let at = start_of(entries, hash);
        let equal = entries[at..].iter().take_while(move |entry| (**entry >> 32) as u32 == hash);
        (at, equal.map(|entry| ElementRef::unpacked(*entry as u32)))
    }

    /// Adds an entry at its place, without a copy if nobody shares the bucket and there is room.
    fn insert(&mut self, at: usize, entry: u64) {
        let len = self.len as usize;
        match Arc::get_mut(&mut self.room) {
            Some(own) if len < own.len() => {
                own.copy_within(at..len, at + 1);
                own[at] = entry;
                self.len += 1;
            }
            _ => *self = Bucket::with(&self.entries()[..at], &[entry], &self.entries()[at..]),
        }
    }
}

impl Default for Bucket {
    fn default() -> Self {
        Bucket::of(&[])
    }
}

impl Default for Ids {
    fn default() -> Self {
        Ids { buckets: Pages::default(), bucket_count: 1, len: 0 }
    }
}

impl ElementRef {
    /// The element as one number.
    pub(crate) fn packed(self) -> u32 {
        match self {
            ElementRef::Node(NodeRef(number)) => number,
            ElementRef::Edge(EdgeRef(number)) => number | EDGE,
        }
    }

    pub(crate) fn unpacked(number: u32) -> ElementRef {
        if number & EDGE == 0 {
            ElementRef::Node(NodeRef(number))
        } else {
            ElementRef::Edge(EdgeRef(number & !EDGE))
        }
    }
}

/// Nodes and edges each have numbers below this.
pub(crate) const NUMBER_MAX: u32 = EDGE - 1;

impl Ids {
    /// A table of all these elements, built at once.
    pub(crate) fn of(elements: impl Iterator<Item = (u32, ElementRef)>) -> Self {
        let packed = |(hash, element): (u32, ElementRef)| entry_of(hash, element);
        let entries: Vec<u64> = elements.map(packed).collect();
        let bucket_count = u32::try_from(entries.len().div_ceil(LOAD).max(1));
        let bucket_count = bucket_count.expect("there are fewer elements than numbers");
        let mut ids = Ids { buckets: Pages::default(), bucket_count, len: entries.len() };
        let bucket = |ids: &Ids, entry: u64| ids.bucket_of((entry >> 32) as u32) as usize;
        // Counted, then dealt out: `ends` holds where the next entry of each bucket goes.
        let mut ends = vec![0usize; bucket_count as usize + 1];
        entries.iter().for_each(|entry| ends[bucket(&ids, *entry) + 1] += 1);
        (1..ends.len()).for_each(|nth| ends[nth] += ends[nth - 1]);
        let mut dealt = vec![0u64; entries.len()];
        for entry in entries {
            let end = &mut ends[bucket(&ids, entry)];
            dealt[*end] = entry;
            *end += 1;
        }
        let mut start = 0;
        for (number, end) in (0..bucket_count).zip(ends) {
            let entries = &mut dealt[start..end];
            entries.sort_unstable();
            if !entries.is_empty() {
                ids.buckets.insert(number, Bucket::of(entries));
            }
            start = end;
        }
        ids
    }

    /// Whether two elements of the same hash are the same, as `same` says.
    pub(crate) fn any_twins(&self, same: impl Fn(ElementRef, ElementRef) -> bool) -> bool {
        let element = |entry: u64| ElementRef::unpacked(entry as u32);
        self.buckets.iter().any(|(_, bucket)| {
            let bucket = bucket.entries();
            bucket.iter().enumerate().any(|(nth, one)| {
                let others =
                    bucket[nth + 1..].iter().take_while(|other| **other >> 32 == one >> 32);
                others.into_iter().any(|other| same(element(*one), element(*other)))
            })
        })
    }

    fn bucket_of(&self, hash: u32) -> u32 {
        let mask = self.bucket_count.next_power_of_two() - 1;
        let bucket = hash & mask;
        if bucket < self.bucket_count { bucket } else { bucket & (mask >> 1) }
    }

    /// The element with this hash that `is_it` accepts.
    pub(crate) fn find(&self, hash: u32, is_it: impl Fn(ElementRef) -> bool) -> Option<ElementRef> {
        self.buckets.get(self.bucket_of(hash))?.equal(hash).1.find(|element| is_it(*element))
    }

    /// Reads the place where the entry of a hash should be.
    pub(crate) fn peek(&self, hash: u32) -> u64 {
        let Some(bucket) = self.buckets.get(self.bucket_of(hash)) else { return 0 };
        let entries = bucket.entries();
        entries[guess(entries, hash)]
    }

    /// Adds an element, unless `is_it` accepts one of the same hash; whether it was added.
    #[must_use]
    pub(crate) fn insert(
        &mut self,
        hash: u32,
        element: ElementRef,
        is_it: impl Fn(ElementRef) -> bool,
    ) -> bool {
        let number = self.bucket_of(hash);
        let bucket = self.buckets.get_or_default(number);
        let (at, mut equal) = bucket.equal(hash);
        if equal.any(is_it) {
            return false;
        }
        drop(equal);
        bucket.insert(at, entry_of(hash, element));
        self.len += 1;
        if self.len > self.bucket_count as usize * LOAD {
            self.split_next();
        }
        true
    }

    /// Takes an element away, which must be there.
    pub(crate) fn remove(&mut self, hash: u32, element: ElementRef) {
        let entry = entry_of(hash, element);
        let number = self.bucket_of(hash);
        let bucket = self.buckets.get_mut(number);
        let entries = bucket.entries();
        let at = entries.iter().position(|other| *other == entry);
        let at = at.expect("the element is in its bucket");
        if entries.len() == 1 {
            self.buckets.take(number);
        } else {
            *bucket = Bucket::with(&entries[..at], &entries[at + 1..], &[]);
        }
        self.len -= 1;
    }

    /// Divides the bucket whose turn it is between itself and a new one at the end.
    fn split_next(&mut self) {
        let new = self.bucket_count;
        let half = if new.is_power_of_two() { new } else { new.next_power_of_two() / 2 };
        self.bucket_count += 1;
        if self.buckets.get(new - half).is_none() {
            return;
        }
        let old = self.buckets.take(new - half);
        let (mut stay, mut go) = (Vec::with_capacity(2 * LOAD), Vec::with_capacity(2 * LOAD));
        for entry in old.entries() {
            let goes = (entry >> 32) as u32 & half != 0;
            if goes { go.push(*entry) } else { stay.push(*entry) }
        }
        for (number, entries) in [(new - half, stay), (new, go)] {
            if !entries.is_empty() {
                self.buckets.insert(number, Bucket::of(&entries));
            }
        }
    }
}

/// The hash in the upper half, the element in the lower half.
fn entry_of(hash: u32, element: ElementRef) -> u64 {
    u64::from(hash) << 32 | u64::from(element.packed())
}

/// Where the entry of a hash should be in a bucket, if hashes are spread evenly.
fn guess(bucket: &[u64], hash: u32) -> usize {
    ((u64::from(hash) * bucket.len() as u64) >> 32) as usize
}

/// Where the entries of a hash begin in a bucket, or would. Hashes are spread evenly, so that is
/// nearly always within a few places of where they should be: there, all are compared without a
/// branch; beyond, one by one.
fn start_of(bucket: &[u64], hash: u32) -> usize {
    let guess = guess(bucket, hash);
    let from = guess.saturating_sub(NEAR);
    let near = &bucket[from..bucket.len().min(guess + NEAR)];
    let mut at = from + near.iter().filter(|entry| ((**entry >> 32) as u32) < hash).count();
    while at > 0 && (bucket[at - 1] >> 32) as u32 >= hash {
        at -= 1;
    }
    while at < bucket.len() && ((bucket[at] >> 32) as u32) < hash {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::{ElementRef, Ids};

    #[test]
    fn an_element_that_stands_twice_is_noticed() {
        let element = ElementRef::unpacked;
        let twice = Ids::of([(7, element(1)), (9, element(2)), (7, element(1))].into_iter());
        assert!(twice.any_twins(|a, b| a == b));
    }

    #[test]
    fn every_element_is_found_while_the_table_grows_and_shrinks() {
        let mut ids = Ids::default();
        let hash = |number: u32| number.wrapping_mul(0x9e37_79b9) ^ number >> 3;
        let element = |number: u32| ElementRef::unpacked(number ^ (number & 1) << 31);
        let mut kept = Vec::new();
        for number in 0..5_000 {
            if number % 1_000 == 0 {
                kept.push((number, ids.clone()));
            }
            assert!(ids.insert(hash(number), element(number), |_| false));
        }
        for number in (0..5_000).step_by(3) {
            ids.remove(hash(number), element(number));
        }
        for number in 0..6_000 {
            let found = ids.find(hash(number), |other| other == element(number));
            assert_eq!(found.is_some(), number < 5_000 && number % 3 != 0, "{number}");
        }
        let built = Ids::of((0..4_000).map(|number| (hash(number), element(number))));
        assert!(!built.any_twins(|a, b| a == b));
        kept.push((4_000, built));
        for (count, ids) in kept {
            for number in 0..5_000 {
                let found = ids.find(hash(number), |other| other == element(number));
                assert_eq!(found.is_some(), number < count, "{number} of {count}");
            }
        }
    }
}
