//! `CASE … WHEN … THEN … ELSE … END`

use super::Parser;
use crate::pattern::error::PatternError;
use crate::pattern::lexer::Token;
use crate::pattern::syntax::{Case, Expr, ExprKind};

impl Parser<'_> {
    /// A choice, if one begins here. `case` remains a good name of a variable: it begins a choice
    /// only where a value follows it, which no name can have behind it.
    pub(super) fn case(&mut self) -> Result<Option<Expr>, PatternError> {
        if !self.is_word("CASE") {
            return Ok(None);
        }
        let infix = ["AND", "CONTAINS", "ENDS", "IN", "IS", "OR", "STARTS", "XOR", "AS", "WHERE"];
        // A sign or a bracket may go on with a name as well.
        let (begins, unsure) = match self.peek_at(1) {
            Token::Word(word) => (!infix.iter().any(|w| word.eq_ignore_ascii_case(w)), false),
            Token::Symbol(symbol) => {
                (matches!(*symbol, "(" | "{" | "[" | "-" | "+"), matches!(*symbol, "[" | "-" | "+"))
            }
            Token::End => (false, false),
            _ => (true, false),
        };
        if !begins {
            return Ok(None);
        }
        let at = self.at;
        match self.nested(Self::choice) {
            Err(_) if unsure => {
                self.at = at;
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    fn choice(&mut self) -> Result<Expr, PatternError> {
        let start = self.span();
        self.advance();
        let subject = if self.is_word("WHEN") { None } else { Some(self.expression()?) };
        let mut branches = Vec::new();
        while self.eat_word("WHEN") {
            let test = self.expression()?;
            if !self.eat_word("THEN") {
                return Err(self.expected("`THEN` and a value"));
            }
            branches.push((test, self.expression()?));
        }
        if branches.is_empty() {
            return Err(self.expected("`WHEN`"));
        }
        let otherwise = if self.eat_word("ELSE") { Some(self.expression()?) } else { None };
        if !self.eat_word("END") {
            return Err(self.expected("`WHEN`, `ELSE` or `END`"));
        }
        let case = Case { subject, branches, otherwise };
        self.term(ExprKind::Case(Box::new(case)), start.to(self.last_span()))
    }
}
