//! What is promised of every text that is read as a pattern, and texts that try to break it.
//!
//! The tests of the projection run this on the corpus and some mutants; the program beside it for as
//! long as it is told.

use std::sync::LazyLock;

use log::{Change, Draft, Event, EventId, Offset};
use projection::{Env, Graph, Pattern, PatternError, Query, Steps};
use serde_json::{Map, json};

/// The texts to begin with: a JSON string a line.
pub(crate) const CORPUS: &str = include_str!("../corpus/patterns.txt");

/// The texts of a corpus.
pub(crate) fn texts(corpus: &str) -> Vec<String> {
    let lines = corpus.lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).expect("a JSON string")).collect()
}

/// Reads a text as a pattern and as a query. Gives words for the ways it goes; texts of the same
/// words are much alike.
///
/// # Errors
/// A promise is broken; the text says which.
pub(crate) fn check(text: &str) -> Result<Vec<String>, String> {
    let mut ways = match Pattern::parse(text) {
        Ok(pattern) => check_pattern(&pattern),
        Err(error) => check_error(text, &error),
    }?;
    ways.extend(match Query::parse(text) {
        Ok(query) => check_query(&query),
        Err(error) => check_error(text, &error),
    }?);
    Ok(ways)
}

/// How many elements a query may look at.
const STEPS: u64 = 2_000;

/// A query gives as many values a row as it has columns, the same on every run, or says why not.
fn check_query(query: &Query) -> Result<Vec<String>, String> {
    let run = || query.rows(&WORLD, &Env::EMPTY, &Steps::up_to(STEPS));
    let (rows, again) = (run(), run());
    if rows != again {
        return Err(format!("two runs of one query differ: {rows:?}\n{again:?}"));
    }
    let rows = match rows {
        Ok(rows) => rows,
        Err(error) if error.to_string().is_empty() => return Err("an error without a word".into()),
        Err(error) => return Ok(vec![format!("stopped {}", letters(&error.to_string()))]),
    };
    if rows.iter().any(|row| row.len() != query.columns().len()) {
        return Err(format!("a row of other columns than {:?}", query.columns()));
    }
    let clauses = CLAUSES.iter().filter(|clause| query.text().contains(**clause));
    Ok(clauses.map(|clause| format!("query with {clause}, {} rows", rows.len().min(3))).collect())
}

/// A small world for queries to look at.
static WORLD: LazyLock<Graph> = LazyLock::new(|| {
    let properties = |value: serde_json::Value| -> Map<String, serde_json::Value> {
        value.as_object().cloned().unwrap_or_default()
    };
    let mut draft = Draft::new(EventId::ZERO, "world.made", "user:fuzz");
    for (id, kind, value) in [
        ("a1", "A", json!({"p": 1, "name": "Ann", "list": [1, 2.5, null, "x"]})),
        ("a2", "A", json!({"p": 1.0, "name": "漢", "map": {"p": true}})),
        ("b1", "B", json!({"p": -9_223_372_036_854_775_808i64, "x": 1e308})),
        ("b2", "B", json!({})),
    ] {
        let (id, type_name) = (Some(id.into()), kind.into());
        draft.changes.push(Change::Create { id, type_name, properties: properties(value) });
    }
    for (from, to) in [("a1", "b1"), ("a1", "b1"), ("b1", "a2"), ("a2", "a2"), ("a1", "b2")] {
        draft.changes.push(Change::Link {
            id: None,
            type_name: "R".into(),
            from: from.into(),
            to: to.into(),
            properties: properties(json!({"p": 2})),
        });
    }
    let (event, _) = Event::encode(&draft, Offset::ZERO).expect("a small event");
    let mut graph = Graph::new();
    graph.apply(&event).expect("nothing is in its way");
    graph
});

/// What is printed is read again as the same.
fn check_pattern(pattern: &Pattern) -> Result<Vec<String>, String> {
    let printed = pattern.canonical();
    let again = Pattern::parse(printed)
        .map_err(|error| format!("what is printed is no pattern: {printed}\n{error}"))?;
    if again.canonical() != printed {
        return Err(format!("printed {printed}\nread again {}", again.canonical()));
    }
    if again.variables() != pattern.variables() || again.interest() != pattern.interest() {
        return Err(format!("read again it binds or watches something else: {printed}"));
    }
    let signs = SIGNS.iter().filter(|sign| printed.contains(**sign));
    Ok(signs.map(|sign| format!("pattern with {sign}")).collect())
}

