//! What can be read as a pattern, and what is said about everything else.

use crate::pattern::{Kind, Pattern};

/// Reads a pattern and shows its canonical form.
fn canonical(text: &str) -> String {
    let pattern = Pattern::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let again = Pattern::parse(pattern.canonical()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again, pattern, "what is printed reads as the same pattern");
    pattern.canonical().to_owned()
}

fn check(text: &str, expected: &str) {
    assert_eq!(canonical(text), expected);
}

/// Reads what is no pattern and compares the whole message.
fn check_error(text: &str, expected: &str) {
    let error = Pattern::parse(text).expect_err("this is no pattern");
    let expected: Vec<&str> = expected.trim_matches('\n').lines().collect();
    let shown = error.to_string();
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "\n{shown}\n");
}

#[test]
fn chains_have_one_canonical_form() {
    check("MATCH (a:Task)", "(a:Task)");
    check("match(a : Task|Bug)-->()", "(a:Bug|Task)-->()");
    check("(a:B|:A)<-[e:T {x:1}]-(b)--(c)", "(a:A|B)<-[e:T {x: 1}]-(b)--(c)");
    check("(a)<-->(b), (b)-[*]->(c)", "(a)--(b), (b)-[*]->(c)");
    check("(a)-[p:T*..3]->()-[q*2]-()-[*0..]->()", "(a)-[p:T*1..3]->()-[q*2..2]-()-[*0..]->()");
    check(r"({`odd name`: 'it\'s'})", r"({`odd name`: 'it\'s'})");
    check("(`in`:`über alles`)", "(`in`:`über alles`)");
    check("(größe:Straße {länge: 1.50})", "(größe:Straße {länge: 1.5})");
    check("(a) // to the end\n /* and\nwithin */ WHERE a.x", "(a) WHERE a.x");
}

#[test]
fn operators_bind_as_in_open_cypher() {
    let check = |text: &str, expected: &str| {
        check(&format!("(a) WHERE {text}"), &format!("(a) WHERE {expected}"));
    };
    check("a.x = 1 or a.y = 2 and not a.z", "a.x = 1 OR a.y = 2 AND NOT a.z");
    check("(a.x = 1 or a.y = 2) and a.z", "(a.x = 1 OR a.y = 2) AND a.z");
    check("not (a.x xor a.y)", "NOT (a.x XOR a.y)");
    check("a.x + 2 * a.y ^ 2 - -3 < 7", "a.x + 2 * a.y ^ 2 - -3 < 7");
    check("(a.x + 2) * a.y", "(a.x + 2) * a.y");
    check("1 < a.x <= 2 <> false", "1 < a.x <= 2 <> FALSE");
    check("a.x<-1", "a.x < -1");
    check("a.x - (a.y - 1) > 0", "a.x - (a.y - 1) > 0");
    check("a.x is null = true", "a.x IS NULL = TRUE");
    check("a.x + 'b' in ['ab', null]", "a.x + 'b' IN ['ab', NULL]");
    check("not a.name starts with 'x'", "NOT a.name STARTS WITH 'x'");
    check("a.name =~ '(?i)x.*' and a:Task|Bug", "a.name =~ '(?i)x.*' AND a:Bug|Task");
    check("a['odd name'] = {k: [1, 2.0]}.k[0]", "a['odd name'] = {k: [1, 2.0]}.k[0]");
    check(
        "-9223372036854775808 < 18446744073709551615",
        "-9223372036854775808 < 18446744073709551615",
    );
    check("0xff = 0o377 and 1e3 > .5", "255 = 255 AND 1000.0 > 0.5");
    check("exists { match (a)-->(b) where b.x = $m } ", "EXISTS { (a)-->(b) WHERE b.x = $m }");
    check("not (a)-[:T]->()", "NOT EXISTS { (a)-[:T]->() }");
    check("(a.x) - (a.y) > 0", "a.x - a.y > 0");
    check("event.payload.`x y`.z = event.kind", "event.payload.`x y`.z = event.kind");
    check("coalesce(a.x, size('ab')) = 2", "coalesce(a.x, size('ab')) = 2");
    check("'\\u00e9\\n\\t' = \"é\\n\\t\"", "'é\\n\\t' = 'é\\n\\t'");
}

#[test]
fn equality_is_by_canonical_form() {
    let parse = |text| Pattern::parse(text).expect("it is a pattern");
    assert_eq!(parse("match (a:X|Y) where a.p=1"), parse("(a:Y|X) WHERE a.p = 1"));
    assert_ne!(parse("(a:X)-->(b)"), parse("(b)<--(a:X)"));
    assert_eq!(parse("MATCH  (a)").text(), "MATCH  (a)");
}

