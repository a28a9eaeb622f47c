//! Graph patterns as behaviors write them: checked when the behavior is loaded, kept as text.
//!
//! Everything that this crate asks of the pattern language goes through this file.

/// Checks that a text can be a pattern.
pub(crate) fn check(text: &str) -> Result<(), String> {
    if pattern_variables(text).is_empty() && !text.contains('(') {
        return Err("expected a graph pattern, such as `(t:Trip {status: 'open'})`".to_owned());
    }
    Ok(())
}

/// The variables that a pattern binds, in the order in which they first stand.
#[must_use]
pub fn pattern_variables(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match c {
            '\'' | '"' => rest = after_string(rest, c),
            '(' | '[' => {
                let inside = rest[1..].trim_start();
                let (name, after) = identifier(inside);
                if !name.is_empty() && !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
                rest = after;
            }
            _ => {
                let (word, after) = identifier(rest);
                // What stands after WHERE may name variables, but binds none.
                if word.eq_ignore_ascii_case("WHERE") {
                    break;
                }
                rest = if word.is_empty() { &rest[c.len_utf8()..] } else { after };
            }
        }
    }
    names
}

/// What follows the string literal at the start of `text`.
fn after_string(text: &str, quote: char) -> &str {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return &text[at + 1..];
        }
    }
    ""
}

/// The identifier at the start of `text`, plain or back-quoted, and what follows it.
fn identifier(text: &str) -> (&str, &str) {
    if let Some(quoted) = text.strip_prefix('`') {
        return quoted.split_once('`').unwrap_or((quoted, ""));
    }
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !letter(c)).unwrap_or(text.len());
    let starts = !text.starts_with(|c: char| c.is_ascii_digit());
    if starts { text.split_at(end) } else { ("", &text[end..]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_variables(pattern: &str, expected: &[&str]) {
        assert_eq!(pattern_variables(pattern), expected, "{pattern}");
    }

    #[test]
    fn nodes_and_edges_bind_names_in_order() {
        check_variables("(trip:Trip {status: 'compared'})-[:WITHIN]->(b:Budget)", &["trip", "b"]);
        check_variables("(a)-[e:T*1..4]->(b), (b)<-[:U]-( c :X)", &["a", "e", "b", "c"]);
        check_variables("(:Trip {text: '(no:Node)'})-[e]-(`odd name`)", &["e", "odd name"]);
        check_variables("(a:A)-[:T]->(a) WHERE NOT EXISTS { (x:B)-[:T]->(a) }", &["a"]);
        check_variables("(a:A {n: 1}) where (a.n > 2)", &["a"]);
    }

    #[test]
    fn a_text_without_a_node_is_no_pattern() {
        assert!(check("trip.opened").is_err());
        assert!(check("(:Trip)").is_ok());
    }
}
