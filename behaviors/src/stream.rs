//! Random numbers with a name: nobody else's draws can shift them, and a retry draws the same ones.
//!
//! The n-th number of a stream is `H(name…, n)`, n = 1, 2, …, read as a big-endian integer of 128
//! bits. The name says whose stream it is: the seed of the branch, what it is for, the event that
//! caused the firing, the behavior and the match.

use std::borrow::Cow;
use std::cell::Cell;

use log::{Bound, Derivation, EventId};

/// A named stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    seed: i64,
    purpose: &'static str,
    cause: EventId,
    behavior: &'a str,
    row: Cow<'a, [Bound]>,
    drawn: Cell<u64>,
}

impl<'a> Stream<'a> {
    /// The stream that a firing draws from.
    #[must_use]
    pub fn of_firing(
        seed: i64,
        cause: EventId,
        behavior: &'a str,
        row: impl Into<Cow<'a, [Bound]>>,
    ) -> Self {
        Stream { seed, purpose: "rand", cause, behavior, row: row.into(), drawn: Cell::new(0) }
    }

    /// The stream that the ticket of an activation is drawn from, for the schedule `random`.
    #[must_use]
    pub fn of_ticket(
        seed: i64,
        cause: EventId,
        behavior: &'a str,
        row: impl Into<Cow<'a, [Bound]>>,
    ) -> Self {
        Stream { purpose: "ticket", ..Stream::of_firing(seed, cause, behavior, row) }
    }

    /// A whole number from 0 to `limit - 1`.
    #[must_use]
    pub fn below(&self, limit: u64) -> u64 {
        assert!(limit > 0, "there is no number below 0");
        u64::try_from(self.draw() % u128::from(limit)).expect("it is below a u64")
    }

    /// A number from 0 up to but not including 1, with 53 random bits.
    #[must_use]
    pub fn uniform(&self) -> f64 {
        const UNIT: f64 = 1.0 / (1u64 << 53) as f64;
        (self.draw() >> 75) as f64 * UNIT
    }

    /// One of `items`, each as likely; `None` of none.
    #[must_use]
    pub fn choice<'i, T>(&self, items: &'i [T]) -> Option<&'i T> {
        if items.is_empty() { None } else { items.get(self.below(items.len() as u64) as usize) }
    }

    /// Puts `items` into a random order, each as likely.
    pub fn shuffle<T>(&self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// A normally distributed number, of two uniform ones.
    #[must_use]
    pub fn normal(&self, mean: f64, deviation: f64) -> f64 {
        // 1 - u is above 0, so that the logarithm is finite.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        mean + deviation * radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }

    /// Its name without what it is for: seed, cause, behavior, match.
    pub(crate) fn parts(&self) -> (i64, EventId, &str, &[Bound]) {
        (self.seed, self.cause, self.behavior, &self.row)
    }

    fn draw(&self) -> u128 {
        self.drawn.set(self.drawn.get() + 1);
        let name = Derivation::new().json(&self.seed.into()).text(self.purpose).id(&self.cause);
        let name = name.text(self.behavior).list(|mut list| {
            for bound in self.row.iter() {
                list = match bound {
                    Bound::Element(id) => list.text(id),
                    Bound::Path(ids) => {
                        list.list(|path| ids.iter().fold(path, |path, id| path.text(id)))
                    }
                };
            }
            list
        });
        u128::from_be_bytes(*name.integer(self.drawn.get()).finish().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(seed: i64, row: &[Bound]) -> Stream<'_> {
        Stream::of_firing(seed, EventId::from_bytes([7; 16]), "walk_ant", row)
    }

    #[test]
    fn a_number_is_the_hash_of_the_name_and_its_place() {
        let row = [Bound::Element("ant:1".into()), Bound::Path(vec!["e".into(), "f".into()])];
        let stream = stream(-3, &row);
        for n in 1..=3u64 {
            let cause = "07".repeat(16);
            let name = serde_json::json!([-3, "rand", cause, "walk_ant", ["ant:1", ["e", "f"]], n]);
            let hash = blake3::hash(name.to_string().as_bytes());
            let number = u128::from_be_bytes(hash.as_bytes()[..16].try_into().expect("16 bytes"));
            assert_eq!(u128::from(stream.below(1 << 40)), number % (1 << 40));
        }
    }

    #[test]
    fn seeds_matches_and_purposes_have_streams_of_their_own() {
        let (a, b) = ([Bound::Element("a".into())], [Bound::Element("b".into())]);
        let first = |s: Stream<'_>| s.below(u64::MAX);
        assert_eq!(first(stream(1, &a)), first(stream(1, &a)));
        assert_ne!(first(stream(1, &a)), first(stream(1, &b)));
        assert_ne!(first(stream(1, &a)), first(stream(2, &a)));
        let ticket = Stream::of_ticket(1, EventId::from_bytes([7; 16]), "walk_ant", &a[..]);
        assert_ne!(first(stream(1, &a)), first(ticket));
    }

    /// 4 standard deviations of each statistic; the stream is fixed, so this cannot flicker.
    #[test]
    fn the_numbers_are_spread_as_their_names_say() {
        let stream = stream(5, &[]);
        let n = 4000;
        let mean = |draw: &dyn Fn() -> f64| (0..n).map(|_| draw()).sum::<f64>() / f64::from(n);
        assert!((mean(&|| stream.uniform()) - 0.5).abs() < 4.0 * 0.2887 / 63.2);
        assert!((mean(&|| stream.below(6) as f64) - 2.5).abs() < 4.0 * 1.708 / 63.2);
        assert!((mean(&|| stream.normal(3.0, 2.0)) - 3.0).abs() < 4.0 * 2.0 / 63.2);
        let square = mean(&|| (stream.normal(3.0, 2.0) - 3.0).powi(2));
        assert!((square - 4.0).abs() < 4.0 * 5.66 / 63.2);
        let mut first = [0u32; 4];
        for _ in 0..n {
            let mut items = [0, 1, 2, 3];
            stream.shuffle(&mut items);
            first[items[0]] += 1;
        }
        assert!(first.iter().all(|&count| count.abs_diff(1000) < 4 * 28), "{first:?}");
    }

    #[test]
    fn a_choice_is_one_of_the_items() {
        let stream = stream(5, &[]);
        assert_eq!(stream.choice::<u8>(&[]), None);
        assert_eq!(stream.choice(&["x"]), Some(&"x"));
        let chosen: std::collections::BTreeSet<_> =
            (0..50).map(|_| *stream.choice(&[1, 2, 3]).expect("one of three")).collect();
        assert_eq!(chosen.len(), 3);
    }
}
