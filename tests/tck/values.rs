//! Values in one canonical spelling, from the tables of the cases and from results.

use projection::{QueryEdge, QueryNode, QueryValue};

/// The type of a node that was given none.
pub(crate) const NO_TYPE: &str = "_";

/// The spelling of a value of a result.
pub(crate) fn spelled(value: &QueryValue, lists_ordered: bool) -> String {
    let one = |value: &QueryValue| spelled(value, lists_ordered);
    match value {
        QueryValue::Null => "null".to_owned(),
        QueryValue::Bool(truth) => truth.to_string(),
        QueryValue::Int(number) => number.to_string(),
        QueryValue::UInt(number) => number.to_string(),
        QueryValue::Float(number) => float(*number),
        QueryValue::Text(text) => format!("{text:?}"),
        QueryValue::Blob(reference) => reference.to_string(),
        QueryValue::List(items) => list(items.iter().map(one).collect(), lists_ordered),
        QueryValue::Map(entries) => map(entries, lists_ordered),
        QueryValue::Node(found) => node(found, lists_ordered),
        QueryValue::Edge(found) => edge(found, lists_ordered),
        QueryValue::Path { nodes, edges } => {
            let mut out = String::from("<");
            for (place, found) in nodes.iter().enumerate() {
                if let Some(before) = place.checked_sub(1) {
                    let (between, from) = (&edges[before], &nodes[before]);
                    let forward = between.from == from.id && between.to == found.id;
                    out.push_str(if forward { "-" } else { "<-" });
                    out.push_str(&edge(between, lists_ordered));
                    out.push_str(if forward { "->" } else { "-" });
                }
                out.push_str(&node(found, lists_ordered));
            }
            out + ">"
        }
    }
}

fn float(number: f64) -> String {
    // A zero has no sign: the two are equal.
    if number.is_nan() { "NaN".to_owned() } else { format!("{:?}", number + 0.0) }
}

fn list(mut items: Vec<String>, ordered: bool) -> String {
    if !ordered {
        items.sort();
    }
    format!("[{}]", items.join(", "))
}

fn map(entries: &[(String, QueryValue)], lists_ordered: bool) -> String {
    let spelled =
        |(key, value): &(String, QueryValue)| (key.clone(), spelled(value, lists_ordered));
    map_of(entries.iter().map(spelled).collect())
}

fn map_of(mut entries: Vec<(String, String)>) -> String {
    entries.sort();
    let entries: Vec<String> = entries.iter().map(|(k, v)| format!("{k}: {v}")).collect();
    format!("{{{}}}", entries.join(", "))
}

fn node(node: &QueryNode, lists_ordered: bool) -> String {
    let label = if node.type_name == NO_TYPE { "" } else { &format!(":{}", node.type_name) };
    format!("({label} {})", map(&node.properties, lists_ordered))
}

fn edge(edge: &QueryEdge, lists_ordered: bool) -> String {
    format!("[:{} {}]", edge.type_name, map(&edge.properties, lists_ordered))
}

/// The spelling of a cell of a table.
pub(crate) fn read(cell: &str, lists_ordered: bool) -> String {
    let mut reader = Reader { rest: cell.trim(), lists_ordered };
    let value = reader.value();
    assert!(reader.rest.is_empty(), "`{}` is left of `{cell}`", reader.rest);
    value
}

struct Reader<'t> {
    rest: &'t str,
    lists_ordered: bool,
}

impl Reader<'_> {
    fn eat(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        let found = rest.strip_prefix(token);
        self.rest = found.unwrap_or(rest);
        found.is_some()
    }

    fn expect(&mut self, token: &str) {
        assert!(self.eat(token), "`{token}` expected at `{}`", self.rest);
    }

    fn word(&mut self) -> String {
        let rest = self.rest.trim_start();
        let stop = |c: char| !(c.is_alphanumeric() || "_.+-".contains(c));
        let end = rest.find(stop).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        self.rest = after;
        word.to_owned()
    }

    fn value(&mut self) -> String {
        if self.eat("<") {
            return self.path();
        }
        if self.eat("(") {
            return self.node();
        }
        if self.eat("[") {
            return if self.eat(":") { self.edge() } else { self.list() };
        }
        if self.eat("{") {
            return self.map();
        }
        if self.eat("'") {
            return self.text();
        }
        let word = self.word();
        match word.parse::<f64>() {
            Ok(number) if word.contains(['.', 'e', 'E']) || number.is_nan() => float(number),
            _ => word,
        }
    }

    fn text(&mut self) -> String {
        let mut out = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\'' => {
                    self.rest = &self.rest[at + 1..];
                    return format!("{out:?}");
                }
                '\\' => out.extend(chars.next().map(|(_, c)| match c {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                })),
                c => out.push(c),
            }
        }
        panic!("a text without its end: {out}")
    }

    fn list(&mut self) -> String {
        let mut items = Vec::new();
        while !self.eat("]") {
            items.push(self.value());
            self.eat(",");
        }
        list(items, self.lists_ordered)
    }

    /// What stands in braces, if anything.
    fn properties(&mut self) -> String {
        if self.eat("{") { self.map() } else { "{}".to_owned() }
    }

    fn map(&mut self) -> String {
        let mut entries = Vec::new();
        while !self.eat("}") {
            let key = self.word();
            self.expect(":");
            entries.push((key, self.value()));
            self.eat(",");
        }
        map_of(entries)
    }

    fn node(&mut self) -> String {
        let mut labels = String::new();
        while self.eat(":") {
            labels = format!("{labels}:{}", self.word());
        }
        let properties = self.properties();
        self.expect(")");
        format!("({labels} {properties})")
    }

    fn edge(&mut self) -> String {
        let type_name = self.word();
        let properties = self.properties();
        self.expect("]");
        format!("[:{type_name} {properties}]")
    }

    fn path(&mut self) -> String {
        self.expect("(");
        let mut out = format!("<{}", self.node());
        while !self.eat(">") {
            let backward = self.eat("<-");
            if !backward {
                self.expect("-");
            }
            self.expect("[");
            self.expect(":");
            let edge = self.edge();
            self.expect(if backward { "-" } else { "->" });
            self.expect("(");
            let node = self.node();
            let (left, right) = if backward { ("<-", "-") } else { ("-", "->") };
            out = format!("{out}{left}{edge}{right}{node}");
        }
        out + ">"
    }
}
