//! What is wrong with a pattern: where, at which token, what was expected, what to write instead.

use std::fmt;

use crate::pattern::parse::Reading;
use crate::pattern::problem::{ErrorClass, Problem};
use crate::pattern::syntax::Span;

/// A pattern that cannot be read. `Display` prints the message, the line with a caret under the
/// token, and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The line of the token, from 1.
    pub line: usize,
    /// The column of the token in characters, from 1.
    pub column: usize,
    /// The token itself; empty at the end of the text.
    pub token: String,
    /// The line of the pattern that the token is on.
    pub source_line: String,
    /// What is wrong, or what was expected here.
    pub message: String,
    /// What to write instead, where that is known.
    pub fix: Option<String>,
    /// Its class, by the names of openCypher.
    pub class: ErrorClass,
    /// What it is about, by the names of openCypher.
    pub problem: Problem,
    /// What was read: a pattern or a query.
    pub(crate) reading: Reading,
}

impl PatternError {
    /// An error at a place of `text`.
    pub(crate) fn at(text: &str, span: Span, message: impl Into<String>) -> Self {
        let (start, end) = (span.start.min(text.len()), span.end.min(text.len()));
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        PatternError {
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            token: text[start..end.max(start)].to_owned(),
            source_line: text[line_start..line_end].trim_end_matches('\r').to_owned(),
            message: message.into(),
            fix: None,
            class: ErrorClass::Syntax,
            problem: Problem::UnexpectedSyntax,
            reading: Reading::Pattern,
        }
    }

    /// The same, about this.
    pub(crate) fn about(mut self, problem: Problem) -> Self {
        self.problem = problem;
        self
    }

    /// The same, in a text that is read as this.
    pub(crate) fn reading(mut self, reading: Reading) -> Self {
        self.reading = reading;
        self
    }

    /// The same, of another class.
    pub(crate) fn class(mut self, class: ErrorClass) -> Self {
        self.class = class;
        self
    }

    /// The same with what to write instead.
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// The same, suggesting the closest of `known` to what was written, if one is close.
    pub(crate) fn did_you_mean<'a>(self, known: impl IntoIterator<Item = &'a str>) -> Self {
        match closest(&self.token, known) {
            Some(name) => self.fix(format!("did you mean `{name}`?")),
            None => self,
        }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PatternError { line, column, message, .. } = self;
        let reading = self.reading.word();
        writeln!(f, "{reading}, line {line}, column {column}: {message}")?;
        writeln!(f, "  {}", self.source_line)?;
        // Tabs are kept, so that the caret stands under the token whatever their width is.
        let before = self.source_line.chars().take(self.column - 1);
        let indent: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let on_line = self.token.lines().next().unwrap_or("").chars().count();
        write!(f, "  {indent}{}", "^".repeat(on_line.max(1)))?;
        if let Some(fix) = &self.fix {
            write!(f, "\n  {fix}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PatternError {}

/// The name with the least edit distance to `written`, ignoring case, if that is at most a third of
/// its length. Of two equally close ones the first.
pub(crate) fn closest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let written: Vec<char> = written.to_lowercase().chars().take(64).collect();
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        let letters: Vec<char> = name.to_lowercase().chars().collect();
        let distance = edit_distance(&written, &letters);
        let allowed = (letters.len().max(written.len()) / 3).max(1);
        if distance <= allowed
            && distance < letters.len()
            && best.is_none_or(|(least, _)| distance < least)
        {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}
