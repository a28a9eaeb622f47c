//! Which kinds of event a behavior hears.

use std::fmt;

use regex::Regex;

/// A pattern over event kinds: `trip.opened` exactly, `trip.*` as a glob, `~trip\.(opened|closed)`
/// as a regular expression. Each must fit the whole kind.
#[derive(Clone, Debug)]
pub struct KindPattern {
    text: String,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Exact,
    Prefix,
    Regex(Box<Regex>),
}

impl KindPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// It is empty, or its regular expression cannot be compiled: says why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = if text.trim().is_empty() {
            return Err("expected an event kind, such as `trip.opened` or `trip.*`".to_owned());
        } else if let Some(expression) = text.strip_prefix('~') {
            Form::Regex(Box::new(whole(expression)?))
        } else if !text.contains(['*', '?']) {
            Form::Exact
        } else if text.find(['*', '?']) == Some(text.len() - 1) && text.ends_with('*') {
            Form::Prefix
        } else {
            let translate = |c: char| match c {
                '*' => ".*".to_owned(),
                '?' => ".".to_owned(),
                other => regex::escape(other.encode_utf8(&mut [0; 4])),
            };
            Form::Regex(Box::new(whole(&text.chars().map(translate).collect::<String>())?))
        };
        Ok(KindPattern { text: text.to_owned(), form })
    }

    /// Whether the pattern fits `kind`.
    #[must_use]
    pub fn fits(&self, kind: &str) -> bool {
        match &self.form {
            Form::Exact => self.text == kind,
            Form::Prefix => kind.starts_with(&self.text[..self.text.len() - 1]),
            Form::Regex(regex) => regex.is_match(kind),
        }
    }

    /// The one kind that it fits, if it is exact: a key for an index of listeners.
    #[must_use]
    pub fn exact(&self) -> Option<&str> {
        matches!(self.form, Form::Exact).then_some(self.text.as_str())
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Compiles an expression that must fit the whole kind.
fn whole(expression: &str) -> Result<Regex, String> {
    // Compiled alone first, so that `a)(b` is an error and messages show what was written.
    Regex::new(expression).map_err(|error| format!("not a regular expression: {error}"))?;
    let anchored = Regex::new(&format!("^(?s:{expression})$"));
    anchored.map_err(|error| format!("not a regular expression: {error}"))
}

impl PartialEq for KindPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for KindPattern {}

impl fmt::Display for KindPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, kind: &str) -> bool {
        KindPattern::parse(pattern).expect("a pattern").fits(kind)
    }

    #[test]
    fn exact_glob_and_expression_fit_the_whole_kind() {
        assert!(check("trip.opened", "trip.opened"));
        assert!(!check("trip.opened", "trip.opened.late"));
        assert!(check("trip.*", "trip.opened.late"));
        assert!(!check("trip.*", "strip.opened"));
        assert!(check("*.opened", "trip.opened"));
        assert!(!check("*.opened", "trip.opened.late"));
        assert!(check("t?ip.*d", "trip.opened"));
        assert!(!check("t?ip.x", "trip_x"), "a dot is a dot in a glob");
        assert!(check("*", "anything"));
        assert!(check(r"~trip\.(opened|closed)", "trip.closed"));
        assert!(!check(r"~trip\.(opened|closed)", "trip.closed.late"));
        assert!(!check("~a|b", "xb"), "alternatives do not escape the anchors");
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_reason() {
        let error = KindPattern::parse("~trip(").expect_err("an open group");
        assert!(error.starts_with("not a regular expression: "), "{error}");
        assert!(error.contains("unclosed group"), "{error}");
        assert!(KindPattern::parse("~a)(b").is_err());
        assert_eq!(
            KindPattern::parse(" ").expect_err("nothing"),
            "expected an event kind, such as `trip.opened` or `trip.*`"
        );
    }

    #[test]
    fn only_an_exact_pattern_is_a_key() {
        let exact = |text| KindPattern::parse(text).expect("a pattern").exact().map(str::to_owned);
        assert_eq!(exact("a.b"), Some("a.b".to_owned()));
        assert_eq!(exact("a.*"), None);
        assert_eq!(exact("~a"), None);
    }
}
