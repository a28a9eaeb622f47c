//! Makes a failing case small: everything that can be left out is, as long as the case still fails.

use log::Change;

use super::Case;
use super::shape::{Chain, Shape, Spot, Test};

/// The smallest case found that fails, by leaving out one thing at a time.
pub(super) fn smallest(mut case: Case, fails: impl Fn(&Case) -> bool) -> Case {
    loop {
        let smaller = smaller(&case).into_iter().find(|smaller| fails(smaller));
        match smaller {
            Some(smaller) => case = smaller,
            None => return case,
        }
    }
}

/// The case without one of its parts, in every way.
fn smaller(case: &Case) -> Vec<Case> {
    let mut out = Vec::new();
    for place in 0..case.world.len() {
        let mut next = case.clone();
        next.world.remove(place);
        out.push(next);
    }
    if case.event.len() > 1 {
        for place in 0..case.event.len() {
            let mut next = case.clone();
            next.event.remove(place);
            out.push(next);
        }
    }
    out.extend(shapes(&case.shape).into_iter().map(|shape| Case { shape, ..case.clone() }));
    for place in 0..case.world.len() {
        for change in poorer(&case.world[place][0]) {
            let mut next = case.clone();
            next.world[place] = vec![change];
            out.push(next);
        }
    }
    for place in 0..case.event.len() {
        for change in poorer(&case.event[place]) {
            let mut next = case.clone();
            next.event[place] = change;
            out.push(next);
        }
    }
    if case.indexed {
        out.push(Case { indexed: false, ..case.clone() });
    }
    out
}

/// A change with one property less.
fn poorer(change: &Change) -> Vec<Change> {
    let mut change = change.clone();
    let (Change::Create { properties, .. }
    | Change::Link { properties, .. }
    | Change::EnsureLink { properties, .. }
    | Change::Write { properties, .. }) = &mut change
    else {
        return Vec::new();
    };
    let all = std::mem::take(properties);
    let without = |name: &String| {
        let mut fewer = all.clone();
        fewer.remove(name);
        fewer
    };
    let fewer: Vec<_> = all.keys().map(without).collect();
    let put = |fewer| {
        let mut next = change.clone();
        if let Change::Create { properties, .. }
        | Change::Link { properties, .. }
        | Change::EnsureLink { properties, .. }
        | Change::Write { properties, .. } = &mut next
        {
            *properties = fewer;
        }
        next
    };
    fewer.into_iter().map(put).collect()
}

/// A shape with a part less. Some of these mention what they no longer bind; the product refuses
/// them, and then they do not fail.
fn shapes(shape: &Shape) -> Vec<Shape> {
    let mut out = Vec::new();
    if let Some(test) = &shape.test {
        out.push(Shape { test: None, ..shape.clone() });
        let tests = tests(test).into_iter();
        out.extend(tests.map(|test| Shape { test: Some(test), ..shape.clone() }));
    }
    for place in 0..shape.chains.len() {
        if shape.chains.len() > 1 {
            let mut next = shape.clone();
            next.chains.remove(place);
            out.push(next);
        }
        for chain in chains(&shape.chains[place]) {
            let mut next = shape.clone();
            next.chains[place] = chain;
            out.push(next);
        }
    }
    out
}

fn chains(chain: &Chain) -> Vec<Chain> {
    let mut out = Vec::new();
    if let Some(((_, second), rest)) = chain.links.split_first() {
        out.push(Chain { first: second.clone(), links: rest.to_vec() });
        let links = chain.links[..chain.links.len() - 1].to_vec();
        out.push(Chain { first: chain.first.clone(), links });
    }
    for first in spots(&chain.first) {
        out.push(Chain { first, ..chain.clone() });
    }
    for place in 0..chain.links.len() {
        let (line, end) = &chain.links[place];
        let lines = spots(&line.spot).into_iter();
        let lines = lines.map(|spot| (super::shape::Line { spot, ..line.clone() }, end.clone()));
        let ends = spots(end).into_iter().map(|end| (line.clone(), end));
        for link in lines.chain(ends) {
            let mut next = chain.clone();
            next.links[place] = link;
            out.push(next);
        }
    }
    out
}

fn spots(spot: &Spot) -> Vec<Spot> {
    let mut out = Vec::new();
    if !spot.types.is_empty() {
        out.push(Spot { types: Vec::new(), ..spot.clone() });
    }
    if !spot.equals.is_empty() {
        out.push(Spot { equals: Vec::new(), ..spot.clone() });
    }
    out
}

fn tests(test: &Test) -> Vec<Test> {
    let both = |a: &Test, b: &Test, make: fn(Box<Test>, Box<Test>) -> Test| {
        let mut out = vec![a.clone(), b.clone()];
        out.extend(tests(a).into_iter().map(|a| make(Box::new(a), Box::new(b.clone()))));
        out.extend(tests(b).into_iter().map(|b| make(Box::new(a.clone()), Box::new(b))));
        out
    };
    match test {
        Test::And(a, b) => both(a, b, Test::And),
        Test::Or(a, b) => both(a, b, Test::Or),
        Test::Xor(a, b) => both(a, b, Test::Xor),
        Test::Not(a) => {
            let inside = tests(a).into_iter().map(|a| Test::Not(Box::new(a)));
            [(**a).clone()].into_iter().chain(inside).collect()
        }
        Test::Compare(first, rest) if rest.len() > 1 => {
            vec![Test::Compare(first.clone(), rest[..1].to_vec())]
        }
        Test::Exists(shape) => {
            shapes(shape).into_iter().map(|shape| Test::Exists(Box::new(shape))).collect()
        }
        _ => Vec::new(),
    }
}
