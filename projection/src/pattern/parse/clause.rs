//! Clauses that a pattern cannot hold, and what to do instead.

use super::{Parser, Reading};
use crate::pattern::error::PatternError;
use crate::pattern::lexer::Token;
use crate::pattern::problem::Problem;
use crate::pattern::syntax::Body;

/// Clauses that would write, each with the change that does the same.
const WRITING: [(&str, &str); 7] = [
    ("CREATE", "create(\"Task\") or link(a, \"OWNS\", b)"),
    ("DELETE", "remove(a)"),
    ("DETACH", "remove(a), which takes the edges along"),
    ("FOREACH", "one change for each element"),
    ("MERGE", "ensure(\"Task\", id = \"task:1\")"),
    ("REMOVE", "unset(a, \"status\")"),
    ("SET", "set(a, status = \"done\")"),
];

/// Clauses that shape a result. A pattern has none; it is the set of its matches.
const SHAPING: [&str; 8] =
    ["RETURN", "WITH", "UNWIND", "ORDER", "SKIP", "LIMIT", "UNION", "OPTIONAL"];

impl Parser<'_> {
    /// Refuses a clause that stands here by name.
    pub(crate) fn refuse_clause(&self) -> Result<(), PatternError> {
        self.refuse_writing()?;
        if self.reading == Reading::Query {
            return Ok(());
        }
        let Token::Word(word) = self.peek() else { return Ok(()) };
        if let Some(clause) = SHAPING.iter().find(|clause| word.eq_ignore_ascii_case(clause)) {
            let error = self.error(format!("{clause} is not part of a pattern"));
            return Err(error.fix("leave it out: a match binds every element, named or not"));
        }
        Ok(())
    }

    /// Refuses a clause that would write, or calls what may.
    fn refuse_writing(&self) -> Result<(), PatternError> {
        // What goes on like a value, a chain or a path is no clause.
        let Token::Word(word) = self.peek() else { return Ok(()) };
        let what = self.reading.word();
        if let Some((clause, instead)) =
            WRITING.iter().find(|(clause, _)| word.eq_ignore_ascii_case(clause))
        {
            let message = format!("{clause} writes, and a {what} only reads");
            let error = self.error(message).about(Problem::InvalidClauseComposition);
            return Err(error.fix(match self.reading {
                Reading::Pattern => {
                    format!("let a behavior emit an event with the change: {instead}")
                }
                Reading::Query => format!(
                    "append an event with the change: starling append task.noted --changes \
                     '[…]'; in a behavior: {instead}"
                ),
            }));
        }
        if word.eq_ignore_ascii_case("CALL") {
            let error = self.error(format!("procedures cannot be called from a {what}"));
            return Err(error.about(Problem::InvalidClauseComposition));
        }
        Ok(())
    }

    /// Why a pattern does not end where its body does.
    pub(super) fn after_body(&self, body: &Body) -> PatternError {
        if let Err(error) = self.refuse_clause() {
            return error;
        }
        if self.is_word("MATCH") {
            let error = self.error("a pattern has one MATCH");
            return error.fix("separate chains by commas: (a)-->(b), (b)-->(c)");
        }
        if self.is_word("WHERE") {
            return self.error("a pattern has one WHERE").fix("join the conditions with AND");
        }
        if self.is_symbol(";") {
            return self.error("a pattern ends without `;`").fix("leave it out");
        }
        if body.condition.is_some() {
            let words =
                ["AND", "OR", "XOR", "IN", "IS NULL", "STARTS WITH", "ENDS WITH", "CONTAINS"];
            let error = self.expected("an operator such as `AND`, or the end");
            return error.did_you_mean(words);
        }
        let error = self.expected("an edge, `,`, `WHERE` or the end");
        error.did_you_mean(["WHERE"])
    }
}
