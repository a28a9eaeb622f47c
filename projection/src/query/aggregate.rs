//! Aggregates: many values become one. Only what the answer needs is kept.

use std::collections::BTreeSet;

use super::order::{Key, order};
use crate::pattern::{Aggregate, Code, ErrorClass, Fault, Problem, Val};

/// An aggregate of a query.
#[derive(Clone, Debug)]
pub(crate) struct AggregateCode {
    pub(crate) aggregate: Aggregate,
    pub(crate) distinct: bool,
    /// What is computed in each row; none for `count(*)`.
    pub(crate) argument: Option<Code>,
    /// Which part of the values is asked for, of a percentile.
    pub(crate) share: Option<Code>,
}

/// What one aggregate has seen of one group.
#[derive(Clone, Debug)]
pub(crate) struct Seen<'a> {
    aggregate: Aggregate,
    /// The values so far, if each counts once.
    distinct: Option<BTreeSet<Key<'a>>>,
    count: u64,
    whole: i128,
    float: f64,
    floats: bool,
    /// The least or the greatest.
    best: Val<'a>,
    /// All of them, where all are needed.
    all: Vec<Val<'a>>,
    share: f64,
}

impl<'a> Seen<'a> {
    pub(crate) fn nothing(code: &AggregateCode) -> Seen<'a> {
        Seen {
            aggregate: code.aggregate,
            distinct: code.distinct.then(BTreeSet::new),
            count: 0,
            whole: 0,
            float: 0.0,
            floats: false,
            best: Val::Null,
            all: Vec::new(),
            share: 0.0,
        }
    }

    /// Counts a row, for `count(*)`.
    pub(crate) fn row(&mut self) {
        self.count += 1;
    }

    /// Notes which share a percentile asks for.
    pub(crate) fn share(&mut self, share: &Val<'a>) -> Result<(), Fault> {
        let number = share.as_float().filter(|number| (0.0..=1.0).contains(number));
        self.share = number.ok_or_else(|| Fault {
            class: ErrorClass::Argument,
            problem: Problem::NumberOutOfRange,
            message: format!("{} asks for a number from 0 to 1", self.aggregate.name()),
        })?;
        Ok(())
    }

    /// Takes a value. Null is none.
    pub(crate) fn value(&mut self, value: Val<'a>) -> Result<(), Fault> {
        if matches!(value, Val::Null) {
            return Ok(());
        }
        if let Some(distinct) = &mut self.distinct
            && !distinct.insert(Key(vec![value.clone()]))
        {
            return Ok(());
        }
        self.count += 1;
        match self.aggregate {
            Aggregate::Count => {}
            Aggregate::Collect => self.all.push(value),
            Aggregate::Max if self.count == 1 || order(&value, &self.best).is_gt() => {
                self.best = value;
            }
            Aggregate::Min if self.count == 1 || order(&value, &self.best).is_lt() => {
                self.best = value;
            }
            Aggregate::Max | Aggregate::Min => {}
            Aggregate::Sum | Aggregate::Avg => match (value.as_whole(), value.as_float()) {
                (Some(whole), _) => self.whole = self.whole.saturating_add(whole),
                (None, Some(float)) => {
                    self.float += float;
                    self.floats = true;
                }
                _ => return Err(self.misfit(&value)),
            },
            Aggregate::PercentileCont | Aggregate::PercentileDisc => {
                if !value.is_number() {
                    return Err(self.misfit(&value));
                }
                self.all.push(value);
            }
        }
        Ok(())
    }

    fn misfit(&self, value: &Val<'_>) -> Fault {
        let message = format!("{} takes numbers, not {}", self.aggregate.name(), value.word());
        Fault { class: ErrorClass::Type, problem: Problem::InvalidArgumentValue, message }
    }

    /// The one value that they make.
    pub(crate) fn result(self) -> Val<'a> {
        let total = || self.float + self.whole as f64;
        match self.aggregate {
            Aggregate::Count => Val::whole(i128::from(self.count)),
            Aggregate::Collect => Val::List(self.all),
            Aggregate::Max | Aggregate::Min => self.best,
            Aggregate::Sum if self.floats => Val::Float(total()),
            Aggregate::Sum => Val::whole(self.whole),
            Aggregate::Avg if self.count == 0 => Val::Null,
            Aggregate::Avg => Val::Float(total() / self.count as f64),
            Aggregate::PercentileCont | Aggregate::PercentileDisc => self.percentile(),
        }
    }

    fn percentile(mut self) -> Val<'a> {
        self.all.sort_by(order);
        let Some(last) = self.all.len().checked_sub(1) else { return Val::Null };
        if self.aggregate == Aggregate::PercentileDisc {
            let place = (self.share * self.all.len() as f64).ceil() as usize;
            return self.all.swap_remove(place.saturating_sub(1).min(last));
        }
        let place = self.share * last as f64;
        let below = place.floor() as usize;
        let at = |place: usize| self.all[place.min(last)].as_float().unwrap_or(f64::NAN);
        Val::Float(at(below) + (at(below + 1) - at(below)) * (place - place.floor()))
    }
}
