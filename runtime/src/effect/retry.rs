//! Trying again: how long to wait, how often in each domain of errors, and when an intent is
//! banned.
//!
//! Only a failure that is settled and says that trying again may help is tried again. An unknown
//! outcome never is: it is reconciled. The wait is drawn from a stream of the action, and recorded,
//! so that a replay needs no luck.

use behaviors::Stream;
use log::EventId;

use super::policy::Policy;

/// How long the first wait is.
const BASE_MS: u64 = 1000;
/// How long a wait may become.
const LONGEST_MS: u64 = 60_000;
/// How many attempts one action has.
pub(crate) const ATTEMPTS_MAX: u32 = 5;
/// How often one domain of errors is tried again on one goal.
const PER_DOMAIN: u64 = 10;

/// The wait before the next attempt: twice as long each time, give or take a quarter.
pub(crate) fn wait_ms(seed: i64, action: EventId, attempt: u32) -> u64 {
    assert!(attempt > 0, "attempts are counted from 1");
    let chance = Stream::of_firing(seed, action, "retry", vec![]);
    // The same attempt draws the same number, whatever was drawn before.
    let draw = (0..attempt).map(|_| chance.below(501)).last().unwrap_or(250);
    let plain = BASE_MS.saturating_mul(1 << (attempt - 1).min(10)).min(LONGEST_MS);
    plain * (750 + draw) / 1000
}

/// How often a domain may be tried again on one goal.
pub(crate) fn limit_of(policy: &Policy, domain: &str) -> u64 {
    let said = policy.retries.iter().find(|(name, _)| name == domain);
    said.map_or(PER_DOMAIN, |(_, limit)| *limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_within_a_quarter_and_are_the_same_again() {
        let action = EventId::from_bytes([9; 16]);
        let waits: Vec<u64> = (1..=8).map(|attempt| wait_ms(7, action, attempt)).collect();
        for (nth, wait) in waits.iter().enumerate() {
            let plain = (1000 << nth).min(60_000);
            assert!((plain * 3 / 4..=plain * 5 / 4).contains(wait), "{wait} after {nth}");
        }
        assert_eq!(waits, (1..=8).map(|n| wait_ms(7, action, n)).collect::<Vec<_>>());
        assert_ne!(waits[0], wait_ms(7, EventId::from_bytes([8; 16]), 1), "each draws its own");
    }
}