/// What the canonical form of a pattern may show.
const SIGNS: [&str; 44] = [
    "()",
    "]->",
    "<-[",
    "]-(",
    "), (",
    "*",
    "*0",
    "..",
    "|",
    " {",
    "WHERE",
    "AND",
    "OR",
    "XOR",
    "NOT",
    "EXISTS",
    "IN",
    "IS NULL",
    "IS NOT NULL",
    "STARTS WITH",
    "ENDS WITH",
    "CONTAINS",
    "=~",
    "<>",
    "<=",
    ">=",
    " + ",
    " - ",
    " / ",
    " % ",
    " ^ ",
    "[",
    "$",
    "event.",
    "id(",
    "size(",
    "coalesce(",
    "type(",
    "`",
    "\\",
    "1e",
    "-9",
    "null",
    "\n",
];

/// An error points into the text.
fn check_error(text: &str, error: &PatternError) -> Result<Vec<String>, String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let line = error.line.checked_sub(1).and_then(|line| lines.get(line));
    let Some(line) = line else { return Err(format!("line {} is not there", error.line)) };
    if line.trim_end_matches('\r') != error.source_line {
        return Err(format!("line {} is another: {:?}", error.line, error.source_line));
    }
    let column = error.column.checked_sub(1).filter(|column| *column <= line.chars().count());
    let Some(column) = column else { return Err(format!("column {} is not there", error.column)) };
    let before: usize = lines[..error.line - 1].iter().map(|line| line.len() + 1).sum();
    let start = before + line.chars().take(column).map(char::len_utf8).sum::<usize>();
    if !text[start..].starts_with(&error.token) {
        return Err(format!(
            "{:?} is not the token at {}:{}",
            error.token, error.line, error.column
        ));
    }
    let shown = error.to_string();
    if error.message.is_empty() || !shown.contains('^') || shown.len() > 4 * text.len() + 2_000 {
        return Err(format!("the message is no help: {shown}"));
    }
    Ok(vec![format!("error {}", letters(&error.message))])
}

/// The words of a message up to what it quotes.
fn letters(message: &str) -> String {
    let words = message.chars().take_while(|c| !"`'\"".contains(*c));
    words.filter(|c| c.is_ascii_alphabetic() || *c == ' ').take(60).collect()
}

/// The clauses and functions of queries.
const CLAUSES: [&str; 24] = [
    "OPTIONAL",
    "WITH",
    "UNWIND",
    "DISTINCT",
    "ORDER BY",
    "DESC",
    "SKIP",
    "LIMIT",
    "count(",
    "collect(",
    "min(",
    "max(",
    "sum(",
    "avg(",
    "CASE",
    "range(",
    "[x IN",
    "..",
    "split(",
    "substring(",
    "keys(",
    "labels(",
    "properties(",
    "toInteger(",
];

/// Numbers that only look random.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        ((mixed >> 32) % limit as u64) as usize
    }
}

/// Pieces that mean something to the parser, and some that should not.
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "-",
    "->",
    "<-",
    "--",
    ":",
    "|",
    ",",
    ".",
    "..",
    "*",
    "*1..3",
    "*0..",
    "*..",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "=~",
    "+",
    "/",
    "%",
    "^",
    "$",
    "$m",
    "'",
    "\"",
    "`",
    "``",
    "\\",
    "\\u0041",
    "//",
    "/*",
    "*/",
    ";",
    "\n",
    "\r\n",
    "\t",
    "\u{a0}",
    "\u{200b}",
    "é",
    "漢",
    "🐦",
    "\u{301}",
    "a",
    "b",
    "v0",
    "A",
    "R",
    "p",
    "0",
    "1",
    "-1",
    "1.5e3",
    "1e400",
    "0xff",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "'x'",
    "\"y\"",
    " ",
    "MATCH ",
    " WHERE ",
    " AND ",
    " OR ",
    " XOR ",
    " NOT ",
    " IN ",
    " IS NULL",
    " IS NOT NULL",
    " STARTS WITH ",
    " ENDS WITH ",
    " CONTAINS ",
    "EXISTS { ",
    "NOT EXISTS { (a)-[:R]->(b) }",
    "TRUE",
    "null",
    "event.payload.x",
    "event.kind",
    "id(",
    "type(",
    "size(",
    "coalesce(",
    "a.p",
    "(a:A {p: 1})",
    "-[:R]->",
    " RETURN ",
    "CREATE ",
    " WITH ",
    " UNWIND ",
    " AS x",
    " AS a",
    " ORDER BY ",
    " DESC",
    " SKIP 1",
    " LIMIT 2",
    " OPTIONAL MATCH ",
    "DISTINCT ",
    "count(*)",
    "collect(",
    "min(",
    "sum(",
    "avg(",
    "range(",
    "range(0, 1000000000)",
    "split(",
    "substring(",
    "[x IN ",
    "CASE WHEN ",
    " THEN ",
    " ELSE ",
    " END",
    "x",
    "MATCH (a:A)-[r:R]->(b) RETURN a.p, b.name",
];

