//! From tokens to the tree: chains of nodes and edges by recursive descent.
//!
//! Keywords are told from names by where they stand, in any case. Depth and number of terms are
//! bounded, so that no text can exhaust the stack of a reader of the tree.

mod clause;
mod expression;

use smol_str::SmolStr;

use crate::pattern::error::PatternError;
use crate::pattern::lexer::{self, Token};
use crate::pattern::syntax::{
    Body, Chain, Direction, EdgePart, Expr, Length, Name, NodePart, Span,
};

/// The longest text of a pattern, in bytes.
const TEXT_MAX: usize = 1 << 16;
/// How deep brackets and operators may nest.
const DEPTH_MAX: usize = 64;
/// How many terms the expressions of a pattern may hold together.
const TERMS_MAX: usize = 1000;

/// Words that mean something inside an expression, so a variable of that name needs back quotes.
pub(crate) const KEYWORDS: [&str; 15] = [
    "AND", "CONTAINS", "ENDS", "EVENT", "EXISTS", "FALSE", "IN", "IS", "NOT", "NULL", "OR",
    "STARTS", "TRUE", "WHERE", "XOR",
];

/// Reads a whole pattern: `[MATCH] chain, chain … [WHERE condition]`.
///
/// # Errors
/// The text is not a pattern; the error points at the first token that does not fit.
pub(crate) fn parse(text: &str) -> Result<Body, PatternError> {
    if text.len() > TEXT_MAX {
        return Err(PatternError::at(text, start(text), "a pattern of more than 64 KiB"));
    }
    let tokens = lexer::tokens(text)?;
    let mut parser = Parser { text, tokens, at: 0, depth: 0, terms: 0 };
    let body = parser.body()?;
    match parser.peek() {
        Token::End => Ok(body),
        _ => Err(parser.after_body(&body)),
    }
}

/// Checks that the canonical form of a text can itself be read.
///
/// # Errors
/// It nests deeper or is longer than a pattern may.
pub(crate) fn readable(text: &str, canonical: &str) -> Result<(), PatternError> {
    parse(canonical).map(drop).map_err(|_| {
        let message = format!(
            "with all its brackets, it is nested deeper than {DEPTH_MAX} levels or longer than 64 KiB"
        );
        PatternError::at(text, start(text), message).fix("write it with fewer operators in a row")
    })
}

