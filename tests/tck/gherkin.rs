//! A reader of feature files, as far as the scenarios go: backgrounds, outlines, tables, texts.
//!
//! Libraries for this refuse some of the files (a comment before a background).

/// One scenario, or one outline with its examples.
#[derive(Debug, Default)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// Its steps, those of the background first.
    pub(crate) steps: Vec<Step>,
    /// The tables of an outline.
    pub(crate) examples: Vec<Vec<Vec<String>>>,
}

/// What stands after `Given`, `When`, `Then`, `And` or `But`, and what hangs on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    pub(crate) what: String,
    pub(crate) text: String,
    pub(crate) table: Vec<Vec<String>>,
}

const STEPS: [&str; 5] = ["Given ", "When ", "Then ", "And ", "But "];

/// Where lines belong.
enum Place {
    Feature,
    Background,
    Scenario,
    Examples,
}

/// The scenarios of a file.
pub(crate) fn scenarios(file: &str) -> Vec<Scenario> {
    let mut background: Vec<Step> = Vec::new();
    let mut found: Vec<Scenario> = Vec::new();
    let mut place = Place::Feature;
    let mut lines = file.lines();
    while let Some(line) = lines.next() {
        let content = line.trim();
        if content.is_empty() || content.starts_with(['#', '@']) {
            continue;
        }
        if content.starts_with("Background:") {
            place = Place::Background;
        } else if let Some(name) = title(content, &["Scenario:", "Scenario Outline:"]) {
            place = Place::Scenario;
            let (name, steps) = (name.to_owned(), background.clone());
            found.push(Scenario { name, steps, examples: Vec::new() });
        } else if title(content, &["Examples:", "Scenarios:"]).is_some() {
            place = Place::Examples;
            last(&mut found).examples.push(Vec::new());
        } else if let Place::Examples = place {
            assert!(content.starts_with('|'), "a row of examples is expected: {content}");
            last(&mut last(&mut found).examples).push(cells(content));
        } else if !matches!(place, Place::Feature) {
            let steps = match place {
                Place::Background => &mut background,
                _ => &mut last(&mut found).steps,
            };
            if content.starts_with('|') {
                last(steps).table.push(cells(content));
            } else if content == "\"\"\"" {
                let indent = line.len() - line.trim_start().len();
                last(steps).text = text(&mut lines, indent);
            } else {
                let what = STEPS.iter().find_map(|word| content.strip_prefix(word));
                let what = what.unwrap_or_else(|| panic!("a step is expected: {content}"));
                steps.push(Step { what: what.to_owned(), ..Step::default() });
            }
        }
    }
    found
}

fn last<T>(list: &mut [T]) -> &mut T {
    list.last_mut().expect("a line belongs to what stands before it")
}

fn title<'t>(line: &'t str, words: &[&str]) -> Option<&'t str> {
    words.iter().find_map(|word| line.strip_prefix(word)).map(str::trim)
}

/// The lines up to the closing quotes, without the indentation of the opening ones.
fn text(lines: &mut std::str::Lines<'_>, indent: usize) -> String {
    let inside = lines.by_ref().take_while(|line| line.trim() != "\"\"\"");
    let inside = inside.map(|line| {
        let blank = line.len() - line.trim_start().len();
        &line[blank.min(indent)..]
    });
    inside.collect::<Vec<_>>().join("\n")
}

/// The cells of a row; a backslash keeps a bar from ending one.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut chars = line.trim().trim_start_matches('|').chars().peekable();
    while let Some(c) = chars.next() {
        let cell = last(&mut cells);
        match (c, chars.peek()) {
            ('|', None) => break,
            ('|', Some(_)) => cells.push(String::new()),
            ('\\', Some('n')) => cell.push('\n'),
            ('\\', Some('|' | '\\')) => cell.extend(chars.peek()),
            (other, _) => {
                cell.push(other);
                continue;
            }
        }
        if c == '\\' {
            chars.next();
        }
    }
    // A line break at the edge belongs to the cell; spaces do not.
    cells.iter().map(|cell| cell.trim_matches([' ', '\t']).to_owned()).collect()
}
