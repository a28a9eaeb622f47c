//! Calls of functions: those that ask the world are here, the others in `functions`.

use std::borrow::Cow;

use crate::graph::{ElementRef, ElementView};
use crate::pattern::functions::{self, Misfit};
use crate::pattern::problem::{ErrorClass, Problem};
use crate::pattern::program::Code;
use crate::pattern::search::Search;
use crate::pattern::steps::Exhausted;
use crate::pattern::syntax::Function;
use crate::pattern::value::Val;
use crate::world::World;

/// The type of a node that was given none; it has no label.
pub(crate) const NO_TYPE: &str = "_";

impl<'a, W: World> Search<'a, W> {
    pub(super) fn call(
        &mut self,
        function: Function,
        arguments: &'a [Code],
    ) -> Result<Val<'a>, Exhausted> {
        if function == Function::Coalesce {
            for code in arguments {
                let value = self.value(code)?;
                if !matches!(value, Val::Null) {
                    return Ok(value);
                }
            }
            return Ok(Val::Null);
        }
        let [argument] = arguments else {
            let values = self.values(arguments)?;
            return match function {
                Function::Range => self.range(&values),
                _ => Ok(self.fitting(functions::several(function, &values))),
            };
        };
        Ok(match self.value(argument)? {
            Val::Null => Val::Null,
            Val::Element(element) => {
                let view = self.world.at(element).expect("what is bound is there");
                self.of_element(function, view)
            }
            Val::Path(path) => self.of_path(function, path),
            value => self.fitting(functions::single(function, value)),
        })
    }

    fn of_element(&mut self, function: Function, view: ElementView<'a>) -> Val<'a> {
        let text = |text: &'a str| Val::Text(Cow::Borrowed(text));
        match (function, view.ends()) {
            (Function::Id, _) => text(view.id()),
            (Function::Type, _) => text(view.type_name()),
            (Function::Labels, None) if view.type_name() == NO_TYPE => Val::List(Vec::new()),
            (Function::Labels, None) => Val::List(vec![text(view.type_name())]),
            (Function::Keys, _) => {
                Val::List(view.properties().iter().map(|(name, _)| text(name)).collect())
            }
            (Function::Properties, _) => Val::from(log::ValueRef::Map(view.properties())),
            (Function::StartNode, Some((from, _))) => Val::Element(from.into()),
            (Function::EndNode, Some((_, to))) => Val::Element(to.into()),
            (_, ends) => {
                let what = if ends.is_some() { "an edge" } else { "a node" };
                self.fitting(Err(Misfit::of(function, what)))
            }
        }
    }

    fn of_path(&mut self, function: Function, path: Vec<ElementRef>) -> Val<'a> {
        let every_second = |from: usize| {
            Val::List(path.iter().skip(from).step_by(2).map(|part| Val::Element(*part)).collect())
        };
        match function {
            Function::Length => functions::size(path.len() / 2),
            Function::Nodes => every_second(0),
            Function::Relationships => every_second(1),
            _ => self.fitting(Err(Misfit::of(function, "a path"))),
        }
    }

    /// Whole numbers one after the other. Each is a step, since a few letters can ask for many.
    fn range(&mut self, values: &[Val<'a>]) -> Result<Val<'a>, Exhausted> {
        if values.iter().any(|value| matches!(value, Val::Null)) {
            return Ok(Val::Null);
        }
        let whole: Vec<i128> = values.iter().filter_map(Val::as_whole).collect();
        let (from, to, by) = match *whole.as_slice() {
            [from, to] if values.len() == 2 => (from, to, 1),
            [from, to, by] => (from, to, by),
            _ => {
                let (class, problem) = (ErrorClass::Argument, Problem::InvalidArgumentType);
                return Ok(self.misfit(class, problem, || "range counts in whole numbers".into()));
            }
        };
        if by == 0 {
            let (class, problem) = (ErrorClass::Argument, Problem::NumberOutOfRange);
            return Ok(self.misfit(class, problem, || "range with steps of 0 has no end".into()));
        }
        let mut out = Vec::new();
        let mut at = from;
        while if by > 0 { at <= to } else { at >= to } {
            self.count_step()?;
            out.push(Val::whole(at));
            at += by;
        }
        Ok(Val::List(out))
    }

    fn fitting(&mut self, outcome: Result<Val<'a>, Misfit>) -> Val<'a> {
        outcome.unwrap_or_else(|misfit| {
            self.misfit(ErrorClass::Type, Problem::InvalidArgumentValue, || misfit.to_string())
        })
    }
}
