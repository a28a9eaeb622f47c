//! The naive matcher: it tries every way to bind every part, on a plain copy of the world, and asks
//! all conditions when everything is bound.
//!
//! It shares nothing with the product but the world that it copies: no tree, no plan, no index, no
//! evaluation of expressions.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use log::Bound;
use projection::{Born, ElementRef, Graph, World};
use serde_json::{Map, Value};

use super::shape::{Line, Part, Shape, Spot, Term, Test, Way};

/// An element, copied. An edge has the places of its ends.
#[derive(Debug)]
struct Plain {
    id: String,
    type_name: String,
    properties: Map<String, Value>,
    born: Born,
    ends: Option<(usize, usize)>,
}

/// A world, copied: nodes, then edges.
#[derive(Debug)]
pub(crate) struct PlainWorld(Vec<Plain>);

/// What else a term may mention.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) parameter: Value,
    pub(crate) payload: Map<String, Value>,
}

/// Matches with the creation of their elements, in order.
pub(crate) type Rows = Vec<(Vec<Born>, Vec<Bound>)>;

/// What a part is bound to, by place.
#[derive(Clone, Debug, PartialEq)]
enum Held {
    One(usize),
    Path(Vec<usize>),
}

/// What every part is bound to so far.
type Frame = BTreeMap<Part, Held>;