/// The first character of a text.
fn start(text: &str) -> Span {
    Span { start: 0, end: text.chars().next().map_or(0, char::len_utf8) }
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(Token, Span)>,
    at: usize,
    depth: usize,
    terms: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + ahead).min(last)].0
    }

    fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    /// The place of the token before this one.
    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].1
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(found) if *found == symbol)
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn is_word(&self, keyword: &str) -> bool {
        self.is_word_at(0, keyword)
    }

    fn is_word_at(&self, ahead: usize, keyword: &str) -> bool {
        matches!(self.peek_at(ahead), Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    fn eat_word(&mut self, keyword: &str) -> bool {
        let found = self.is_word(keyword);
        if found {
            self.advance();
        }
        found
    }

    /// An error at the token that stands here.
    fn error(&self, message: impl Into<String>) -> PatternError {
        PatternError::at(self.text, self.span(), message)
    }

    /// An error that says what should stand here.
    fn expected(&self, what: &str) -> PatternError {
        match self.peek() {
            Token::End => self.error(format!("expected {what}, but the pattern ends here")),
            _ => {
                let span = self.span();
                let found = &self.text[span.start..span.end];
                self.error(format!("expected {what}, found `{found}`"))
            }
        }
    }

    fn expect(&mut self, symbol: &str, why: &str) -> Result<(), PatternError> {
        if self.eat(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}` {why}"))) }
    }

    /// Goes one level deeper for the time of `inner`.
    fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, PatternError>,
    ) -> Result<T, PatternError> {
        if self.depth == DEPTH_MAX {
            return Err(self.error(format!("nested deeper than {DEPTH_MAX} levels")));
        }
        self.depth += 1;
        let out = inner(self);
        self.depth -= 1;
        out
    }

    /// What stands after `MATCH`, and the word itself if it is there.
    fn body(&mut self) -> Result<Body, PatternError> {
        if self.is_word("MATCH") && !matches!(self.peek_at(1), Token::End) {
            self.advance();
        }
        self.refuse_clause()?;
        let mut chains = vec![self.chain()?];
        while self.eat(",") {
            chains.push(self.chain()?);
        }
        let condition = if self.eat_word("WHERE") { Some(self.expression()?) } else { None };
        Ok(Body { chains, condition })
    }

    fn chain(&mut self) -> Result<Chain, PatternError> {
        if matches!(self.peek(), Token::Word(_)) && matches!(self.peek_at(1), Token::Symbol("=")) {
            let error = self.error("a path cannot be named");
            return Err(error.fix("name its nodes and edges instead: (a)-[e:T*1..4]->(b)"));
        }
        let first = self.node()?;
        let mut links = Vec::new();
        while self.is_symbol("-") || self.is_symbol("<") {
            let edge = self.edge()?;
            links.push((edge, self.node()?));
        }
        Ok(Chain { first, links })
    }

    fn node(&mut self) -> Result<NodePart, PatternError> {
        let start = self.span();
        if !self.eat("(") {
            let error = self.expected("a node such as `(a:Task)`");
            return Err(match self.peek() {
                Token::Word(word) => error.fix(format!("a node is written in brackets: ({word})")),
                _ => error,
            });
        }
        let name = self.variable()?;
        let types = self.types()?;
        if self.is_symbol(":") {
            let error = self.error("an element has one type");
            return Err(error.fix("write `:A|B` for \"either A or B\""));
        }
        let properties = self.properties()?;
        if !self.eat(")") {
            return Err(self.node_end(name.is_none() && types.is_empty(), &properties));
        }
        Ok(NodePart { name, types, properties, span: start.to(self.last_span()) })
    }

    /// Why a node does not end where it should.
    fn node_end(&self, empty: bool, properties: &[(Name, Expr)]) -> PatternError {
        if !properties.is_empty() {
            return self.expected("`)` to close the node");
        }
        let error = self.expected(match empty {
            true => "a name, `:Type`, `{property: value}` or `)`",
            false => "`:Type`, `{property: value}` or `)`",
        });
        match self.peek() {
            Token::Word(word) => error.fix(format!("a type is written with a colon: `:{word}`")),
            _ => error,
        }
    }

    fn edge(&mut self) -> Result<EdgePart, PatternError> {
        let start = self.span();
        let left = self.eat("<");
        self.expect("-", "to begin an edge")?;
        let mut part = EdgePart {
            name: None,
            types: Vec::new(),
            properties: Vec::new(),
            direction: Direction::Both,
            length: None,
            span: start,
        };
        if self.eat("[") {
            self.edge_inside(&mut part)?;
        } else if self.is_symbol(">") || (left && self.is_symbol("(")) {
            let error = self.expected("`[` or a second `-`");
            return Err(error.fix("an edge is written `-->`, `<--` or `-[:TYPE]->`"));
        }
        self.expect("-", "to go on with the edge")?;
        part.direction = match (left, self.eat(">")) {
            (false, true) => Direction::Out,
            (true, false) => Direction::In,
            _ => Direction::Both,
        };
        part.span = start.to(self.last_span());
        Ok(part)
    }

    fn edge_inside(&mut self, part: &mut EdgePart) -> Result<(), PatternError> {
        part.name = self.variable()?;
        part.types = self.types()?;
        if self.eat("*") {
            part.length = Some(self.length()?);
        }
        part.properties = self.properties()?;
        if self.eat("]") {
            return Ok(());
        }
        let error = self.expected("`:TYPE`, `*1..4`, `{property: value}` or `]`");
        Err(match self.peek() {
            Token::Word(word) => error.fix(format!("a type is written with a colon: `:{word}`")),
            _ => error,
        })
    }

    /// The bounds after `*`: nothing, `2`, `1..4`, `..4` or `1..`.
    fn length(&mut self) -> Result<Length, PatternError> {
        let start = self.span();
        let min = self.bound()?;
        let range = self.eat("..");
        let max = if range { self.bound()? } else { min };
        let length = Length { min: min.unwrap_or(1), max };
        if length.max.is_some_and(|max| max < length.min) {
            let span = start.to(self.last_span());
            let error = PatternError::at(
                self.text,
                span,
                "a path whose least length is above its greatest",
            );
            return Err(error.fix("write the smaller number first: *1..4"));
        }
        Ok(length)
    }

    fn bound(&mut self) -> Result<Option<u32>, PatternError> {
        let Token::Int(number) = *self.peek() else { return Ok(None) };
        let bound = u32::try_from(number).ok().filter(|bound| *bound <= 1000);
        let bound = bound.ok_or_else(|| self.error("a path has at most 1000 edges"))?;
        self.advance();
        Ok(Some(bound))
    }

    /// A variable being bound, if one stands here.
    fn variable(&mut self) -> Result<Option<Name>, PatternError> {
        let text = match self.peek() {
            Token::Word(word) => {
                if let Some(keyword) = KEYWORDS.iter().find(|k| word.eq_ignore_ascii_case(k)) {
                    let error = self.error(format!("`{word}` cannot be a variable as it stands"));
                    let lower = keyword.to_lowercase();
                    let fix = format!("choose another name, or write it in back quotes: `{lower}`");
                    return Err(error.fix(fix));
                }
                word.clone()
            }
            Token::Quoted(name) => name.clone(),
            _ => return Ok(None),
        };
        let span = self.span();
        self.advance();
        Ok(Some(Name { text, span }))
    }

    /// Any word or quoted name: a type or a property. None is reserved.
    fn name(&mut self, what: &str) -> Result<Name, PatternError> {
        let text: SmolStr = match self.peek() {
            Token::Word(name) | Token::Quoted(name) => name.clone(),
            _ => return Err(self.expected(what)),
        };
        let span = self.span();
        self.advance();
        Ok(Name { text, span })
    }

    /// `:A|B` or `:A|:B`, or nothing.
    fn types(&mut self) -> Result<Vec<Name>, PatternError> {
        let mut types = Vec::new();
        if !self.eat(":") {
            return Ok(types);
        }
        types.push(self.name("the name of a type")?);
        while self.eat("|") {
            self.eat(":");
            types.push(self.name("the name of another type")?);
        }
        Ok(types)
    }

    /// `{name: value, …}`, or nothing.
    fn properties(&mut self) -> Result<Vec<(Name, Expr)>, PatternError> {
        if matches!(self.peek(), Token::Parameter(_)) {
            let error = self.error("properties are written one by one");
            return Err(error.fix("write {status: $status}"));
        }
        if self.eat("{") { self.entries() } else { Ok(Vec::new()) }
    }

    /// The inside of `{name: value, …}` and its end.
    fn entries(&mut self) -> Result<Vec<(Name, Expr)>, PatternError> {
        let mut entries: Vec<(Name, Expr)> = Vec::new();
        if self.eat("}") {
            return Ok(entries);
        }
        loop {
            let name = self.name("the name of a property")?;
            if entries.iter().any(|(other, _)| other.text == name.text) {
                let message = format!("`{}` is given twice", name.text);
                return Err(PatternError::at(self.text, name.span, message));
            }
            if self.is_symbol("=") {
                return Err(self.expected("`:` after the name").fix("write {name: value}"));
            }
            self.expect(":", "between the name and its value")?;
            entries.push((name, self.expression()?));
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}", "or `,` after the value")?;
        Ok(entries)
    }
}
