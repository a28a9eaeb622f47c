//! Calls: of functions, of aggregates, and the questions about all items of a list.

use super::{Parser, Reading};
use crate::pattern::error::PatternError;
use crate::pattern::lexer::Token;
use crate::pattern::problem::Problem;
use crate::pattern::syntax::{Aggregate, Aggregated, EachAim, Expr, ExprKind, Function, Span};

/// What others have, and why it is not here.
const ABSENT: [(&str, &str); 8] = [
    ("date", "a date is a text here, such as '2026-01-05', and compares as one"),
    ("datetime", "a time is a text here, such as '2026-01-05T09:00:00Z', and compares as one"),
    ("duration", "write the number of seconds or days as a number"),
    ("localdatetime", "a time is a text here, such as '2026-01-05T09:00:00', and compares as one"),
    ("localtime", "a time is a text here, such as '09:00:00', and compares as one"),
    ("rand", "the same graph gives the same answer: there is no chance"),
    ("time", "a time is a text here, such as '09:00:00', and compares as one"),
    ("timestamp", "the same graph gives the same answer: there is no clock; give the time as $now"),
];

impl Parser<'_> {
    /// A name and the bracket after it.
    pub(super) fn call(&mut self, word: &str) -> Result<Expr, PatternError> {
        let start = self.span();
        let called = |(name, _): &&(&str, EachAim)| name.eq_ignore_ascii_case(word);
        if let Some((_, aim)) = EachAim::CALLED.iter().find(called) {
            return self.question(*aim, start);
        }
        let known = |(name, _): &&(&str, Aggregate)| name.eq_ignore_ascii_case(word);
        if let Some((_, aggregate)) = Aggregate::ALL.iter().find(known)
            && self.reading == Reading::Query
        {
            return self.aggregate(*aggregate, start);
        }
        let Some(function) = Function::named(word) else {
            return Err(self.unknown_function(word));
        };
        self.advance();
        self.advance();
        let mut arguments = Vec::new();
        if !self.is_symbol(")") {
            arguments = self.with_chains(false, Self::arguments)?;
        }
        self.expect(")", "after the arguments")?;
        let span = start.to(self.last_span());
        let (least, most) = function.arity();
        if !(least..=most).contains(&arguments.len()) {
            let number = match (least, most) {
                (1, 1) => "one argument".to_owned(),
                (least, most) if least == most => format!("{least} arguments"),
                (least, usize::MAX) => format!("at least {least} arguments"),
                (least, most) => format!("{least} to {most} arguments"),
            };
            let message = format!("{} takes {number}, not {}", function.name(), arguments.len());
            let error = PatternError::at(self.text, span, message);
            return Err(error.about(Problem::InvalidNumberOfArguments));
        }
        self.term(ExprKind::Call(function, arguments), span)
    }

    /// `all(x IN list WHERE condition)`
    fn question(&mut self, aim: EachAim, start: Span) -> Result<Expr, PatternError> {
        self.advance();
        self.advance();
        let named = matches!(self.peek(), Token::Word(_) | Token::Quoted(_));
        if !named || !self.is_word_at(1, "IN") {
            let error = self.expected("a name, `IN` and a list");
            return Err(error.fix("write all(x IN list WHERE x > 0)"));
        }
        let each = self.nested(|parser| parser.each(aim, ")"))?;
        let each = each.expect("only a list may be read otherwise");
        self.term(each, start.to(self.last_span()))
    }

    /// `count(*)`, `collect(DISTINCT x)` and their like.
    fn aggregate(&mut self, aggregate: Aggregate, start: Span) -> Result<Expr, PatternError> {
        self.advance();
        self.advance();
        let mut part = Aggregated { aggregate, distinct: false, argument: None, share: None };
        if aggregate == Aggregate::Count && self.eat("*") {
            self.expect(")", "after the `*`")?;
            return self.term(ExprKind::Aggregate(Box::new(part)), start.to(self.last_span()));
        }
        part.distinct = self.eat_word("DISTINCT");
        let mut arguments = self.with_chains(false, Self::arguments)?;
        self.expect(")", "after the argument")?;
        let span = start.to(self.last_span());
        let percentile = matches!(aggregate, Aggregate::PercentileCont | Aggregate::PercentileDisc);
        if arguments.len() != 1 + usize::from(percentile) {
            let number = if percentile { "two arguments" } else { "one argument" };
            let message = format!("{} takes {number}", aggregate.name());
            let error = PatternError::at(self.text, span, message);
            return Err(error.about(Problem::InvalidNumberOfArguments));
        }
        part.share = if percentile { arguments.pop() } else { None };
        part.argument = arguments.pop();
        self.term(ExprKind::Aggregate(Box::new(part)), span)
    }

    fn unknown_function(&self, word: &str) -> PatternError {
        let error = self.error(format!("there is no function `{word}`"));
        let error = error.about(Problem::UnknownFunction);
        if Aggregate::ALL.iter().any(|(name, _)| name.eq_ignore_ascii_case(word)) {
            return error.fix("a pattern holds for single matches; count in the reaction instead");
        }
        if let Some((_, why)) = ABSENT.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
            return error.fix(*why);
        }
        let functions = Function::ALL.iter().map(|(name, ..)| *name);
        let names: Vec<&str> = match self.reading {
            Reading::Pattern => functions.collect(),
            Reading::Query => functions.chain(Aggregate::ALL.iter().map(|(n, _)| *n)).collect(),
        };
        let with_names = format!("known are {}", names.join(", "));
        let suggested = error.did_you_mean(names);
        if suggested.fix.is_some() { suggested } else { suggested.fix(with_names) }
    }
}
