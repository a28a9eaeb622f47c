//! What is due, and what will be: the activations that wait, each found by its place, its ticket or
//! its match.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use log::{Bound, Head, Offset};
use smol_str::SmolStr;

use super::activation::{Activation, Place};

/// The activations that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agenda {
    waiting: BTreeMap<Place, Activation>,
    /// Under `random`, the tickets of what is due.
    tickets: BTreeSet<(u64, Place)>,
    /// Under `random`, what is not due yet.
    unripe: BTreeSet<Place>,
    by_ticket: bool,
    /// The activations of each match of each behavior with a pattern. Looked up only.
    by_row: HashMap<(SmolStr, Vec<Bound>), Vec<Place>>,
    /// What waits for a time by the recorded clock.
    delayed: BTreeMap<(i64, Place), Activation>,
}

impl Agenda {
    /// From now on the least ticket is taken first.
    pub(crate) fn order_by_ticket(&mut self) {
        assert!(self.waiting.is_empty(), "the schedule is known before anything waits");
        self.by_ticket = true;
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.delayed.len()
    }

    /// Puts in what is due at a time, in milliseconds.
    pub(crate) fn delay(&mut self, due: i64, activation: Activation) {
        self.delayed.insert((due, activation.place()), activation);
    }

    /// What waits for a time, and for which.
    pub(crate) fn delayed(&self) -> impl Iterator<Item = (i64, &Activation)> {
        self.delayed.iter().map(|((due, _), activation)| (*due, activation))
    }

    /// It is `clock` now, at `offset`: what is due takes its place there.
    pub(crate) fn release(&mut self, clock: i64, offset: Offset) {
        while self.delayed.first_key_value().is_some_and(|((due, _), _)| *due <= clock) {
            let (_, activation) = self.delayed.pop_first().expect("it was just seen");
            self.insert(Activation { at: offset, ..activation });
        }
    }

    /// All that waits, in canonical order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Activation> {
        self.waiting.values()
    }

    /// The same, and after it what waits for a time.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Activation> {
        self.waiting.values().chain(self.delayed.values())
    }

    /// What will be due on a branch that ends at `head` if nothing comes between, in the order in
    /// which it will be taken; from behind `after`, if that still lies ahead. Under `random` nobody
    /// knows.
    pub(crate) fn upcoming<'a>(
        &'a self,
        head: Head,
        after: Option<&Place>,
    ) -> impl Iterator<Item = (&'a Place, &'a Activation)> {
        let from = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let last = head.last().filter(|_| !self.by_ticket);
        let range = self.waiting.range((from, std::ops::Bound::Unbounded));
        range.take_while(move |(place, _)| last.is_some_and(|last| place.at() <= last))
    }

    pub(crate) fn insert(&mut self, activation: Activation) {
        let place = activation.place();
        if self.by_ticket {
            self.unripe.insert(place.clone());
        }
        if is_withdrawn_by_match(&activation) {
            let key = (activation.behavior.clone(), activation.row.bound.clone());
            self.by_row.entry(key).or_default().push(place.clone());
        }
        let before = self.waiting.insert(place, activation);
        assert!(before.is_none(), "one activation stands at a place");
    }

    /// The activation that the schedule takes next, if one is due on a branch that ends at `head`.
    pub(crate) fn next(&mut self, head: Head) -> Option<Activation> {
        let place = self.next_place(head)?;
        self.remove(&place)
    }

    /// What `next` would give.
    pub(crate) fn peek(&mut self, head: Head) -> Option<&Activation> {
        let place = self.next_place(head)?;
        self.waiting.get(&place)
    }

    fn next_place(&mut self, head: Head) -> Option<Place> {
        let last = head.last()?;
        if !self.by_ticket {
            return self
                .waiting
                .first_key_value()
                .map(|(place, _)| place)
                .filter(due(last))
                .cloned();
        }
        while let Some(place) = self.unripe.first().filter(due(last)).cloned() {
            self.unripe.remove(&place);
            self.tickets.insert((self.waiting[&place].ticket, place));
        }
        self.tickets.first().map(|(_, place)| place.clone())
    }

    /// Takes out all that is due, in canonical order.
    pub(crate) fn take_due(&mut self, head: Head) -> Vec<Activation> {
        let Some(last) = head.last() else { return Vec::new() };
        let places: Vec<Place> = self.waiting.keys().take_while(due(last)).cloned().collect();
        places.iter().filter_map(|place| self.remove(place)).collect()
    }

    /// Withdraws what waits on a match of a behavior; tells how many did.
    pub(crate) fn withdraw(&mut self, behavior: &SmolStr, row: &[Bound]) -> usize {
        let mut count = 0;
        if !self.delayed.is_empty() {
            let before = self.delayed.len();
            self.delayed.retain(|_, a| a.behavior != *behavior || a.row.bound != row);
            count = before - self.delayed.len();
        }
        let key = (behavior.clone(), row.to_vec());
        let places = self.by_row.get(&key).cloned().unwrap_or_default();
        count + places.iter().filter_map(|place| self.remove(place)).count()
    }

    /// Withdraws all that waits of a behavior; gives it back.
    pub(crate) fn withdraw_all(&mut self, behavior: &SmolStr) -> Vec<Activation> {
        self.delayed.retain(|_, waiting| waiting.behavior != *behavior);
        let of = |place: &&Place| place.behavior() == behavior;
        let places: Vec<Place> = self.waiting.keys().filter(of).cloned().collect();
        places.iter().filter_map(|place| self.remove(place)).collect()
    }

    /// What waits of one behavior, in canonical order.
    pub(crate) fn of<'a>(&'a self, behavior: &'a str) -> impl Iterator<Item = &'a Activation> {
        self.all().filter(move |waiting| waiting.behavior == behavior)
    }

    /// Withdraws one activation.
    pub(crate) fn take_out(&mut self, activation: &Activation) {
        let place = activation.place();
        self.delayed.retain(|(_, other), _| *other != place);
        self.remove(&place);
    }

    fn remove(&mut self, place: &Place) -> Option<Activation> {
        let activation = self.waiting.remove(place)?;
        if self.by_ticket {
            self.unripe.remove(place);
            self.tickets.remove(&(activation.ticket, place.clone()));
        }
        if is_withdrawn_by_match(&activation) {
            let key = (activation.behavior.clone(), activation.row.bound.clone());
            let places = self.by_row.get_mut(&key).expect("every match that waits is listed");
            places.retain(|other| other != place);
            if places.is_empty() {
                self.by_row.remove(&key);
            }
        }
        Some(activation)
    }
}

/// Whether it goes when its match does. An answer stays: the log says that it came too late.
fn is_withdrawn_by_match(activation: &Activation) -> bool {
    !activation.row.bound.is_empty() && !activation.answered
}

/// Whether a place is due on a branch whose last event stands at `last`.
fn due(last: Offset) -> impl Fn(&&Place) -> bool {
    move |place| place.at() <= last
}
