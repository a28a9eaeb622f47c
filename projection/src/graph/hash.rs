//! A fast hash of bytes for tables inside a graph. It has no seed, so every run has the same
//! tables; nothing is listed in its order, and nothing that is stored depends on it.

const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND: u64 = 0xd1b5_4a32_d192_ed03;

/// The full product of two words, folded into one.
pub(crate) fn mix(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The hash of `bytes`.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("a word has 8 bytes"));
    let mut hash = FIRST ^ (bytes.len() as u64);
    let mut pairs = bytes.chunks_exact(16);
    for pair in &mut pairs {
        hash = mix(word(&pair[..8]) ^ SECOND, word(&pair[8..]) ^ hash);
    }
    let rest = pairs.remainder();
    let mut last = [0u8; 16];
    last[..rest.len()].copy_from_slice(rest);
    hash = mix(word(&last[..8]) ^ SECOND, word(&last[8..]) ^ hash);
    mix(hash ^ FIRST, SECOND)
}
