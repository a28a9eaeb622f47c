//! A pattern as tokens, each with its place.
//!
//! No word is reserved here: whether `in` is an operator or a property is for the parser to see.
//! Arrows are not tokens either, since `a.x<-1` compares with a negative number: the parser puts
//! them together.

use smol_str::SmolStr;

use crate::pattern::error::PatternError;
use crate::pattern::problem::Problem;
use crate::pattern::syntax::Span;

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A word, which may be a keyword.
    Word(SmolStr),
    /// A name in back quotes, which never is.
    Quoted(SmolStr),
    /// A text in quotes, with its escapes resolved.
    Text(String),
    /// A whole number without sign.
    Int(u64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// `$name`
    Parameter(SmolStr),
    /// An operator or a bracket.
    Symbol(&'static str),
    /// The end of the text.
    End,
}

/// Longest first, so that `<=` is not read as `<`.
const SYMBOLS: [&str; 25] = [
    "<>", "<=", ">=", "=~", "..", "(", ")", "[", "]", "{", "}", ",", ".", ":", "|", "+", "-", "*",
    "/", "%", "^", "=", "<", ">", ";",
];

/// What people write by habit, and what it is called here.
const MISTAKES: [(&str, &str); 13] = [
    ("!=", "write `<>` for \"not equal\""),
    ("==", "write `=` for \"equal\""),
    ("&&", "write `AND`"),
    ("||", "write `OR`, or a single `|` between types"),
    ("!", "write `NOT`"),
    ("‘", "write the straight quote `'`"),
    ("’", "write the straight quote `'`"),
    ("“", "write the straight quote `\"`"),
    ("”", "write the straight quote `\"`"),
    ("→", "write `-->`"),
    ("–", "write `-`"),
    ("—", "write `-`"),
    ("−", "write `-`"),
];

/// Every token of a text; the last one is `End`.
///
/// # Errors
/// A character that begins no token, a text or comment without an end, a bad escape or number.
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token, Span)>, PatternError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut out = Vec::new();
    loop {
        lexer.skip_blank()?;
        let start = lexer.at;
        let token = lexer.token()?;
        let done = token == Token::End;
        out.push((token, Span { start, end: lexer.at }));
        if done {
            return Ok(out);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn error(&self, start: usize, end: usize, message: impl Into<String>) -> PatternError {
        PatternError::at(self.text, Span { start, end }, message)
    }

    /// Passes over white space and comments.
    fn skip_blank(&mut self) -> Result<(), PatternError> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            if blank > 0 {
                self.at += blank;
            } else if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else {
                    let error = self.error(self.at, self.at + 2, "a comment without its end");
                    return Err(error.fix("close it with `*/`"));
                };
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token, PatternError> {
        let Some(first) = self.peek() else { return Ok(Token::End) };
        let second = self.rest().chars().nth(1);
        match first {
            '\'' | '"' => self.quoted_text(first).map(Token::Text),
            '`' => self.quoted_name().map(Token::Quoted),
            '$' => self.parameter(),
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|c| c.is_ascii_digit()) => self.number(),
            c if is_name_start(c) => Ok(Token::Word(self.word())),
            _ => self.symbol(first),
        }
    }

    fn word(&mut self) -> SmolStr {
        let rest = self.rest();
        let end = rest.find(|c: char| !is_name_part(c)).unwrap_or(rest.len());
        let word = SmolStr::new(&rest[..end]);
        self.at += end;
        word
    }

    fn symbol(&mut self, first: char) -> Result<Token, PatternError> {
        let rest = self.rest();
        if let Some((wrong, fix)) = MISTAKES.iter().find(|(wrong, _)| rest.starts_with(wrong)) {
            let message = format!("`{wrong}` is not used in patterns");
            let error = self.error(self.at, self.at + wrong.len(), message).fix(*fix);
            let look_alike = !wrong.is_ascii();
            let problem = Problem::InvalidUnicodeCharacter;
            return Err(if look_alike { error.about(problem) } else { error });
        }
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            self.at += symbol.len();
            return Ok(Token::Symbol(symbol));
        }
        let message = format!("`{first}` begins nothing that a pattern can hold");
        let error = self.error(self.at, self.at + first.len_utf8(), message);
        Err(error.fix("a name with unusual characters is written in back quotes: `like this`"))
    }

    fn parameter(&mut self) -> Result<Token, PatternError> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some('`') => self.quoted_name().map(Token::Parameter),
            Some(c) if is_name_part(c) => Ok(Token::Parameter(self.word())),
            _ => {
                let error =
                    self.error(start, self.at, "expected the name of a parameter after `$`");
                Err(error.fix("write `$margin` for the setting `margin`"))
            }
        }
    }

    /// A name in back quotes; a doubled back quote stands for one.
    fn quoted_name(&mut self) -> Result<SmolStr, PatternError> {
        let start = self.at;
        self.at += 1;
        let mut name = String::new();
        loop {
            let Some(length) = self.rest().find('`') else {
                let error = self.error(start, start + 1, "a quoted name without its end");
                return Err(error.fix("close it with a second back quote"));
            };
            name.push_str(&self.rest()[..length]);
            self.at += length + 1;
            if self.peek() != Some('`') {
                break;
            }
            name.push('`');
            self.at += 1;
        }
        Ok(name.into())
    }

    fn quoted_text(&mut self, quote: char) -> Result<String, PatternError> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let Some(c) = self.peek() else {
                let error = self.error(start, start + 1, "a text without its end");
                return Err(error.fix(format!("close it with {quote}")));
            };
            self.at += c.len_utf8();
            match c {
                '\\' => out.push(self.escape()?),
                c if c == quote => return Ok(out),
                c => out.push(c),
            }
        }
    }

    /// The character that an escape stands for; the backslash is passed.
    fn escape(&mut self) -> Result<char, PatternError> {
        let start = self.at - 1;
        let letter = self.peek();
        self.at += letter.map_or(0, char::len_utf8);
        let plain = match letter {
            Some(c @ ('\\' | '\'' | '"' | '`' | '/')) => Some(c),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('b') => Some('\u{8}'),
            Some('f') => Some('\u{c}'),
            Some('u') => self.code_point(4),
            Some('U') => self.code_point(8),
            _ => None,
        };
        plain.ok_or_else(|| {
            let error = self.error(start, self.at, "an escape that stands for no character");
            let error = error.about(Problem::InvalidUnicodeLiteral);
            error.fix("known are \\\\ \\' \\\" \\n \\r \\t \\b \\f and \\uXXXX; write \\\\ for a backslash")
        })
    }

    fn code_point(&mut self, digits: usize) -> Option<char> {
        let code = u32::from_str_radix(self.rest().get(..digits)?, 16).ok()?;
        let found = char::from_u32(code)?;
        self.at += digits;
        Some(found)
    }

    fn number(&mut self) -> Result<Token, PatternError> {
        let start = self.at;
        let rest = self.rest();
        let radix = match rest.get(..2) {
            Some("0x" | "0X") => 16,
            Some("0o") => 8,
            _ => 10,
        };
        let (length, whole) = if radix == 10 { decimal(rest) } else { (based(rest), true) };
        let digits = &self.text[start..start + length];
        self.at += length;
        let digits_there = radix == 10 || length > 2;
        let parsed = match (radix, whole) {
            (10, true) => digits.parse().ok().map(Token::Int),
            (10, false) => digits.parse().ok().filter(|n: &f64| n.is_finite()).map(Token::Float),
            _ => u64::from_str_radix(&digits[2..], radix).ok().map(Token::Int),
        };
        if self.peek().is_some_and(is_name_part) {
            let tail = self.at + self.word().len();
            let error = self.error(start, tail, "a number cannot go on with letters");
            let error = error.about(Problem::InvalidNumberLiteral);
            return Err(error.fix("put a space after the number, or write the name in back quotes"));
        }
        parsed.ok_or_else(|| {
            let (problem, message) = match (digits_there, whole) {
                (false, _) => (Problem::InvalidNumberLiteral, "a number without digits"),
                (_, true) => (Problem::IntegerOverflow, "a number that is too large"),
                (_, false) => (Problem::FloatingPointOverflow, "a number that is too large"),
            };
            self.error(start, start + length, message).about(problem)
        })
    }
}

/// The length of a decimal number, and whether it is a whole one. `1..4` is two numbers.
fn decimal(text: &str) -> (usize, bool) {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = digits(0);
    let mut whole = true;
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
        whole = false;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = bytes.get(end + 1 + sign..).map_or(0, |_| digits(end + 1 + sign));
        if exponent > 0 {
            end += 1 + sign + exponent;
            whole = false;
        }
    }
    (end, whole)
}

/// The length of a number that begins with `0x` or `0o`.
fn based(text: &str) -> usize {
    2 + text.bytes().skip(2).take_while(u8::is_ascii_hexdigit).count()
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a name can be written without back quotes.
pub(crate) fn is_plain_name(name: &str) -> bool {
    name.starts_with(is_name_start) && name.chars().all(is_name_part)
}
