//! What an expression is worth in one world, with some slots bound.
//!
//! In a pattern nothing is an error: what cannot be computed is null. In a query the first thing
//! that cannot be computed is noted as a fault, and ends the query after it.

mod call;
mod list;

use std::borrow::Cow;

use log::MapRef;
use smol_str::SmolStr;

use crate::graph::ElementRef;
use crate::pattern::compile::whole_text;
use crate::pattern::problem::{ErrorClass, Fault, Problem};
use crate::pattern::program::{Code, Kind};
use crate::pattern::search::Search;
use crate::pattern::steps::Exhausted;
use crate::pattern::syntax::{Arithmetic, EventField, TextTest};
use crate::pattern::value::{Val, all, arithmetic, compare, equal};
use crate::world::World;

impl<'a, W: World> Search<'a, W> {
    /// Whether an expression is true: neither false nor null.
    pub(crate) fn is_true(&mut self, code: &'a Code) -> Result<bool, Exhausted> {
        Ok(self.truth(code)? == Some(true))
    }

    /// The truth of an expression; `None` is null.
    fn truth(&mut self, code: &'a Code) -> Result<Option<bool>, Exhausted> {
        Ok(match code {
            Code::Compare(first, rest) => {
                let mut left = self.value(first)?;
                let mut holds = Some(true);
                for (op, next) in rest {
                    let right = self.value(next)?;
                    holds = all([holds, compare(*op, &left, &right)].into_iter());
                    left = right;
                }
                holds
            }
            Code::Not(inner) => self.truth(inner)?.map(|truth| !truth),
            Code::And(parts) => {
                let mut holds = Some(true);
                for part in parts {
                    match self.truth(part)? {
                        Some(false) => return Ok(Some(false)),
                        None => holds = None,
                        Some(true) => {}
                    }
                }
                holds
            }
            Code::Or(parts) => {
                let mut holds = Some(false);
                for part in parts {
                    match self.truth(part)? {
                        Some(true) => return Ok(Some(true)),
                        None => holds = None,
                        Some(false) => {}
                    }
                }
                holds
            }
            Code::Xor(a, b) => {
                let (a, b) = (self.truth(a)?, self.truth(b)?);
                a.zip(b).map(|(a, b)| a != b)
            }
            Code::IsNull(inner) => Some(matches!(self.value(inner)?, Val::Null)),
            Code::HasType(slot, types) => {
                let element = self.element(*slot);
                Some(types.iter().any(|number| self.program.types[*number] == element.type_name()))
            }
            Code::IsType(inner, names) => match self.value(inner)? {
                Val::Element(element) => {
                    let view = self.world.at(element).expect("what is bound is there");
                    Some(names.iter().any(|name| name == view.type_name()))
                }
                _ => None,
            },
            Code::In(item, list) => self.is_in(item, list)?,
            Code::Text(test, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                text_test(*test, &a, &b)
            }
            Code::Matches(text, regex) => match self.value(text)? {
                Val::Text(text) => Some(regex.is_match(&text)),
                _ => None,
            },
            Code::Exists(scope) => Some(self.exists(*scope)?),
            other => self.value(other)?.truth(),
        })
    }