/// One part to be bound, in the order they are written; a line comes with the spot after it.
#[derive(Clone, Copy, Debug)]
enum Todo<'s> {
    Start(&'s Spot),
    Step(&'s Spot, &'s Line, &'s Spot),
}

impl PlainWorld {
    pub(crate) fn of(graph: &Graph) -> PlainWorld {
        let nodes: Vec<_> = graph.nodes().collect();
        let place = |node| nodes.iter().position(|other| *other == node).unwrap();
        let all = nodes.iter().map(|node| ElementRef::Node(*node));
        let all = all.chain(graph.edges().map(ElementRef::Edge));
        let plain = all.map(|element| {
            let view = graph.at(element).unwrap();
            Plain {
                id: view.id().to_owned(),
                type_name: view.type_name().to_owned(),
                properties: view.properties_json(),
                born: view.born(),
                ends: view.ends().map(|(from, to)| (place(from), place(to))),
            }
        });
        PlainWorld(plain.collect())
    }

    /// Every match, in order.
    pub(crate) fn rows(&self, shape: &Shape, said: &Said) -> Rows {
        let mut rows = Rows::new();
        let order = parts_of(shape);
        self.each(shape, Frame::new(), said, &mut |frame| {
            let mut born = Vec::new();
            let mut bound = Vec::new();
            for part in &order {
                match &frame[part] {
                    Held::One(place) => {
                        born.push(self.0[*place].born);
                        bound.push(Bound::Element(self.0[*place].id.as_str().into()));
                    }
                    Held::Path(places) => {
                        born.extend(places.iter().map(|place| self.0[*place].born));
                        let ids = places.iter().map(|place| self.0[*place].id.as_str().into());
                        bound.push(Bound::Path(ids.collect()));
                    }
                }
            }
            rows.push((born, bound));
            true
        });
        rows.sort();
        rows
    }

    /// Calls `seen` with every match until it says false; false if it did.
    fn each(
        &self,
        shape: &Shape,
        frame: Frame,
        said: &Said,
        seen: &mut dyn FnMut(&Frame) -> bool,
    ) -> bool {
        let mut todo = Vec::new();
        for chain in &shape.chains {
            todo.push(Todo::Start(&chain.first));
            let mut left = &chain.first;
            for (line, right) in &chain.links {
                todo.push(Todo::Step(left, line, right));
                left = right;
            }
        }
        self.bind(shape, &todo, frame, &mut Vec::new(), said, seen)
    }

    fn bind(
        &self,
        shape: &Shape,
        todo: &[Todo<'_>],
        frame: Frame,
        used: &mut Vec<usize>,
        said: &Said,
        seen: &mut dyn FnMut(&Frame) -> bool,
    ) -> bool {
        let Some((first, rest)) = todo.split_first() else {
            return !self.holds(shape, &frame, said) || seen(&frame);
        };
        let (mut nodes, mut edges) = (0..self.0.len(), 0..self.0.len());
        match *first {
            Todo::Start(spot) => nodes.all(|place| {
                self.0[place].ends.is_some()
                    || frame.get(&spot.part).is_some_and(|held| *held != Held::One(place))
                    || self.bind(shape, rest, with(&frame, spot, place), used, said, seen)
            }),
            Todo::Step(left, line, right) => {
                let Held::One(here) = frame[&left.part] else { panic!("a node is one element") };
                if let Some(length) = line.length {
                    let (least, paths) = (length.0, self.paths(here, line, used));
                    return paths.into_iter().all(|(path, end)| {
                        if path.len() < least || !meets(&frame, right, end) {
                            return true;
                        }
                        let length = used.len();
                        used.extend(&path);
                        let mut next = with(&frame, right, end);
                        next.insert(line.spot.part, Held::Path(path));
                        let goes_on = self.bind(shape, rest, next, used, said, seen);
                        used.truncate(length);
                        goes_on
                    });
                }
                edges.all(|edge| {
                    let known = frame.get(&line.spot.part);
                    if used.contains(&edge) || known.is_some_and(|held| *held != Held::One(edge)) {
                        return true;
                    }
                    self.across(edge, here, line.way).into_iter().all(|far| {
                        if !meets(&frame, right, far) {
                            return true;
                        }
                        used.push(edge);
                        let next = with(&with(&frame, right, far), &line.spot, edge);
                        let goes_on = self.bind(shape, rest, next, used, said, seen);
                        used.pop();
                        goes_on
                    })
                })
            }
        }
    }

    /// Every path of a line from a node, with the node that it ends at, shortest first.
    fn paths(&self, here: usize, line: &Line, used: &[usize]) -> Vec<(Vec<usize>, usize)> {
        let (_, most) = line.length.expect("a path has a length");
        let mut paths = vec![(Vec::new(), here)];
        let mut done = 0;
        while done < paths.len() {
            let (path, end) = paths[done].clone();
            done += 1;
            if most.is_some_and(|most| path.len() >= most) {
                continue;
            }
            for edge in 0..self.0.len() {
                if path.contains(&edge) || used.contains(&edge) {
                    continue;
                }
                for far in self.across(edge, end, line.way) {
                    let longer = path.iter().copied().chain([edge]).collect();
                    paths.push((longer, far));
                }
            }
        }
        paths
    }

    /// The nodes that an edge leads to from a node: none, or one.
    fn across(&self, edge: usize, here: usize, way: Way) -> Vec<usize> {
        let Some((from, to)) = self.0[edge].ends else { return Vec::new() };
        let mut far = Vec::new();
        if way != Way::Left && from == here {
            far.push(to);
        }
        if way != Way::Right && to == here && !far.contains(&from) {
            far.push(from);
        }
        far
    }

    /// Whether everything that a shape says is true of what is bound.
    fn holds(&self, shape: &Shape, frame: &Frame, said: &Said) -> bool {
        let spots = shape.chains.iter().flat_map(|chain| {
            let links = chain.links.iter().flat_map(|(line, end)| [&line.spot, end]);
            [&chain.first].into_iter().chain(links)
        });
        let fits = |spot: &Spot, place: usize| {
            let plain = &self.0[place];
            let typed = spot.types.is_empty() || spot.types.contains(&plain.type_name.as_str());
            typed
                && spot.equals.iter().all(|(name, term)| {
                    let has = plain.properties.get(*name).cloned().unwrap_or_default();
                    equal(&has, &self.value(term, frame, said)) == Some(true)
                })
        };
        let mut spots = spots;
        spots.all(|spot| match &frame[&spot.part] {
            Held::One(place) => fits(spot, *place),
            Held::Path(places) => places.iter().all(|place| fits(spot, *place)),
        }) && shape.test.as_ref().is_none_or(|test| self.truth(test, frame, said) == Some(true))
    }

    fn one(&self, frame: &Frame, part: Part) -> &Plain {
        let Held::One(place) = frame[&part] else { panic!("v{part} is a path") };
        &self.0[place]
    }

    fn value(&self, term: &Term, frame: &Frame, said: &Said) -> Value {
        match term {
            Term::Const(value) => value.clone(),
            Term::Property(part, name) => {
                self.one(frame, *part).properties.get(*name).cloned().unwrap_or_default()
            }
            Term::Id(part) => self.one(frame, *part).id.as_str().into(),
            Term::Type(part) => self.one(frame, *part).type_name.as_str().into(),
            Term::Size(part) => match &frame[part] {
                Held::Path(places) => places.len().into(),
                Held::One(_) => panic!("v{part} is no path"),
            },
            Term::Parameter => said.parameter.clone(),
            Term::Payload(name) => said.payload.get(*name).cloned().unwrap_or_default(),
            Term::Sum(a, b) => sum(&self.value(a, frame, said), &self.value(b, frame, said)),
            Term::Coalesce(a, b) => match self.value(a, frame, said) {
                Value::Null => self.value(b, frame, said),
                value => value,
            },
        }
    }

    fn truth(&self, test: &Test, frame: &Frame, said: &Said) -> Option<bool> {
        let value = |term: &Term| self.value(term, frame, said);
        let truth = |test: &Test| self.truth(test, frame, said);
        match test {
            Test::And(a, b) => ranked(rank(truth(a)).min(rank(truth(b)))),
            Test::Or(a, b) => ranked(rank(truth(a)).max(rank(truth(b)))),
            Test::Xor(a, b) => Some(truth(a)? != truth(b)?),
            Test::Not(a) => ranked(2 - rank(truth(a))),
            Test::Compare(first, rest) => {
                let terms: Vec<Value> = [first]
                    .into_iter()
                    .chain(rest.iter().map(|(_, term)| term))
                    .map(value)
                    .collect();
                let pairs = terms.windows(2).zip(rest);
                let all = pairs.map(|(pair, (operator, _))| compares(operator, &pair[0], &pair[1]));
                ranked(all.map(rank).min().unwrap())
            }
            Test::In(term, items) => {
                let item = value(term);
                ranked(items.iter().map(|other| rank(equal(&item, &value(other)))).max().unwrap())
            }
            Test::Text(a, operator, b) => {
                let (Value::String(a), Value::String(b)) = (value(a), value(b)) else {
                    return None;
                };
                Some(match *operator {
                    "STARTS WITH" => a.starts_with(&b),
                    "ENDS WITH" => a.ends_with(&b),
                    _ => a.contains(&b),
                })
            }
            Test::IsNull(term) => Some(value(term).is_null()),
            Test::IsNotNull(term) => Some(!value(term).is_null()),
            Test::HasType(part, name) => Some(self.one(frame, *part).type_name == *name),
            Test::Same(a, operator, b) => Some((frame[a] == frame[b]) == (*operator == "=")),
            Test::Exists(shape) => Some(!self.each(shape, frame.clone(), said, &mut |_| false)),
        }
    }
}

/// The parts of a shape in the order of their first mention: the places of a row.
fn parts_of(shape: &Shape) -> Vec<Part> {
    let mut parts = Vec::new();
    for chain in &shape.chains {
        let links = chain.links.iter().flat_map(|(line, end)| [line.spot.part, end.part]);
        for part in [chain.first.part].into_iter().chain(links) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
    }
    parts
}

fn with(frame: &Frame, spot: &Spot, place: usize) -> Frame {
    let mut next = frame.clone();
    next.insert(spot.part, Held::One(place));
    next
}

fn meets(frame: &Frame, spot: &Spot, place: usize) -> bool {
    frame.get(&spot.part).is_none_or(|held| *held == Held::One(place))
}

/// false, null, true as 0, 1, 2.
fn rank(truth: Option<bool>) -> u8 {
    truth.map_or(1, |truth| if truth { 2 } else { 0 })
}

fn ranked(rank: u8) -> Option<bool> {
    [Some(false), None, Some(true)][usize::from(rank)]
}

fn equal(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => None,
        (Value::Number(a), Value::Number(b)) => Some(a.as_f64() == b.as_f64()),
        (Value::Array(a), Value::Array(b)) if a.len() != b.len() => Some(false),
        (Value::Array(a), Value::Array(b)) => {
            ranked(a.iter().zip(b).map(|(a, b)| rank(equal(a, b))).min().unwrap_or(2))
        }
        (a, b) => Some(a == b),
    }
}

/// How two values of one type are ordered.
fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Array(a), Value::Array(b)) => {
            for (a, b) in a.iter().zip(b) {
                let first = order(a, b)?;
                if first != Ordering::Equal {
                    return Some(first);
                }
            }
            Some(a.len().cmp(&b.len()))
        }
        _ => None,
    }
}

