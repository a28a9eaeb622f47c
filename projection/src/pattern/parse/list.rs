//! What stands in square brackets: lists, comprehensions, places and parts of lists.

use super::{Parser, Reading};
use crate::pattern::error::PatternError;
use crate::pattern::lexer::Token;
use crate::pattern::syntax::{Body, Each, EachAim, Expr, ExprKind};

impl Parser<'_> {
    /// A list, or what is made of the items of one.
    pub(super) fn list(&mut self) -> Result<Expr, PatternError> {
        let start = self.span();
        let at = self.at;
        self.advance();
        let named = matches!(self.peek(), Token::Word(_) | Token::Quoted(_));
        if named && self.is_word_at(1, "IN") {
            if let Some(each) = self.each(EachAim::List, "]")? {
                return self.term(each, start.to(self.last_span()));
            }
        } else if let Some(collected) = self.collected()? {
            return self.term(collected, start.to(self.last_span()));
        }
        // It was no comprehension: read again, as a list.
        self.at = at + 1;
        let mut items = Vec::new();
        if !self.eat("]") {
            items = self.with_chains(false, Self::arguments)?;
            self.expect("]", "or `,` after the item")?;
        }
        self.term(ExprKind::List(items), start.to(self.last_span()))
    }

    /// One expression or more, separated by commas.
    pub(super) fn arguments(&mut self) -> Result<Vec<Expr>, PatternError> {
        self.with_bars(true, |parser| {
            let mut all = vec![parser.expression()?];
            while parser.eat(",") {
                all.push(parser.expression()?);
            }
            Ok(all)
        })
    }

    /// `x IN list WHERE condition | value` and the bracket after it; `None` if what follows the
    /// list is neither, so that it was a test in a list.
    pub(super) fn each(
        &mut self,
        aim: EachAim,
        close: &str,
    ) -> Result<Option<ExprKind>, PatternError> {
        let name = self.variable()?;
        let name = name.expect("the caller saw a name");
        self.advance();
        let list = self.with_bars(false, |parser| parser.with_chains(false, Self::expression))?;
        if aim == EachAim::List && self.is_symbol(",") {
            return Ok(None);
        }
        let condition = self.with_bars(false, Self::condition)?;
        let maps = aim == EachAim::List && self.eat("|");
        let value = if maps { Some(self.made()?) } else { None };
        if !self.is_symbol(close) && condition.is_none() && value.is_none() {
            return if aim == EachAim::List { Ok(None) } else { Err(self.expected("`WHERE`")) };
        }
        self.expect(close, "to close the list")?;
        Ok(Some(ExprKind::Each(Box::new(Each { aim, name, list, condition, value }))))
    }

    /// `[(a)-->(b) WHERE condition | value]`; `None` if it is no such thing.
    fn collected(&mut self) -> Result<Option<ExprKind>, PatternError> {
        let path = matches!(self.peek_at(1), Token::Symbol("="));
        let node = if path { self.peek_at(2) } else { self.peek() };
        if self.reading == Reading::Pattern || !matches!(node, Token::Symbol("(")) {
            return Ok(None);
        }
        let Ok(chain) = self.nested(Self::named_chain) else { return Ok(None) };
        let goes_on = self.is_word("WHERE") || self.is_symbol("|");
        if chain.links.is_empty() || !goes_on {
            return Ok(None);
        }
        let condition = self.with_bars(false, Self::condition)?;
        self.expect("|", "and the value of each match")?;
        let value = self.made()?;
        self.expect("]", "to close the list")?;
        let body = Body { chains: vec![chain], condition, bare: false };
        Ok(Some(ExprKind::Collect(Box::new(body), Box::new(value))))
    }

    /// What stands behind the bar.
    fn made(&mut self) -> Result<Expr, PatternError> {
        self.with_bars(true, |parser| parser.with_chains(false, Self::expression))
    }

    /// `place]` or `from..to]` behind a value.
    pub(super) fn index(&mut self, base: Expr) -> Result<ExprKind, PatternError> {
        let base = Box::new(base);
        let place = |parser: &mut Self| parser.with_bars(true, Self::expression).map(Box::new);
        let from = if self.is_symbol("..") { None } else { Some(place(self)?) };
        if self.eat("..") {
            let to = if self.is_symbol("]") { None } else { Some(place(self)?) };
            self.expect("]", "after the places")?;
            return Ok(ExprKind::Slice(base, from, to));
        }
        self.expect("]", "after the index")?;
        Ok(ExprKind::Index(base, from.expect("what is no range has a place")))
    }
}
