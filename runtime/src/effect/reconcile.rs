//! What may be done about an action whose outcome is not known: a matter of its class.
//!
//! A crash, a timeout or a lost reply leaves one of three realities that look the same from here:
//! it never happened, it happened, or it is still under way. So nothing is repeated and nothing
//! is assumed, except where the class says how to find out.

use std::time::Duration;

use effect::Class;

use super::action::{Doubt, Facts};

/// How often it is looked at, or sent again, before a person has to decide.
pub(crate) const LOOKS_MAX: u32 = 12;
/// How long the first wait between two looks is, and how long one may become.
const LOOK_MS: i64 = 500;
const LOOK_LONGEST_MS: i64 = 60_000;

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Another attempt, and what makes that safe.
    Again(&'static str),
    /// Look at the world.
    Look,
    /// It changed nothing and is not wanted any more.
    Drop,
    /// Only a person can decide, for this reason.
    Person(String),
}

/// What is to be done about a doubt. `window` is how long a provider remembers a key.
pub(crate) fn remedy(facts: &Facts, doubt: &Doubt, window: Duration, now: i64) -> Remedy {
    if let Some(why) = &doubt.person {
        return Remedy::Person(why.clone());
    }
    if doubt.class == Class::ReadOnly && facts.cancelled {
        return Remedy::Drop;
    }
    if doubt.absent && !facts.cancelled {
        return Remedy::Again("absent");
    }
    if doubt.class == Class::Opaque {
        return Remedy::Person(
            "nothing can be found out from here: it may have taken effect".to_owned(),
        );
    }
    if doubt.looks >= LOOKS_MAX {
        return Remedy::Person(format!("{LOOKS_MAX} looks did not settle it"));
    }
    match doubt.class {
        Class::ReadOnly => Remedy::Again("read_only"),
        Class::Keyed if !facts.cancelled => {
            let window = i64::try_from(window.as_millis()).unwrap_or(i64::MAX);
            let over = now - facts.first > window;
            if over { Remedy::Look } else { Remedy::Again("same_key") }
        }
        _ => Remedy::Look,
    }
}

/// How long to wait before the next look.
pub(crate) fn look_again_ms(looks: u32) -> i64 {
    (LOOK_MS << looks.min(10)).min(LOOK_LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::state::tests::facts;

    const WINDOW: Duration = Duration::from_secs(3600);

    fn doubt(class: Class) -> Doubt {
        Doubt {
            attempt: 1,
            class,
            executor: "x".into(),
            looks: 0,
            next: 0,
            person: None,
            absent: false,
            fingerprint: None,
        }
    }

    /// The table of the capability classes.
    #[test]
    fn the_class_decides() {
        let facts = facts();
        let check = |class| remedy(&facts, &doubt(class), WINDOW, 1);
        assert_eq!(check(Class::ReadOnly), Remedy::Again("read_only"));
        assert_eq!(check(Class::CompareAndSet), Remedy::Look);
        assert_eq!(check(Class::Keyed), Remedy::Again("same_key"));
        assert_eq!(check(Class::Queryable), Remedy::Look);
        assert!(matches!(check(Class::Opaque), Remedy::Person(_)));
        assert_eq!(Class::default(), Class::Opaque, "what declares nothing is irreversible");
    }

    #[test]
    fn a_key_that_its_provider_forgot_is_not_sent_again() {
        let facts = facts();
        let after = 3_600_001;
        assert_eq!(remedy(&facts, &doubt(Class::Keyed), WINDOW, after), Remedy::Look);
    }

    #[test]
    fn what_was_cancelled_is_not_sent_again() {
        let facts = Facts { cancelled: true, ..facts() };
        let check = |class| remedy(&facts, &doubt(class), WINDOW, 1);
        assert_eq!(check(Class::ReadOnly), Remedy::Drop);
        assert_eq!(check(Class::Keyed), Remedy::Look);
        assert_eq!(check(Class::Queryable), Remedy::Look);
        assert!(matches!(check(Class::Opaque), Remedy::Person(_)));
    }

    #[test]
    fn looking_ends() {
        let facts = facts();
        for class in [Class::ReadOnly, Class::Keyed, Class::Queryable, Class::CompareAndSet] {
            let doubt = Doubt { looks: LOOKS_MAX, ..doubt(class) };
            assert!(matches!(remedy(&facts, &doubt, WINDOW, 1), Remedy::Person(_)), "{class}");
        }
        let waits: Vec<i64> = (0..9).map(look_again_ms).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]);
    }
}
