//! The names and numbers of a log: offsets, heads, branches, epochs, ids and hashes.
//!
//! Each is its own type with a private field, so two of them cannot be swapped silently, and each
//! is parsed once, at the edge. Arithmetic on offsets has names here and is done nowhere else.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::NameError;

/// Where an event sits on its branch. The first event has offset zero.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Offset(u64);

impl Offset {
    /// The offset of the first event of a branch.
    pub const ZERO: Offset = Offset(0);

    /// The offset with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Offset(number)
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The offset `events` places later.
    #[must_use]
    pub const fn plus(self, events: u64) -> Self {
        Offset(self.0 + events)
    }

    /// How many events lie in `self..end`.
    #[must_use]
    pub fn distance_to(self, end: Offset) -> u64 {
        assert!(self <= end, "a range runs forward: {self} to {end}");
        end.0 - self.0
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// How far a branch reaches: the offset its next event will get. An empty branch has no last event.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Head(u64);

impl Head {
    /// The head of a branch without events.
    pub const EMPTY: Head = Head(0);

    /// The head of a branch that holds this many events, its ancestors' included.
    #[must_use]
    pub const fn of_count(events: u64) -> Self {
        Head(events)
    }

    /// The head of a branch whose last event is at `offset`.
    #[must_use]
    pub const fn after(offset: Offset) -> Self {
        Head(offset.0 + 1)
    }

    /// How many events the branch holds, its ancestors' included.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0
    }

    /// The offset that the next event gets.
    #[must_use]
    pub const fn next(self) -> Offset {
        Offset(self.0)
    }

    /// The offset of the last event, or `None` on an empty branch.
    #[must_use]
    pub const fn last(self) -> Option<Offset> {
        match self.0 {
            0 => None,
            n => Some(Offset(n - 1)),
        }
    }

    /// The head after `events` more.
    #[must_use]
    pub const fn plus(self, events: u64) -> Self {
        Head(self.0 + events)
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last() {
            Some(offset) => write!(f, "{offset}"),
            None => f.write_str("none"),
        }
    }
}

/// Which line of history an event belongs to. The first branch of a store is number zero.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct BranchId(u32);

impl BranchId {
    /// The branch with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        BranchId(number)
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for BranchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "branch {}", self.0)
    }
}

/// The right to append to a claimed branch. A later claim has a greater epoch; an older one is
/// refused.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch of a branch that nobody has claimed yet.
    pub const UNCLAIMED: Epoch = Epoch(0);

    /// The epoch with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Epoch(number)
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The epoch of the next claim.
    #[must_use]
    pub const fn next(self) -> Self {
        Epoch(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {}", self.0)
    }
}

/// When something is said to have happened: milliseconds since 1970-01-01T00:00:00Z. Data, never
/// order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(i64);

impl Time {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Time = Time(0);
    /// -9999-01-02T01:59:59Z, the earliest time that can be written as RFC 3339 text.
    const MIN_MS: i64 = -377_705_023_201_000;
    /// 9999-12-30T22:00:00Z, the latest one.
    const MAX_MS: i64 = 253_402_207_200_000;

    /// The time so many milliseconds after 1970-01-01T00:00:00Z; `None` outside the years -9999 to
    /// 9999.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Option<Self> {
        if ms < Self::MIN_MS || ms > Self::MAX_MS { None } else { Some(Time(ms)) }
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn ms(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Time {
    /// RFC 3339 in UTC: `2026-01-05T09:00:00Z`, with milliseconds where there are some.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stamp = jiff::Timestamp::from_millisecond(self.0).expect("checked when it was made");
        write!(f, "{stamp}")
    }
}

impl FromStr for Time {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let bad = || NameError::Time { text: text.to_owned() };
        let stamp: jiff::Timestamp = text.parse().map_err(|_| bad())?;
        let whole = stamp.subsec_nanosecond() % 1_000_000 == 0;
        if !whole {
            return Err(bad());
        }
        Time::from_ms(stamp.as_millisecond()).ok_or_else(bad)
    }
}

/// Makes a type of `$len` bytes that is written as lower-case hexadecimal digits.
macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name([u8; $len]);

        impl $name {
            /// All bytes zero.
            pub const ZERO: $name = $name([0; $len]);

            /// From its bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; $len]) -> Self {
                $name(bytes)
            }

            /// Its bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }

            /// Its digits, without allocating.
            #[must_use]
            pub fn hex(&self) -> Hex<{ 2 * $len }> {
                let mut digits = [0u8; 2 * $len];
                for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
                    pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
                    pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
                }
                Hex(digits)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.hex().as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.hex().as_str())
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                let mut bytes = [0u8; $len];
                if unhex(text, &mut bytes) {
                    return Ok($name(bytes));
                }
                let (what, digits) = (stringify!($name), 2 * $len);
                Err(NameError::Hex { what, digits, text: text.to_owned() })
            }
        }
    };
}

hex_id! {
    /// The id of an event: its derivation, 128 bits of BLAKE3. See `Derivation`.
    EventId, 16
}
hex_id! {
    /// A BLAKE3 hash of 256 bits: a link of the hash chain, or the name of a blob.
    Hash, 32
}
hex_id! {
    /// Names one append of one batch, so that a writer who lost the answer can ask for it.
    BatchId, 16
}
hex_id! {
    /// Names a store for as long as it lives, whatever its file is called.
    LogId, 16
}

impl Hash {
    /// The BLAKE3 hash of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Hash(*blake3::hash(bytes).as_bytes())
    }
}

/// Hexadecimal digits on the stack.
#[derive(Clone, Copy, Debug)]
pub struct Hex<const DIGITS: usize>([u8; DIGITS]);

impl<const DIGITS: usize> Hex<DIGITS> {
    /// The digits as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("hexadecimal digits are ASCII")
    }
}

/// Reads lower-case hexadecimal digits into `bytes`; false when they do not fit exactly.
fn unhex(text: &str, bytes: &mut [u8]) -> bool {
    let digit = |d: u8| match d {
        b'0'..=b'9' => Some(d - b'0'),
        b'a'..=b'f' => Some(d - b'a' + 10),
        _ => None,
    };
    if text.len() != 2 * bytes.len() {
        return false;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { return false };
        *byte = high << 4 | low;
    }
    true
}

/// The name of a branch: 1 to 100 of `a-z A-Z 0-9 . _ / -`, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BranchName(String);

impl BranchName {
    /// The branch a store starts with.
    #[must_use]
    pub fn main() -> Self {
        BranchName("main".to_owned())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for BranchName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-');
        let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if starts && text.len() <= 100 && text.chars().all(plain) {
            return Ok(BranchName(text.to_owned()));
        }
        Err(NameError::Branch { text: text.to_owned() })
    }
}
