//! Random patterns, worlds and events of the oracle: few ids, types and values, so that all meet.

use log::{Change, WriteOp};
use serde_json::{Map, Value, json};

use super::shape::{Chain, Line, Part, Shape, Spot, Term, Test, Way};

/// Numbers that only look random.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // xorshift, then the high bits of a product.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

const NODE_TYPES: [&str; 3] = ["A", "B", "C"];
const EDGE_TYPES: [&str; 3] = ["R", "S", "T"];
const PROPERTIES: [&str; 3] = ["p", "q", "k"];

fn value(random: &mut Random) -> Value {
    match random.below(13) {
        0 => json!(1.0),
        1 => json!(0.5),
        2 => json!("x"),
        3 => json!("xy"),
        4 => json!(true),
        5 => json!(false),
        6 => Value::Null,
        7 => json!([1]),
        8 => json!(format!("n{}", random.below(4))),
        n => json!(n as i64 - 9),
    }
}

fn properties(random: &mut Random, percent: usize) -> Map<String, Value> {
    let names = PROPERTIES.into_iter().filter(|_| random.chance(percent)).collect::<Vec<_>>();
    names.into_iter().map(|name| (name.to_owned(), value(random))).collect()
}

fn node_id(random: &mut Random) -> String {
    format!("n{}", random.below(7))
}

fn edge_id(random: &mut Random) -> String {
    format!("e{}", random.below(11))
}

fn any_id(random: &mut Random) -> String {
    if random.chance(60) { node_id(random) } else { edge_id(random) }
}

fn create(random: &mut Random, id: String) -> Change {
    let type_name = random.pick(&NODE_TYPES).into();
    Change::Create { id: Some(id.into()), type_name, properties: properties(random, 60) }
}

fn link(random: &mut Random, id: String) -> Change {
    let from = node_id(random);
    // Loops and parallel edges come about more often than chance would have it.
    let to = if random.chance(12) { from.clone() } else { node_id(random) };
    let (from, to) = (from.into(), to.into());
    let type_name = random.pick(&EDGE_TYPES).into();
    Change::Link { id: Some(id.into()), type_name, from, to, properties: properties(random, 40) }
}

/// The events that make a world: a change each, some of which may be refused.
pub(crate) fn world(random: &mut Random) -> Vec<Vec<Change>> {
    let mut events: Vec<Vec<Change>> =
        (0..6).map(|n| vec![create(random, format!("n{n}"))]).collect();
    for _ in 0..9 + random.below(5) {
        let id = edge_id(random);
        events.push(vec![link(random, id)]);
    }
    events
}

/// The changes of one event, all of which `fit` together.
pub(crate) fn event(random: &mut Random, fit: impl Fn(&[Change]) -> bool) -> Vec<Change> {
    let most = random.pick(&[1, 2, 3, 4, 5, 12]);
    let mut changes = Vec::new();
    let mut wanted = 1 + random.below(most);
    while wanted > 0 {
        let length = changes.len();
        change(random, &mut changes);
        wanted -= usize::from(!changes.is_empty());
        if !fit(&changes) {
            changes.truncate(length);
            wanted += usize::from(length == 0);
        }
    }
    changes
}

fn change(random: &mut Random, out: &mut Vec<Change>) {
    let id = any_id(random);
    match random.below(14) {
        0 => {
            let id = node_id(random);
            out.push(create(random, id));
        }
        1 | 2 => {
            let id = edge_id(random);
            out.push(link(random, id));
        }
        3 => {
            let (from, to) = (node_id(random).into(), node_id(random).into());
            let type_name = random.pick(&EDGE_TYPES).into();
            out.push(Change::EnsureLink {
                type_name,
                from,
                to,
                properties: properties(random, 40),
            });
        }
        4 | 5 => out.push(Change::Remove { id: id.into() }),
        6 => {
            // Removed and made again: the same id, but another element.
            out.push(Change::Remove { id: id.as_str().into() });
            let again = if id.starts_with('n') { create(random, id) } else { link(random, id) };
            out.push(again);
        }
        7 => {
            let names = vec![random.pick(&PROPERTIES).into()];
            out.push(Change::Unset { id: id.into(), names });
        }
        n => {
            let op = if n == 8 { WriteOp::Add } else { WriteOp::Set };
            let mut properties = properties(random, 65);
            if op == WriteOp::Add {
                properties.values_mut().for_each(|value| *value = json!(1));
            }
            out.push(Change::Write { op, id: id.into(), properties, if_version: None });
        }
    }
}

