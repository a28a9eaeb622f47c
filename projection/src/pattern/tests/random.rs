//! Random patterns and random events on a small world, where everything collides.

use log::{Change, Draft, Event, EventId, Offset, WriteOp};
use serde_json::{Map, Value, json};

/// Numbers that only look random.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const NODE_TYPES: [&str; 3] = ["A", "B", "C"];
const EDGE_TYPES: [&str; 3] = ["R", "S", "T"];
const PROPERTIES: [&str; 3] = ["p", "q", "k"];

fn node_id(random: &mut Random) -> String {
    format!("n{}", random.below(7))
}

fn edge_id(random: &mut Random) -> String {
    format!("e{}", random.below(10))
}

fn stored(random: &mut Random) -> Value {
    match random.below(8) {
        0 => json!(1.0),
        1 => json!("x"),
        2 => json!("xy"),
        3 => json!(true),
        4 => Value::Null,
        n => json!(n - 5),
    }
}

fn properties(random: &mut Random) -> Map<String, Value> {
    let mut out = Map::new();
    for name in PROPERTIES {
        if random.chance(60) {
            out.insert(name.to_owned(), stored(random));
        }
    }
    out
}

fn create(random: &mut Random, id: String) -> Change {
    let type_name = random.pick(&NODE_TYPES).into();
    Change::Create { id: Some(id.into()), type_name, properties: properties(random) }
}

fn link(random: &mut Random, id: String) -> Change {
    let (from, to) = (node_id(random).into(), node_id(random).into());
    let type_name = random.pick(&EDGE_TYPES).into();
    Change::Link { id: Some(id.into()), type_name, from, to, properties: properties(random) }
}

fn changes(random: &mut Random, out: &mut Vec<Change>) {
    let any_id = |random: &mut Random| match random.chance(60) {
        true => node_id(random),
        false => edge_id(random),
    };
    match random.below(12) {
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
            let properties = properties(random);
            out.push(Change::EnsureLink { type_name, from, to, properties });
        }
        4 => out.push(Change::Remove { id: any_id(random).into() }),
        5 => {
            // Removed and made again: the same id, but another element.
            let id = any_id(random);
            out.push(Change::Remove { id: id.as_str().into() });
            out.push(match id.starts_with('n') {
                true => create(random, id),
                false => link(random, id),
            });
        }
        6 => {
            let names = vec![random.pick(&PROPERTIES).into()];
            out.push(Change::Unset { id: any_id(random).into(), names });
        }
        _ => {
            let properties = properties(random);
            let id = any_id(random).into();
            out.push(Change::Write { op: WriteOp::Set, id, properties, if_version: None });
        }
    }
}

/// An event that makes one node or one edge, if its id is free.
pub(super) fn first_event(random: &mut Random, offset: u64) -> Event {
    let change = match offset < 6 {
        true => create(random, format!("n{offset}")),
        false => {
            let id = edge_id(random);
            link(random, id)
        }
    };
    encode(random, offset, vec![change])
}

/// An event of a few changes, which need not make sense.
pub(super) fn event(random: &mut Random, offset: u64, most: usize) -> Event {
    let mut some = Vec::new();
    for _ in 0..=random.below(most) {
        changes(random, &mut some);
    }
    encode(random, offset, some)
}

fn encode(random: &mut Random, offset: u64, changes: Vec<Change>) -> Event {
    let mut id = [7u8; 16];
    id[..8].copy_from_slice(&offset.to_le_bytes());
    let mut draft = Draft::new(EventId::from_bytes(id), "thing.happened", "user:test");
    draft.payload = json!({"id": node_id(random), "x": random.below(3)})
        .as_object()
        .cloned()
        .unwrap_or_default();
    draft.changes = changes;
    Event::encode(&draft, Offset::new(offset)).expect("a small event").0
}

/// The text of a pattern; names may clash, so it need not be one.
pub(super) fn pattern(random: &mut Random) -> String {
    let mut names = Names { random, nodes: Vec::new(), edges: Vec::new() };
    let mut text = names.body(3, 2);
    names.random.chance(60).then(|| text += &format!(" WHERE {}", names.condition(2)));
    text
}

struct Names<'r> {
    random: &'r mut Random,
    nodes: Vec<String>,
    edges: Vec<String>,
}