/// A text made from those of a corpus, differently for each number.
pub(crate) fn mutant(corpus: &[String], random: &mut Random) -> String {
    let mut text = corpus[random.below(corpus.len())].clone();
    for _ in 0..1 + random.below(5) {
        let at = place(&text, random);
        match random.below(9) {
            0..=2 => text.insert_str(at, PIECES[random.below(PIECES.len())]),
            3 | 4 => {
                let end = (at + 1 + random.below(12)).min(text.len());
                let end = (end..=text.len()).find(|end| text.is_char_boundary(*end));
                text.replace_range(at..end.unwrap_or(text.len()), "");
            }
            5 => {
                let other = &corpus[random.below(corpus.len())];
                let (from, to) = (place(other, random), place(other, random));
                text.insert_str(at, &other[from.min(to)..from.max(to)]);
            }
            6 => {
                let to = place(&text, random);
                let part = text[at.min(to)..at.max(to)].to_owned();
                text.insert_str(at, &part);
            }
            7 => {
                let c = char::from_u32(random.below(0x3000) as u32).unwrap_or('\u{fffd}');
                text.insert(at, c);
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                text.insert_str(at, &piece.repeat(1 << random.below(9)));
            }
        }
        if text.len() > 1 << 17 {
            break;
        }
    }
    text
}

/// A place between two characters.
fn place(text: &str, random: &mut Random) -> usize {
    let at = random.below(text.len() + 1);
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Texts that nest deeper than any stack is.
pub(crate) fn deep() -> Vec<String> {
    let mut texts = Vec::new();
    for count in [98, 490, 10_000, 100_000] {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("{a: ", "}"),
            ("NOT ", ""),
            ("-", ""),
            ("+", ""),
            ("size(", ")"),
        ] {
            texts.push(format!("(a) WHERE {}1{} = 1", open.repeat(count), close.repeat(count)));
            texts.push(format!("(a) WHERE {}", open.repeat(count)));
        }
        texts.push(format!("(a) WHERE {}", "EXISTS { (a) WHERE ".repeat(count)));
        texts.push(format!(
            "(a) WHERE {}{}",
            "EXISTS { (a) WHERE ".repeat(count),
            " }".repeat(count)
        ));
        texts.push(format!("(a) WHERE a{} = 1", ".p".repeat(count)));
        texts.push(format!("(a) WHERE a{} = 1", "[0]".repeat(count)));
        texts.push(format!("(a) WHERE 1{} = 1", " ^ 1".repeat(count)));
        texts.push(format!("(a) WHERE 1{}", " = 1".repeat(count)));
        texts.push(format!("(a) WHERE true{}", " AND true".repeat(count)));
        texts.push(format!("(a) WHERE true{}", " XOR true".repeat(count)));
        texts.push(format!("(a){}", "-->()".repeat(count)));
        texts.push(format!("RETURN {}1{}", "[".repeat(count), "]".repeat(count)));
        texts.push(format!("RETURN 1{}", ", 1".repeat(count)));
        texts.push(format!("RETURN 1{}", " + 1".repeat(count)));
        texts.push(format!(
            "RETURN {}1{}",
            "CASE WHEN ".repeat(count),
            " THEN 1 END".repeat(count)
        ));
        texts.push(format!("WITH 1 AS x{} RETURN x", " WITH x".repeat(count)));
        texts.push(format!("UNWIND [1, 2] AS x{} RETURN x", " UNWIND [1, 2] AS x".repeat(count)));
        texts.push("(".repeat(count));
        texts.push("é".repeat(count));
        texts.push("/*".repeat(count));
        texts.push("`".repeat(count));
    }
    texts
}