    /// The value of an expression.
    pub(crate) fn value(&mut self, code: &'a Code) -> Result<Val<'a>, Exhausted> {
        Ok(match code {
            Code::Constant(literal) => literal.into(),
            Code::Read(slot, name) => {
                self.element(*slot).property(name).map_or(Val::Null, Val::from)
            }
            Code::Slot(slot) => self.bound_value(*slot),
            Code::Parameter(name) => {
                self.env.parameters.get(name.as_str()).map_or(Val::Null, Val::from)
            }
            Code::Event(field) => self.event_value(field),
            Code::Field(base, name) => {
                let base = self.value(base)?;
                self.field(base, name)
            }
            Code::Index(base, index) => self.indexed(base, index)?,
            Code::List(items) => Val::List(self.values(items)?),
            Code::Map(entries) => {
                let mut map = Vec::with_capacity(entries.len());
                for (name, code) in entries {
                    map.push((Cow::Borrowed(name.as_str()), self.value(code)?));
                }
                map.sort_by(|(a, _), (b, _)| a.cmp(b));
                Val::Map(map)
            }
            Code::Negate(inner) => {
                let inner = self.value(inner)?;
                arithmetic(Arithmetic::Subtract, Val::Int(0), inner)
            }
            Code::Arithmetic(op, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                arithmetic(*op, a, b)
            }
            Code::Call(function, arguments) => self.call(*function, arguments)?,
            Code::Slice(base, from, to) => self.slice(base, from.as_deref(), to.as_deref())?,
            Code::Case(case) => self.case(case)?,
            Code::Each(each) => self.each(each)?,
            Code::Item(depth) => self.items[*depth].clone(),
            Code::Column(place) => self.row[*place].clone(),
            Code::Collect(scope, value) => self.collect(*scope, value)?,
            Code::Path(slots) => self.path(slots),
            other => Val::of_truth(self.truth(other)?),
        })
    }

    fn values(&mut self, codes: &'a [Code]) -> Result<Vec<Val<'a>>, Exhausted> {
        codes.iter().map(|code| self.value(code)).collect()
    }

    /// What a slot is bound to, as a value.
    fn bound_value(&self, slot: usize) -> Val<'a> {
        match self.program.slots[slot].kind {
            Kind::Path => {
                let edges = self.paths[slot].iter();
                Val::List(edges.map(|edge| Val::Element(ElementRef::Edge(*edge))).collect())
            }
            Kind::Node | Kind::Edge => Val::Element(self.frame[slot]),
        }
    }

    fn event_value(&self, field: &'a EventField) -> Val<'a> {
        let Some(event) = self.env.event else { return Val::Null };
        match field {
            EventField::Kind => Val::Text(Cow::Borrowed(event.kind())),
            EventField::Actor => Val::Text(Cow::Borrowed(event.actor())),
            EventField::Id => Val::Text(Cow::Owned(event.id().to_string())),
            EventField::Payload(path) => at_path(event.payload(), path),
        }
    }

    /// A property of an element, or a field of a map.
    fn field(&mut self, base: Val<'a>, name: &str) -> Val<'a> {
        match base {
            Val::Element(element) => {
                let view = self.world.at(element).expect("what is bound is there");
                view.property(name).map_or(Val::Null, Val::from)
            }
            Val::Null | Val::Map(_) | Val::Blob(_) => base.field(name),
            other => self.misfit(ErrorClass::Type, Problem::InvalidArgumentType, || {
                format!("{} has no `{name}`: only an element or a map has properties", other.word())
            }),
        }
    }

    /// Notes that something cannot be computed, and gives the null that stands for it.
    fn misfit(
        &mut self,
        class: ErrorClass,
        problem: Problem,
        message: impl FnOnce() -> String,
    ) -> Val<'a> {
        if self.strict && self.fault.is_none() {
            self.fault = Some(Fault { class, problem, message: message() });
        }
        Val::Null
    }

    fn is_in(&mut self, item: &'a Code, list: &'a Code) -> Result<Option<bool>, Exhausted> {
        let item = self.value(item)?;
        let mut found = Some(false);
        // A list that is written out need not be built.
        if let Code::List(codes) = list {
            for code in codes {
                match equal(&item, &self.value(code)?) {
                    Some(true) => return Ok(Some(true)),
                    None => found = None,
                    Some(false) => {}
                }
            }
            return Ok(found);
        }
        let Val::List(values) = self.value(list)? else { return Ok(None) };
        let differ = all(values.iter().map(|value| equal(&item, value).map(|same| !same)));
        Ok(differ.map(|differ| !differ))
    }
}

fn at_path<'a>(map: MapRef<'a>, path: &[SmolStr]) -> Val<'a> {
    let Some((first, rest)) = path.split_first() else {
        return Val::from(log::ValueRef::Map(map));
    };
    match map.get(first) {
        Some(value) if rest.is_empty() => value.into(),
        Some(value) => value.as_map().map_or(Val::Null, |inner| at_path(inner, rest)),
        None => Val::Null,
    }
}

/// A test of one text by another. Of a text stored as a blob only the beginning is known.
fn text_test(test: TextTest, a: &Val<'_>, b: &Val<'_>) -> Option<bool> {
    let Val::Text(b) = b else { return None };
    match (test, a) {
        (TextTest::StartsWith, Val::Text(a)) => Some(a.starts_with(b.as_ref())),
        (TextTest::EndsWith, Val::Text(a)) => Some(a.ends_with(b.as_ref())),
        (TextTest::Contains, Val::Text(a)) => Some(a.contains(b.as_ref())),
        (TextTest::Matches, Val::Text(a)) => whole_text(b).ok().map(|regex| regex.is_match(a)),
        (TextTest::StartsWith, Val::Blob(blob)) if b.len() <= blob.head.len() => {
            Some(blob.head.starts_with(b.as_ref()))
        }
        _ => None,
    }
}
