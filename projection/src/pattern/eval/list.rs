//! Lists, choices and paths: expressions that hold others.

use crate::graph::ElementRef;
use crate::pattern::problem::{ErrorClass, Problem};
use crate::pattern::program::{CaseCode, Code, EachCode, Kind};
use crate::pattern::search::{Aim, Halt, Search, Task};
use crate::pattern::steps::Exhausted;
use crate::pattern::syntax::EachAim;
use crate::pattern::value::{Val, equal};
use crate::world::World;

impl<'a, W: World> Search<'a, W> {
    /// `base[index]`
    pub(super) fn indexed(
        &mut self,
        base: &'a Code,
        index: &'a Code,
    ) -> Result<Val<'a>, Exhausted> {
        let (base, index) = (self.value(base)?, self.value(index)?);
        Ok(match (base, index) {
            (Val::Null, _) | (_, Val::Null) => Val::Null,
            (base @ (Val::Element(_) | Val::Map(_) | Val::Blob(_)), Val::Text(name)) => {
                self.field(base, &name)
            }
            (base @ Val::List(_), Val::Int(place)) => base.item(place),
            (Val::Map(_) | Val::Element(_), index) => {
                let problem = Problem::MapElementAccessByNonString;
                self.misfit(ErrorClass::Type, problem, || {
                    format!("a map or an element is asked by a name, not by {}", index.word())
                })
            }
            (Val::List(_), index) => {
                self.misfit(ErrorClass::Type, Problem::InvalidArgumentType, || {
                    format!("a list is asked by a whole number, not by {}", index.word())
                })
            }
            (base, _) => self.misfit(ErrorClass::Type, Problem::InvalidArgumentType, || {
                format!("{} has no places: only a list, a map or an element has", base.word())
            }),
        })
    }

    /// `base[from..to]`: from the first place up to, but without, the second.
    pub(super) fn slice(
        &mut self,
        base: &'a Code,
        from: Option<&'a Code>,
        to: Option<&'a Code>,
    ) -> Result<Val<'a>, Exhausted> {
        let base = self.value(base)?;
        let from = from.map_or(Ok(Val::Int(0)), |code| self.value(code))?;
        let to = to.map_or(Ok(Val::Int(i64::MAX)), |code| self.value(code))?;
        Ok(match (base, from, to) {
            (Val::Null, ..) | (_, Val::Null, _) | (_, _, Val::Null) => Val::Null,
            (Val::List(items), Val::Int(from), Val::Int(to)) => {
                let (from, to) = (place_in(&items, from), place_in(&items, to));
                let length = to.saturating_sub(from);
                Val::List(items.into_iter().skip(from).take(length).collect())
            }
            (base, ..) => self.misfit(ErrorClass::Type, Problem::InvalidArgumentType, || {
                format!("a part is taken of a list by whole numbers, not of {}", base.word())
            }),
        })
    }

    pub(super) fn case(&mut self, case: &'a CaseCode) -> Result<Val<'a>, Exhausted> {
        let subject = case.subject.as_ref().map(|code| self.value(code)).transpose()?;
        for (test, value) in &case.branches {
            let chosen = match &subject {
                Some(subject) => equal(subject, &self.value(test)?) == Some(true),
                None => self.is_true(test)?,
            };
            if chosen {
                return self.value(value);
            }
        }
        case.otherwise.as_ref().map_or(Ok(Val::Null), |code| self.value(code))
    }

    /// A list made of another, or the answer about all its items.
    pub(super) fn each(&mut self, each: &'a EachCode) -> Result<Val<'a>, Exhausted> {
        let list = match self.value(&each.list)? {
            Val::List(list) => list,
            Val::Null => return Ok(Val::Null),
            other => {
                let problem = Problem::InvalidArgumentType;
                return Ok(self.misfit(ErrorClass::Type, problem, || {
                    format!("IN goes through a list, not {}", other.word())
                }));
            }
        };
        let (mut out, mut holds, mut open) = (Vec::new(), 0, 0);
        let total = list.len();
        for item in list {
            self.count_step()?;
            self.items.push(item);
            let truth = match &each.condition {
                Some(condition) => self.value(condition)?.truth(),
                None => Some(true),
            };
            if truth == Some(true) && each.aim == EachAim::List {
                let value = each.value.as_ref().map(|code| self.value(code)).transpose()?;
                let item = self.items.pop().expect("it was put there");
                out.push(value.unwrap_or(item));
            } else {
                self.items.pop();
            }
            holds += usize::from(truth == Some(true));
            open += usize::from(truth.is_none());
        }
        let fails = total - holds - open;
        Ok(Val::of_truth(match each.aim {
            EachAim::List => return Ok(Val::List(out)),
            EachAim::All if fails > 0 => Some(false),
            EachAim::Any if holds > 0 => Some(true),
            EachAim::None if holds > 0 => Some(false),
            EachAim::Single if holds > 1 => Some(false),
            _ if open > 0 => None,
            EachAim::All | EachAim::None => Some(true),
            EachAim::Any => Some(false),
            EachAim::Single => Some(holds == 1),
        }))
    }

    /// The value of each match of a scope.
    pub(super) fn collect(&mut self, scope: usize, value: &'a Code) -> Result<Val<'a>, Exhausted> {
        let Some(given) = self.bind_given(scope)? else { return Ok(Val::List(Vec::new())) };
        let bound = self.program.scopes[scope].imports | given;
        let mut out = Vec::new();
        let run = self.run(Task { scope, aim: Aim::Match }, bound, &mut |search, _| {
            out.push(search.value(value)?);
            Ok(())
        });
        match run {
            Ok(()) | Err(Halt::Enough) => Ok(Val::List(out)),
            Err(Halt::Exhausted(exhausted)) => Err(exhausted),
        }
    }

    /// A chain that is bound, as a path.
    pub(super) fn path(&self, slots: &[usize]) -> Val<'a> {
        let (first, rest) = slots.split_first().expect("a chain begins with a node");
        let mut path = vec![self.frame[*first]];
        for pair in rest.chunks(2) {
            let [edge, node] = pair else { unreachable!("each edge leads to a node") };
            if self.program.slots[*edge].kind != Kind::Path {
                path.extend([self.frame[*edge], self.frame[*node]]);
                continue;
            }
            for found in &self.paths[*edge] {
                let at = path.last().and_then(|node| node.node()).expect("a path is at a node");
                let (from, to) = self.ends(*found);
                let next = if from == at { to } else { from };
                path.extend([ElementRef::Edge(*found), next.into()]);
            }
        }
        Val::Path(path)
    }
}

/// A place in a list, counted from the end if negative, and never outside.
fn place_in(items: &[Val<'_>], place: i64) -> usize {
    let length = i64::try_from(items.len()).expect("what fits in memory can be counted");
    let place = if place < 0 { place.saturating_add(length) } else { place };
    usize::try_from(place.clamp(0, length)).expect("it lies between zero and the length")
}
