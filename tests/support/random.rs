//! Random numbers from a seed: the same seed gives the same numbers, for ever.

/// A stream of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        // Neighbouring seeds give unrelated streams.
        let mut random = Random(seed ^ 0x5bd1_e995_1234_5678);
        random.0 = random.number();
        random
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// One of `0..end`, as a place in a list.
    pub(crate) fn place(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.place(from.len())]
    }

    /// Printable text of so many bytes, which does not compress well.
    pub(crate) fn text(&mut self, bytes: u64) -> String {
        (0..bytes).map(|_| char::from(b' ' + self.below(95) as u8)).collect()
    }
}