impl Names<'_> {
    /// One or two chains of together at most so many nodes.
    fn body(&mut self, most: usize, chains: usize) -> String {
        let count = 1 + self.random.below(chains);
        let each = (most / count).max(1);
        let chains: Vec<String> = (0..count).map(|_| self.chain(each)).collect();
        chains.join(", ")
    }

    fn chain(&mut self, most: usize) -> String {
        let mut text = self.node();
        for _ in 0..self.random.below(most + 1) {
            let (left, right) = match self.random.below(3) {
                0 => ("-", "->"),
                1 => ("<-", "-"),
                _ => ("-", "-"),
            };
            text += &format!("{left}[{}]{right}{}", self.edge(), self.node());
        }
        text
    }

    fn node(&mut self) -> String {
        if !self.nodes.is_empty() && self.random.chance(35) {
            let place = self.random.below(self.nodes.len());
            return format!("({})", self.nodes[place]);
        }
        let mut text = String::from("(");
        if self.random.chance(80) {
            let name = format!("v{}", self.nodes.len() + self.edges.len());
            text += &name;
            self.nodes.push(name);
        }
        text += &self.types(&NODE_TYPES, 45);
        text += &self.braces(12);
        text + ")"
    }

    fn edge(&mut self) -> String {
        let path = self.random.chance(12);
        let mut text = String::new();
        if !path && self.random.chance(40) {
            let name = format!("v{}", self.nodes.len() + self.edges.len());
            text += &name;
            self.edges.push(name);
        }
        text += &self.types(&EDGE_TYPES, 45);
        if path {
            text += self.random.pick(&["*1..2", "*0..1", "*2", "*..3", "*0..2"]);
            if self.random.chance(20) {
                text += &format!(" {{p: {}}}", self.literal());
            }
        } else {
            text += &self.braces(8);
        }
        text
    }

    fn types(&mut self, from: &[&str], percent: usize) -> String {
        if !self.random.chance(percent) {
            return String::new();
        }
        let one = self.random.pick(from);
        if self.random.chance(25) {
            format!(":{one}|{}", self.random.pick(from))
        } else {
            format!(":{one}")
        }
    }

    fn braces(&mut self, percent: usize) -> String {
        if !self.random.chance(percent) {
            return String::new();
        }
        let name = self.random.pick(&PROPERTIES);
        format!(" {{{name}: {}}}", self.value())
    }

    fn literal(&mut self) -> String {
        self.random.pick(&["0", "1", "2", "1.0", "'x'", "'xy'", "true", "null"]).to_owned()
    }

    /// A property, a literal, a parameter, a field of the event, or a sum.
    fn value(&mut self) -> String {
        match self.random.below(10) {
            0..=3 => self.property().unwrap_or_else(|| "1".to_owned()),
            4 => "$m".to_owned(),
            5 if self.random.chance(50) => "event.payload.x".to_owned(),
            6 => format!("{} + 1", self.property().unwrap_or_else(|| "0".to_owned())),
            _ => self.literal(),
        }
    }

    fn named(&mut self) -> Option<String> {
        let all: Vec<String> = self.nodes.iter().chain(&self.edges).cloned().collect();
        if all.is_empty() { None } else { Some(all[self.random.below(all.len())].clone()) }
    }

    fn property(&mut self) -> Option<String> {
        let name = self.named()?;
        Some(format!("{name}.{}", self.random.pick(&PROPERTIES)))
    }

    fn condition(&mut self, depth: usize) -> String {
        if depth > 0 && self.random.chance(45) {
            return match self.random.below(5) {
                0 => format!("({} AND {})", self.condition(depth - 1), self.condition(depth - 1)),
                1 => format!("({} OR {})", self.condition(depth - 1), self.condition(depth - 1)),
                2 => format!("({} XOR {})", self.condition(depth - 1), self.condition(depth - 1)),
                3 => format!("NOT {}", self.condition(depth - 1)),
                _ => format!("{} AND {}", self.condition(depth - 1), self.condition(depth - 1)),
            };
        }
        if depth > 0 && self.random.chance(50) {
            return self.exists(depth);
        }
        self.test()
    }

    fn exists(&mut self, depth: usize) -> String {
        let (nodes, edges) = (self.nodes.len(), self.edges.len());
        let mut text = self.body(2, 2);
        if self.random.chance(50) {
            text += &format!(" WHERE {}", self.condition(depth - 1));
        }
        // Names of the inside are not known outside.
        self.nodes.truncate(nodes);
        self.edges.truncate(edges);
        let not = if self.random.chance(60) { "NOT " } else { "" };
        format!("{not}EXISTS {{ {text} }}")
    }

    fn test(&mut self) -> String {
        let (a, b) = (self.value(), self.value());
        match self.random.below(9) {
            0 => format!("{a} IN [{b}, {}]", self.literal()),
            1 => format!("{a} STARTS WITH 'x'"),
            2 => format!("{a} IS NULL"),
            3 => format!("{a} IS NOT NULL"),
            4 => match self.named() {
                Some(name) => format!("{name}:{}", self.random.pick(&["A", "B", "R"])),
                None => "true".to_owned(),
            },
            5 => match (self.named(), self.named()) {
                (Some(one), Some(two)) => format!("{one} <> {two}"),
                _ => "true".to_owned(),
            },
            6 if self.random.chance(60) => match self.named() {
                Some(name) => format!("id({name}) = event.payload.id"),
                None => "true".to_owned(),
            },
            _ => format!(
                "{a} {} {b}",
                self.random.pick(&["=", "=", "=", "<>", "<", "<=", ">", ">="])
            ),
        }
    }
}