#[test]
fn variables_are_listed_in_pattern_order() {
    let pattern = Pattern::parse("(a)-[:T]->(), (b)<-[p*1..2]-(a) WHERE EXISTS { (b)-->(c) }");
    let variables = pattern.expect("it is a pattern").variables();
    let shown: Vec<_> = variables.iter().map(|v| (v.name.as_deref(), v.kind)).collect();
    let expected = [
        (Some("a"), Kind::Node),
        (None, Kind::Edge),
        (None, Kind::Node),
        (Some("b"), Kind::Node),
        (Some("p"), Kind::Path),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn parameters_types_and_event_are_reported() {
    let pattern = Pattern::parse(
        "(a:A|B {x: $x})-[:T]->() WHERE a.y < $y AND NOT EXISTS { (a)<-[:U]-(:C {z: $x}) }",
    );
    let pattern = pattern.expect("it is a pattern");
    assert_eq!(pattern.parameters().into_iter().collect::<Vec<_>>(), ["x", "y"]);
    let types = pattern.types();
    assert_eq!(types.nodes.into_iter().collect::<Vec<_>>(), ["A", "B", "C"]);
    assert_eq!(types.edges.into_iter().collect::<Vec<_>>(), ["T", "U"]);
    assert!(types.any_node && !types.any_edge);
    assert!(!pattern.uses_event());
    assert!(Pattern::parse("(a {x: event.payload.x})").expect("it is a pattern").uses_event());
}

#[test]
fn a_missing_bracket_is_shown_with_a_caret() {
    check_error(
        "(t:Task {status: 'open'}\nWHERE t.x = 1",
        r"
pattern, line 2, column 1: expected `)` to close the node, found `WHERE`
  WHERE t.x = 1
  ^^^^^
",
    );
    check_error(
        "(a)-[:T->(b)",
        r"
pattern, line 1, column 8: expected `:TYPE`, `*1..4`, `{property: value}` or `]`, found `-`
  (a)-[:T->(b)
         ^
",
    );
}

#[test]
fn a_misspelt_word_is_corrected() {
    check_error(
        "(a:Task) WHRE a.x = 1",
        r"
pattern, line 1, column 10: expected an edge, `,`, `WHERE` or the end, found `WHRE`
  (a:Task) WHRE a.x = 1
           ^^^^
  did you mean `WHERE`?
",
    );
    check_error(
        "(task:Task) WHERE tsak.x = 1",
        r"
pattern, line 1, column 19: nothing in the pattern is named `tsak`
  (task:Task) WHERE tsak.x = 1
                    ^^^^
  did you mean `task`?
",
    );
    check_error(
        "(a) WHERE a.name CONTIANS 'x'",
        r"
pattern, line 1, column 18: expected an operator such as `AND`, or the end, found `CONTIANS`
  (a) WHERE a.name CONTIANS 'x'
                   ^^^^^^^^
  did you mean `CONTAINS`?
",
    );
    check_error(
        "(a) WHERE event.paylod.x = 1",
        r"
pattern, line 1, column 17: an event has no `paylod`
  (a) WHERE event.paylod.x = 1
                  ^^^^^^
  did you mean `payload`?
",
    );
    check_error(
        "(a) WHERE typ(a) = 'x'",
        r"
pattern, line 1, column 11: there is no function `typ`
  (a) WHERE typ(a) = 'x'
            ^^^
  did you mean `type`?
",
    );
}

#[test]
fn habits_of_other_languages_are_answered() {
    check_error(
        "(a) WHERE a.x == 1",
        r#"
pattern, line 1, column 15: `==` is not used in patterns
  (a) WHERE a.x == 1
                ^^
  write `=` for "equal"
"#,
    );
    check_error(
        "(a)->(b)",
        r"
pattern, line 1, column 5: expected `[` or a second `-`, found `>`
  (a)->(b)
      ^
  an edge is written `-->`, `<--` or `-[:TYPE]->`
",
    );
    check_error(
        "(a:A:B)",
        r#"
pattern, line 1, column 5: an element has one type
  (a:A:B)
      ^
  write `:A|B` for "either A or B"
"#,
    );
    check_error(
        "(a Task)",
        r"
pattern, line 1, column 4: expected `:Type`, `{property: value}` or `)`, found `Task`
  (a Task)
     ^^^^
  a type is written with a colon: `:Task`
",
    );
    check_error(
        "(a) WHERE a.x NOT IN [1]",
        r"
pattern, line 1, column 15: `NOT` stands before the whole test
  (a) WHERE a.x NOT IN [1]
                ^^^
  write NOT a.status IN [...]
",
    );
    check_error(
        "(a) WHERE exists(a.x)",
        r"
pattern, line 1, column 17: expected `{` after `EXISTS`, found `(`
  (a) WHERE exists(a.x)
                  ^
  write EXISTS { (a)-->(b) }, or a.name IS NOT NULL
",
    );
}

#[test]
fn clauses_are_refused_with_what_to_do_instead() {
    check_error(
        "MATCH (a:Task) SET a.status = 'done'",
        r#"
pattern, line 1, column 16: SET writes, and a pattern only reads
  MATCH (a:Task) SET a.status = 'done'
                 ^^^
  let a behavior emit an event with the change: set(a, status = "done")
"#,
    );
    check_error(
        "CREATE (a:Task)",
        r#"
pattern, line 1, column 1: CREATE writes, and a pattern only reads
  CREATE (a:Task)
  ^^^^^^
  let a behavior emit an event with the change: create("Task") or link(a, "OWNS", b)
"#,
    );
    check_error(
        "MATCH (a) WHERE a.x = 1 RETURN a",
        r"
pattern, line 1, column 25: RETURN is not part of a pattern
  MATCH (a) WHERE a.x = 1 RETURN a
                          ^^^^^^
  leave it out: a match binds every element, named or not
",
    );
    check_error(
        "MATCH (a) MATCH (b)",
        r"
pattern, line 1, column 11: a pattern has one MATCH
  MATCH (a) MATCH (b)
            ^^^^^
  separate chains by commas: (a)-->(b), (b)-->(c)
",
    );
}

#[test]
fn names_are_used_for_one_thing() {
    check_error(
        "(a)-[a]->(b)",
        r"
pattern, line 1, column 6: `a` is a node and cannot be an edge here
  (a)-[a]->(b)
       ^
  choose another name
",
    );
    check_error(
        "(a)-[e]->(b)-[e]->(c)",
        r"
pattern, line 1, column 15: `e` already names another edge
  (a)-[e]->(b)-[e]->(c)
                ^
  give each edge of a pattern its own name
",
    );
    check_error(
        "(a:A)-->(b), (a:B)",
        r"
pattern, line 1, column 17: this element was given another type before, and it has only one
  (a:A)-->(b), (a:B)
                  ^
",
    );
    check_error(
        "(event:Task)",
        r"
pattern, line 1, column 2: `event` cannot be a variable as it stands
  (event:Task)
   ^^^^^
  choose another name, or write it in back quotes: `event`
",
    );
    check_error(
        "(a)-[p*1..3]->(b) WHERE p.x = 1",
        r"
pattern, line 1, column 25: a path has edges, but no properties
  (a)-[p*1..3]->(b) WHERE p.x = 1
                          ^
  write -[:T*1..4 {name: value}]-> to ask each edge
",
    );
}

#[test]
fn texts_and_numbers_must_end_well() {
    check_error(
        "(a {x: 'open})",
        r"
pattern, line 1, column 8: a text without its end
  (a {x: 'open})
         ^
  close it with '
",
    );
    check_error(
        "(a) WHERE a.x = 12abc",
        r"
pattern, line 1, column 17: a number cannot go on with letters
  (a) WHERE a.x = 12abc
                  ^^^^^
  put a space after the number, or write the name in back quotes
",
    );
    check_error(
        "(a) WHERE a.x =~ '(x'",
        r"
pattern, line 1, column 18: this is no regular expression: unclosed group
  (a) WHERE a.x =~ '(x'
                   ^^^^
",
    );
    check_error(
        "(größe) WHERE größe.x = ‘x’",
        r"
pattern, line 1, column 25: `‘` is not used in patterns
  (größe) WHERE größe.x = ‘x’
                          ^
  write the straight quote `'`
",
    );
    check_error(
        "",
        "pattern, line 1, column 1: expected a node such as `(a:Task)`, but the pattern ends here\n  \n  ^",
    );
}

/// A reader of the tree recurses as deep as the tree is, so its depth is bounded.
#[test]
fn depth_and_size_are_bounded() {
    let deep = format!("(a) WHERE {}a.x{}", "(".repeat(5000), ")".repeat(5000));
    assert!(Pattern::parse(&deep).is_err());
    let long = format!("(a) WHERE a.x = 1{}", " + 1".repeat(5000));
    assert!(Pattern::parse(&long).is_err());
    let nots = format!("(a) WHERE {}a.x", "NOT ".repeat(5000));
    assert!(Pattern::parse(&nots).is_err());
    let chain = format!("(a){}", "-->()".repeat(40));
    assert!(Pattern::parse(&chain).is_err());
    let fine = format!("(a) WHERE {}", vec!["a.x = 1"; 200].join(" OR "));
    assert!(Pattern::parse(&fine).is_ok());
}

/// Every text is either a pattern or an error that can be shown: nothing panics.
#[test]
fn no_mangled_text_panics() {
    let sources = [
        "MATCH (a:Task {x: 'it', y: $m})-[e:T|U*1..3]->(b), (b)<--(c) WHERE a.x <> 1.5e3 AND NOT",
        "EXISTS { (a)-[:T]-(:`x y` {k: [1, {z: null}]}) WHERE event.payload.x =~ 'a|b' } // é\u{301}",
    ];
    let text = sources.join(" ");
    let mut state = 7u64;
    for _ in 0..20_000 {
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (from, to) =
                ((state >> 20) as usize % chars.len(), (state >> 40) as usize % chars.len());
            match state >> 62 {
                0 => chars.truncate(from.max(1)),
                1 => chars.swap(from, to),
                2 => chars.insert(from, chars[to]),
                _ => {
                    if chars.len() > 1 {
                        chars.remove(from);
                    }
                }
            }
        }
        let mangled: String = chars.into_iter().collect();
        match Pattern::parse(&mangled) {
            Ok(pattern) => assert_eq!(canonical(&mangled), pattern.canonical()),
            Err(error) => assert!(error.to_string().contains('^')),
        }
    }
}