/// Two random patterns, which often share their chains.
pub(crate) fn shapes(random: &mut Random) -> [Shape; 2] {
    let mut maker = Maker::new(random);
    let most = maker.random.pick(&[1, 2, 3, 3, 4]);
    let first = maker.shape(most, 2, 0);
    if maker.random.chance(50) {
        let test = maker.test(2);
        let second = Shape { chains: first.chains.clone(), test: Some(test) };
        return [first, second];
    }
    let mut maker = Maker::new(random);
    let second = maker.shape(3, 2, 0);
    [first, second]
}

/// Makes one pattern; the names it has given so far are known inside.
struct Maker<'r> {
    random: &'r mut Random,
    parts: usize,
    nodes: Vec<Part>,
    edges: Vec<Part>,
    paths: Vec<Part>,
}

impl<'r> Maker<'r> {
    fn new(random: &'r mut Random) -> Self {
        Maker { random, parts: 0, nodes: Vec::new(), edges: Vec::new(), paths: Vec::new() }
    }

    /// Chains of together about so many nodes. Names below `outer` belong to the scopes around.
    fn shape(&mut self, most: usize, depth: usize, outer: usize) -> Shape {
        let mut left = most;
        let mut chains = Vec::new();
        while left > 0 && (chains.is_empty() || self.random.chance(60)) {
            let nodes = 1 + self.random.below(left);
            chains.push(self.chain(nodes, outer));
            left -= nodes;
        }
        let mut test = None;
        if chains.len() > 1 && self.random.chance(60) {
            test = self.join();
        }
        if self.random.chance(55) {
            let more = self.test(depth);
            test = Some(match test {
                Some(test) => Test::And(Box::new(test), Box::new(more)),
                None => more,
            });
        }
        Shape { chains, test }
    }

    fn chain(&mut self, nodes: usize, outer: usize) -> Chain {
        let first = self.node(outer);
        let links = (1..nodes).map(|_| (self.line(outer), self.node(outer))).collect();
        Chain { first, links }
    }

    fn new_part(&mut self, named: usize) -> (Part, bool) {
        self.parts += 1;
        (self.parts - 1, self.random.chance(named))
    }

    fn node(&mut self, outer: usize) -> Spot {
        let mut spot = Spot::default();
        if !self.nodes.is_empty() && self.random.chance(if outer > 0 { 60 } else { 35 }) {
            (spot.part, spot.named) = (self.random.pick(&self.nodes), true);
            // What was bound outside may be asked for its type inside.
            if spot.part < outer {
                spot.types = self.types(&NODE_TYPES, 15);
            }
            spot.equals = self.equals(5);
        } else {
            (spot.part, spot.named) = self.new_part(80);
            spot.types = self.types(&NODE_TYPES, 35);
            spot.equals = self.equals(10);
            if spot.named {
                self.nodes.push(spot.part);
            }
        }
        spot
    }

    fn line(&mut self, outer: usize) -> Line {
        let way = self.random.pick(&[Way::Right, Way::Left, Way::Either]);
        let mut spot = Spot::default();
        if self.random.chance(18) {
            let length = self.random.pick(&[
                (1, Some(2)),
                (0, Some(1)),
                (2, Some(2)),
                (1, Some(3)),
                (0, Some(2)),
                (1, Some(4)),
            ]);
            (spot.part, spot.named) = self.new_part(30);
            spot.types = self.types(&EDGE_TYPES, 50);
            if self.random.chance(20) {
                let term = Term::Const(value(self.random));
                spot.equals.push((self.random.pick(&PROPERTIES), term));
            }
            if spot.named {
                self.paths.push(spot.part);
            }
            return Line { spot, way, length: Some(length) };
        }
        let known: Vec<Part> = self.edges.iter().copied().filter(|part| *part < outer).collect();
        if !known.is_empty() && self.random.chance(15) {
            (spot.part, spot.named) = (self.random.pick(&known), true);
            // Within one `EXISTS` an edge is written once.
            self.edges.retain(|part| *part != spot.part);
            return Line { spot, way, length: None };
        }
        (spot.part, spot.named) = self.new_part(45);
        spot.types = self.types(&EDGE_TYPES, 35);
        spot.equals = self.equals(8);
        if spot.named {
            self.edges.push(spot.part);
        }
        Line { spot, way, length: None }
    }

