//! Functions of plain values: the same values give the same value, everywhere.

use std::borrow::Cow;
use std::fmt;

use crate::pattern::syntax::Function;
use crate::pattern::value::{Val, text_of};

/// A function was given something that it is not for.
pub(crate) struct Misfit {
    function: Function,
    given: &'static str,
}

impl Misfit {
    pub(crate) fn of(function: Function, given: &'static str) -> Misfit {
        Misfit { function, given }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}() cannot be asked of {}", self.function.name(), self.given)
    }
}

/// A count as a value.
pub(crate) fn size<'a>(count: usize) -> Val<'a> {
    Val::Int(i64::try_from(count).expect("what fits in memory can be counted"))
}

/// A function of one value that is neither null, element nor path.
pub(crate) fn single(function: Function, value: Val<'_>) -> Result<Val<'_>, Misfit> {
    match value {
        Val::Text(text) => of_text(function, text),
        Val::List(items) => of_list(function, items),
        Val::Int(_) | Val::UInt(_) | Val::Float(_) => of_number(function, &value),
        Val::Bool(truth) => match function {
            Function::ToString => {
                Ok(Val::Text(Cow::Borrowed(if truth { "true" } else { "false" })))
            }
            Function::ToBoolean => Ok(value),
            Function::ToInteger => Ok(Val::Int(i64::from(truth))),
            _ => Err(Misfit::of(function, value.word())),
        },
        Val::Map(entries) => match function {
            Function::Size => Ok(size(entries.len())),
            Function::Keys => {
                Ok(Val::List(entries.into_iter().map(|(k, _)| Val::Text(k)).collect()))
            }
            Function::Properties => Ok(Val::Map(entries)),
            _ => Err(Misfit::of(function, "a map")),
        },
        // Of a long text only the beginning is here: what would need the rest is not known.
        Val::Blob(_) if function == Function::Size => Ok(Val::Null),
        other => Err(Misfit::of(function, other.word())),
    }
}

fn of_text(function: Function, text: Cow<'_, str>) -> Result<Val<'_>, Misfit> {
    let owned = |text: String| Ok(Val::Text(Cow::Owned(text)));
    match function {
        Function::Size => Ok(size(text.chars().count())),
        Function::ToString => Ok(Val::Text(text)),
        Function::ToLower => owned(text.to_lowercase()),
        Function::ToUpper => owned(text.to_uppercase()),
        Function::Trim => owned(text.trim().to_owned()),
        Function::LTrim => owned(text.trim_start().to_owned()),
        Function::RTrim => owned(text.trim_end().to_owned()),
        Function::Reverse => owned(text.chars().rev().collect()),
        Function::ToInteger => Ok(to_integer(text.trim())),
        Function::ToFloat => {
            let number = text.trim().parse().ok().filter(|n: &f64| n.is_finite());
            Ok(number.map_or(Val::Null, Val::Float))
        }
        Function::ToBoolean => {
            let word = text.trim();
            let truth =
                [true, false].into_iter().find(|t| word.eq_ignore_ascii_case(&t.to_string()));
            Ok(Val::of_truth(truth))
        }
        _ => Err(Misfit::of(function, "a text")),
    }
}

/// A whole number that is written with or without a fraction, which is cut off.
fn to_integer<'a>(text: &str) -> Val<'a> {
    if let Ok(number) = text.parse() {
        return Val::whole(number);
    }
    text.parse().map_or(Val::Null, cut_off)
}

/// A number without its fraction.
fn cut_off<'a>(number: f64) -> Val<'a> {
    // Far inside the range of 128 bits, so the conversion is exact.
    if number.abs() < 1e30 { Val::whole(number.trunc() as i128) } else { Val::Null }
}

fn of_list(function: Function, mut items: Vec<Val<'_>>) -> Result<Val<'_>, Misfit> {
    match function {
        Function::Size => Ok(size(items.len())),
        Function::Head if items.is_empty() => Ok(Val::Null),
        Function::Head => Ok(items.swap_remove(0)),
        Function::Last => Ok(items.pop().unwrap_or(Val::Null)),
        Function::Tail => Ok(Val::List(items.into_iter().skip(1).collect())),
        Function::Reverse => {
            items.reverse();
            Ok(Val::List(items))
        }
        _ => Err(Misfit::of(function, "a list")),
    }
}

fn of_number<'a>(function: Function, value: &Val<'a>) -> Result<Val<'a>, Misfit> {
    let float = value.as_float().expect("a number can be rounded to a float");
    let whole = value.as_whole();
    Ok(match (function, whole) {
        (Function::ToString, _) => text_of(value.clone()).map_or(Val::Null, Val::Text),
        (Function::ToFloat, _) => Val::Float(float),
        (Function::ToInteger, Some(_)) => value.clone(),
        (Function::ToInteger, None) => cut_off(float),
        (Function::ToBoolean, Some(whole)) => Val::Bool(whole != 0),
        (Function::Abs, Some(whole)) => Val::whole(whole.abs()),
        (Function::Abs, None) => Val::Float(float.abs()),
        (Function::Sign, _) => Val::Int(i64::from(float > 0.0) - i64::from(float < 0.0)),
        (Function::Sqrt, _) => Val::Float(float.sqrt()),
        (Function::Ceil, _) => Val::Float(float.ceil()),
        (Function::Floor, _) => Val::Float(float.floor()),
        // A half goes up, whatever its sign.
        (Function::Round, _) => {
            let floor = float.floor();
            Val::Float(if float - floor < 0.5 { floor } else { floor + 1.0 })
        }
        _ => return Err(Misfit::of(function, "a number")),
    })
}

/// A function of two values or more.
pub(crate) fn several<'a>(function: Function, values: &[Val<'a>]) -> Result<Val<'a>, Misfit> {
    if values.iter().any(|value| matches!(value, Val::Null)) {
        return Ok(Val::Null);
    }
    let owned = |text: String| Ok(Val::Text(Cow::Owned(text)));
    let count = |value: &Val<'_>| value.as_whole().and_then(|n| usize::try_from(n).ok());
    match (function, values) {
        (Function::Split, [Val::Text(text), Val::Text(by)]) => Ok(Val::List(split(text, by))),
        (Function::Replace, [Val::Text(text), Val::Text(old), Val::Text(_)]) if old.is_empty() => {
            owned(text.to_string())
        }
        (Function::Replace, [Val::Text(text), Val::Text(old), Val::Text(new)]) => {
            owned(text.replace(old.as_ref(), new))
        }
        (_, [Val::Text(text), first, rest @ ..]) => {
            let misfit = |value: &Val<'_>| {
                let below = value.as_whole().is_some();
                Misfit::of(function, if below { "a place below zero" } else { value.word() })
            };
            let first = count(first).ok_or_else(|| misfit(first))?;
            let chars = text.chars();
            match (function, rest) {
                (Function::Left, _) => owned(chars.take(first).collect()),
                (Function::Right, _) => {
                    let skipped = text.chars().count().saturating_sub(first);
                    owned(chars.skip(skipped).collect())
                }
                (Function::Substring, []) => owned(chars.skip(first).collect()),
                (Function::Substring, [length]) => {
                    let length = count(length).ok_or_else(|| misfit(length))?;
                    owned(chars.skip(first).take(length).collect())
                }
                _ => Err(Misfit::of(function, "a text")),
            }
        }
        (_, [other, ..]) => Err(Misfit::of(function, other.word())),
        (_, []) => unreachable!("the parser counted the arguments"),
    }
}

/// The parts of a text between a separator; without one, its characters.
fn split<'a>(text: &str, by: &str) -> Vec<Val<'a>> {
    let part = |part: String| Val::Text(Cow::Owned(part));
    if by.is_empty() {
        return text.chars().map(|c| part(c.to_string())).collect();
    }
    text.split(by).map(|found| part(found.to_owned())).collect()
}