fn compares(operator: &str, a: &Value, b: &Value) -> Option<bool> {
    Some(match operator {
        "=" => return equal(a, b),
        "<>" => return equal(a, b).map(|same| !same),
        "<" => order(a, b)? == Ordering::Less,
        "<=" => order(a, b)? != Ordering::Greater,
        ">" => order(a, b)? == Ordering::Greater,
        _ => order(a, b)? != Ordering::Less,
    })
}

/// Small numbers are added, a text and a number are joined; null otherwise.
fn sum(a: &Value, b: &Value) -> Value {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => match (x.as_i64(), y.as_i64()) {
            (Some(x), Some(y)) => (x + y).into(),
            _ => (x.as_f64().unwrap() + y.as_f64().unwrap()).into(),
        },
        (Value::String(a), Value::String(b)) => format!("{a}{b}").into(),
        (Value::String(a), Value::Number(b)) => format!("{a}{b}").into(),
        (Value::Number(a), Value::String(b)) => format!("{a}{b}").into(),
        (Value::Array(a), Value::Array(b)) => a.iter().chain(b).cloned().collect(),
        (Value::Array(a), b) if !b.is_null() => a.iter().chain([b]).cloned().collect(),
        (a, Value::Array(b)) if !a.is_null() => [a].into_iter().chain(b).cloned().collect(),
        _ => Value::Null,
    }
}