    fn types(&mut self, from: &[&'static str], percent: usize) -> Vec<&'static str> {
        if !self.random.chance(percent) {
            return Vec::new();
        }
        let mut types = vec![self.random.pick(from)];
        if self.random.chance(25) {
            types.push(self.random.pick(from));
        }
        types
    }

    fn equals(&mut self, percent: usize) -> Vec<(&'static str, Term)> {
        if !self.random.chance(percent) {
            return Vec::new();
        }
        vec![(self.random.pick(&PROPERTIES), self.term())]
    }

    fn element(&mut self) -> Option<Part> {
        let all: Vec<Part> = self.nodes.iter().chain(&self.edges).copied().collect();
        if all.is_empty() { None } else { Some(self.random.pick(&all)) }
    }

    fn property(&mut self) -> Term {
        let name = self.random.pick(&PROPERTIES);
        self.element().map_or(Term::Const(json!(1)), |part| Term::Property(part, name))
    }

    fn constant(&mut self) -> Term {
        let value = value(self.random);
        Term::Const(if value.is_array() { json!("x") } else { value })
    }

    fn term(&mut self) -> Term {
        match self.random.below(15) {
            0 => Term::Parameter,
            1 => Term::Payload(self.random.pick(&["x", "id"])),
            2 => Term::Sum(Box::new(self.property()), Box::new(self.constant())),
            3 => Term::Coalesce(Box::new(self.property()), Box::new(self.constant())),
            4 | 5 => self.element().map_or(Term::Parameter, Term::Id),
            6 if self.random.chance(30) => self.element().map_or(Term::Parameter, Term::Type),
            6 if !self.paths.is_empty() => Term::Size(self.random.pick(&self.paths)),
            7..=9 => self.constant(),
            _ => self.property(),
        }
    }

    /// An equality between two elements, which joins what no edge does.
    fn join(&mut self) -> Option<Test> {
        let (a, b) = (
            self.random.pick(&self.nodes.first().map(|_| self.nodes.clone())?),
            self.nodes.last()?,
        );
        let left = Term::Property(a, self.random.pick(&PROPERTIES));
        let right = if self.random.chance(70) {
            Term::Property(*b, self.random.pick(&PROPERTIES))
        } else {
            Term::Id(*b)
        };
        Some(Test::Compare(left, vec![("=", right)]))
    }

    fn test(&mut self, depth: usize) -> Test {
        if depth > 0 && self.random.chance(40) {
            let (a, b) = (self.test(depth - 1), self.test(depth - 1));
            let (a, b) = (Box::new(a), Box::new(b));
            return match self.random.below(5) {
                0 => Test::Or(a, b),
                1 => Test::Xor(a, b),
                2 => Test::Not(a),
                _ => Test::And(a, b),
            };
        }
        if depth > 0 && self.random.chance(50) {
            return self.exists(depth);
        }
        self.simple()
    }

    fn exists(&mut self, depth: usize) -> Test {
        let known = (self.nodes.clone(), self.edges.clone(), self.paths.clone());
        let most = self.random.pick(&[1, 2, 2, 3]);
        let outer = self.parts;
        let test = Test::Exists(Box::new(self.shape(most, depth - 1, outer)));
        (self.nodes, self.edges, self.paths) = known;
        if self.random.chance(60) { Test::Not(Box::new(test)) } else { test }
    }

    fn simple(&mut self) -> Test {
        let (a, b) = (self.term(), self.term());
        match self.random.below(10) {
            0 => Test::In(a, vec![b, self.constant()]),
            1 => {
                let operator = self.random.pick(&["STARTS WITH", "ENDS WITH", "CONTAINS"]);
                Test::Text(a, operator, Term::Const(json!(self.random.pick(&["x", "y", "n"]))))
            }
            2 => Test::IsNull(self.property()),
            3 => Test::IsNotNull(self.property()),
            4 => match self.element() {
                Some(part) => Test::HasType(part, self.random.pick(&["A", "B", "R"])),
                None => Test::IsNull(a),
            },
            5 if self.nodes.len() > 1 => {
                let (a, b) = (self.random.pick(&self.nodes), self.random.pick(&self.nodes));
                Test::Same(a, self.random.pick(&["=", "<>", "<>"]), b)
            }
            6 => Test::Compare(a, vec![("<=", b), (self.random.pick(&["<", "<="]), self.term())]),
            _ => {
                let operators = ["=", "=", "=", "<>", "<", "<=", ">", ">="];
                Test::Compare(a, vec![(self.random.pick(&operators), b)])
            }
        }
    }
}
