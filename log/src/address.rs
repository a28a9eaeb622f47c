//! Addresses: the one way to say where on which branch, as people write it.
//!
//! `main` is a branch up to its end, `main@1042` up to and including the event at that offset,
//! `main@head~5` five events before the last, `main@none` before the first.

use std::fmt;
use std::str::FromStr;

use crate::error::NameError;
use crate::id::{BranchName, Head, Offset};

/// A place on a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The branch.
    pub branch: BranchName,
    /// How far.
    pub at: At,
}

/// How far along a branch an address reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Before the first event.
    None,
    /// To the event at this offset.
    Offset(Offset),
    /// So many events before the last one.
    BeforeHead(u64),
}

impl Address {
    /// The head that `branch`, which ends at `head`, has at this address; `None` beyond its ends.
    #[must_use]
    pub fn cut(&self, head: Head) -> Option<Head> {
        match self.at {
            At::None => Some(Head::EMPTY),
            At::Offset(offset) if offset < head.next() => Some(Head::after(offset)),
            At::Offset(_) => None,
            At::BeforeHead(0) => Some(head),
            // The last event counts as `head~0`, so an empty branch has none before it.
            At::BeforeHead(back) if back < head.count() => {
                Some(Head::of_count(head.count() - back))
            }
            At::BeforeHead(_) => None,
        }
    }
}

impl FromStr for Address {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (branch, place) = text.split_once('@').unwrap_or((text, "head"));
        let bad = || NameError::Address { text: text.to_owned() };
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            let number = if plain { digits.parse::<u64>().ok() } else { None };
            number.filter(|number| *number < u64::MAX).ok_or_else(bad)
        };
        let at = match place.strip_prefix("head") {
            Some("") => At::BeforeHead(0),
            Some(back) => At::BeforeHead(number(back.strip_prefix('~').ok_or_else(bad)?)?),
            None if place == "none" => At::None,
            None => At::Offset(Offset::new(number(place)?)),
        };
        Ok(Address { branch: branch.parse()?, at })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            At::None => write!(f, "{}@none", self.branch),
            At::Offset(offset) => write!(f, "{}@{offset}", self.branch),
            At::BeforeHead(0) => write!(f, "{}@head", self.branch),
            At::BeforeHead(back) => write!(f, "{}@head~{back}", self.branch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, events: u64) -> Option<u64> {
        let address: Address = text.parse().expect(text);
        address.cut(Head::of_count(events)).map(Head::count)
    }

    #[test]
    fn an_address_names_the_last_event_it_reaches() {
        let cases = [
            ("main", 10, Some(10)),
            ("main@head", 10, Some(10)),
            ("main@head~0", 0, Some(0)),
            ("main@head~9", 10, Some(1)),
            ("main@head~10", 10, None),
            ("main@none", 10, Some(0)),
            ("main@0", 10, Some(1)),
            ("main@9", 10, Some(10)),
            ("main@10", 10, None),
            ("a/b-1@3", 10, Some(4)),
        ];
        for (text, events, expected) in cases {
            assert_eq!(cut(text, events), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_and_what_is_one_prints_as_it_was() {
        for text in ["main@", "main@x", "main@-1", "main@head~", "main@head5", "@5", "", "a b@1"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
        for text in ["main@head", "main@head~3", "main@7", "main@none"] {
            assert_eq!(text.parse::<Address>().expect(text).to_string(), text);
        }
    }
}
