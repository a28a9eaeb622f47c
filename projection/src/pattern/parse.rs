//! From tokens to the tree: chains of nodes and edges by recursive descent.
//!
//! Keywords are told from names by where they stand, in any case. Depth and number of terms are
//! bounded, so that no text can exhaust the stack of a reader of the tree.

mod call;
mod case;
mod clause;
mod expression;
mod list;
pub(crate) mod readable;
mod reading;

pub(crate) use reading::Reading;

use smol_str::SmolStr;

use crate::pattern::error::PatternError;
use crate::pattern::lexer::{self, Token};
use crate::pattern::problem::Problem;
use crate::pattern::syntax::{
    Body, Chain, Direction, EdgePart, Expr, Length, Name, NodePart, Span,
};

/// How often each token may be read, on average, before it is given up to tell what is meant.
const READS_MAX: usize = 100;

/// How high operators may stack up, so that no text exhausts the stack of whoever walks over it.
const HEIGHT_MAX: usize = 500;

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
    let mut parser = Parser::new(text, Reading::Pattern)?;
    let body = parser.body()?;
    match parser.peek() {
        Token::End => Ok(body),
        _ => Err(parser.after_body(&body)),
    }
}

pub(crate) struct Parser<'t> {
    pub(crate) text: &'t str,
    pub(crate) reading: Reading,
    tokens: Vec<(Token, Span)>,
    at: usize,
    depth: usize,
    /// At least how high the operators stack up in what was read since something nested was begun.
    height: usize,
    terms: usize,
    /// Whether a chain may stand here as a condition.
    chains: bool,
    /// How often something nested was begun, to be read in one way or another.
    reads: usize,
    /// A bound that was reached: it ends the reading.
    fatal: Option<PatternError>,
    /// Whether a bar here joins types; else it ends what a list is made by.
    bars: bool,
}

impl<'t> Parser<'t> {
    /// A parser at the first token of a text.
    ///
    /// # Errors
    /// The text is too long, or holds something that is no token.
    pub(crate) fn new(text: &'t str, reading: Reading) -> Result<Self, PatternError> {
        if text.len() > reading.text_max() {
            let (what, kib) = (reading.word(), reading.text_max() >> 10);
            return Err(PatternError::at(
                text,
                readable::start(text),
                format!("a {what} of more than {kib} KiB"),
            ));
        }
        let tokens = lexer::tokens(text)?;
        let (at, depth, height, terms, reads) = (0, 0, 0, 0, 0);
        let (fatal, chains, bars) = (None, true, true);
        Ok(Parser { text, reading, tokens, at, depth, height, terms, chains, reads, fatal, bars })
    }

    pub(crate) fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    pub(crate) fn peek_at(&self, ahead: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + ahead).min(last)].0
    }

    pub(crate) fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    /// The place of the token before this one.
    pub(crate) fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].1
    }

    pub(crate) fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    pub(crate) fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(found) if *found == symbol)
    }

    pub(crate) fn eat(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn is_word(&self, keyword: &str) -> bool {
        self.is_word_at(0, keyword)
    }

    pub(crate) fn is_word_at(&self, ahead: usize, keyword: &str) -> bool {
        matches!(self.peek_at(ahead), Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    pub(crate) fn eat_word(&mut self, keyword: &str) -> bool {
        let found = self.is_word(keyword);
        if found {
            self.advance();
        }
        found
    }

    /// An error at the token that stands here.
    pub(crate) fn error(&self, message: impl Into<String>) -> PatternError {
        PatternError::at(self.text, self.span(), message)
    }

    /// An error that says what should stand here.
    pub(crate) fn expected(&self, what: &str) -> PatternError {
        match self.peek() {
            Token::End => {
                let reading = self.reading.word();
                self.error(format!("expected {what}, but the {reading} ends here"))
            }
            _ => {
                let span = self.span();
                let found = &self.text[span.start..span.end];
                self.error(format!("expected {what}, found `{found}`"))
            }
        }
    }

    pub(crate) fn expect(&mut self, symbol: &str, why: &str) -> Result<(), PatternError> {
        if self.eat(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}` {why}"))) }
    }

    /// Goes one level deeper for the time of `inner`.
    fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, PatternError>,
    ) -> Result<T, PatternError> {
        if let Some(fatal) = &self.fatal {
            return Err(fatal.clone());
        }
        self.reads += 1;
        let most = self.reading.depth_max();
        if self.depth == most {
            return Err(self.give_up(format!("nested deeper than {most} levels")));
        }
        if self.reads > READS_MAX * (self.tokens.len() + READS_MAX) {
            return Err(self.give_up("too many brackets that can be read in two ways".to_owned()));
        }
        self.depth += 1;
        let around = std::mem::take(&mut self.height);
        let out = inner(self);
        self.height = around.max(self.height + 1);
        self.depth -= 1;
        out
    }

    /// Counts an operator onto what was just read: operators in a row nest too.
    fn higher(&mut self) -> Result<(), PatternError> {
        self.height += 1;
        if self.height <= HEIGHT_MAX {
            return Ok(());
        }
        Err(self.give_up(format!("more than {HEIGHT_MAX} operators in a row")))
    }

    /// An error after which nothing is read in another way.
    fn give_up(&mut self, message: String) -> PatternError {
        let error = self.error(message);
        self.fatal = Some(error.clone());
        error
    }

    /// Lets a chain stand as a condition, or not, for the time of `inner`.
    pub(crate) fn with_chains<T>(
        &mut self,
        allowed: bool,
        inner: impl FnOnce(&mut Self) -> Result<T, PatternError>,
    ) -> Result<T, PatternError> {
        let before = std::mem::replace(&mut self.chains, allowed);
        let out = inner(self);
        self.chains = before;
        out
    }

    /// Lets a bar join types, or not, for the time of `inner`.
    fn with_bars<T>(
        &mut self,
        join: bool,
        inner: impl FnOnce(&mut Self) -> Result<T, PatternError>,
    ) -> Result<T, PatternError> {
        let before = std::mem::replace(&mut self.bars, join);
        let out = inner(self);
        self.bars = before;
        out
    }

    /// What stands after `MATCH`, and the word itself if it is there.
    pub(crate) fn body(&mut self) -> Result<Body, PatternError> {
        if self.is_word("MATCH") && !matches!(self.peek_at(1), Token::End) {
            self.advance();
        }
        self.refuse_clause()?;
        let mut chains = vec![self.named_chain()?];
        while self.eat(",") {
            chains.push(self.named_chain()?);
        }
        let condition = self.condition()?;
        Ok(Body { chains, condition, bare: false })
    }

    /// `WHERE` and a condition, or nothing.
    pub(crate) fn condition(&mut self) -> Result<Option<Expr>, PatternError> {
        if !self.eat_word("WHERE") {
            return Ok(None);
        }
        self.with_chains(true, Self::expression).map(Some)
    }

    /// A chain, which in a query may have a name: `p = (a)-->(b)`.
    fn named_chain(&mut self) -> Result<Chain, PatternError> {
        let word = matches!(self.peek(), Token::Word(_) | Token::Quoted(_));
        if !word || !matches!(self.peek_at(1), Token::Symbol("=")) {
            return self.chain();
        }
        if self.reading == Reading::Pattern {
            let error = self.error("a path cannot be named");
            return Err(error.fix("name its nodes and edges instead: (a)-[e:T*1..4]->(b)"));
        }
        let path = self.variable()?;
        self.advance();
        Ok(Chain { path, ..self.chain()? })
    }

    fn chain(&mut self) -> Result<Chain, PatternError> {
        let first = self.node()?;
        let mut links = Vec::new();
        while self.is_symbol("-") || self.is_symbol("<") {
            let edge = self.edge()?;
            links.push((edge, self.node()?));
        }
        Ok(Chain { path: None, first, links })
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
        let error = error.about(Problem::InvalidRelationshipPattern);
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
        // A query finds nothing then; a pattern that can never match is a mistake.
        if length.max.is_some_and(|max| max < length.min) && self.reading == Reading::Pattern {
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
    pub(crate) fn variable(&mut self) -> Result<Option<Name>, PatternError> {
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
            Token::Quoted(name) => {
                self.refuse_empty(name)?;
                name.clone()
            }
            _ => return Ok(None),
        };
        let span = self.span();
        self.advance();
        Ok(Some(Name { text, span }))
    }

    /// Only a property may have no letter in its name.
    fn refuse_empty(&self, name: &str) -> Result<(), PatternError> {
        if name.is_empty() { Err(self.error("a name cannot be empty")) } else { Ok(()) }
    }

    /// The name of a type.
    fn type_name(&mut self, what: &str) -> Result<Name, PatternError> {
        if let Token::Quoted(name) = self.peek() {
            self.refuse_empty(name)?;
        }
        self.name(what)
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
        types.push(self.type_name("the name of a type")?);
        while self.eat("|") {
            self.eat(":");
            types.push(self.type_name("the name of another type")?);
        }
        Ok(types)
    }

    /// `{name: value, …}`, or nothing.
    fn properties(&mut self) -> Result<Vec<(Name, Expr)>, PatternError> {
        if matches!(self.peek(), Token::Parameter(_)) {
            let error = self.error("properties are written one by one");
            let error = error.about(Problem::InvalidParameterUse);
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
            entries.push((name, self.with_bars(true, Self::expression)?));
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}", "or `,` after the value")?;
        Ok(entries)
    }
}
