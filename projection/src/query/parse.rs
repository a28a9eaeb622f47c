//! From tokens to clauses. Patterns and expressions are read by the parser of patterns.

use super::syntax::{Clause, Item, OrderItem, Projection, ProjectionKind};
use crate::pattern::{Parser, PatternError, Problem, Reading, Token};

/// The words that a clause can begin with.
const CLAUSES: [&str; 5] = ["MATCH", "OPTIONAL MATCH", "UNWIND", "WITH", "RETURN"];

/// How many clauses a query may have. Each row is handed from one to the next, on one stack.
const CLAUSES_MAX: usize = 100;

/// Reads a whole query.
///
/// # Errors
/// The text is no query; the error points at the first token that does not fit.
pub(crate) fn parse(text: &str) -> Result<Vec<Clause>, PatternError> {
    let mut parser = Parser::new(text, Reading::Query)?;
    let mut clauses = Vec::new();
    loop {
        let next = clause(&mut parser, clauses.last())?;
        let Some(next) = next else { break };
        if clauses.len() == CLAUSES_MAX {
            return Err(parser.error(format!("a query has at most {CLAUSES_MAX} clauses")));
        }
        let done = matches!(&next, Clause::Project(part) if part.kind != ProjectionKind::With);
        clauses.push(next);
        if done {
            break;
        }
    }
    parser.eat(";");
    match parser.peek() {
        Token::End => Ok(clauses),
        _ => Err(after_return(&parser)),
    }
}

/// The clause that stands here; `None` at the end of a query that needs none any more.
fn clause(parser: &mut Parser<'_>, last: Option<&Clause>) -> Result<Option<Clause>, PatternError> {
    let named_path = matches!(parser.peek(), Token::Word(_) | Token::Quoted(_))
        && matches!(parser.peek_at(1), Token::Symbol("="));
    if last.is_none() && (parser.is_symbol("(") || named_path) {
        return Ok(Some(Clause::Match { body: parser.body()?, optional: false }));
    }
    if parser.is_word("OPTIONAL") && parser.is_word_at(1, "MATCH") {
        parser.advance();
        return Ok(Some(Clause::Match { body: parser.body()?, optional: true }));
    }
    if parser.is_word("MATCH") {
        return Ok(Some(Clause::Match { body: parser.body()?, optional: false }));
    }
    if parser.eat_word("UNWIND") {
        return unwind(parser).map(Some);
    }
    let span = parser.span();
    let kind = if parser.eat_word("WITH") {
        ProjectionKind::With
    } else if parser.eat_word("RETURN") {
        ProjectionKind::Return
    } else {
        return at_end(parser, last);
    };
    let mut part = Projection {
        span,
        kind,
        distinct: false,
        star: false,
        items: Vec::new(),
        order: Vec::new(),
        skip: None,
        limit: None,
        condition: None,
    };
    projection(parser, &mut part)?;
    Ok(Some(Clause::Project(part)))
}

/// A pattern alone returns what it names; anything else needs its `RETURN`.
fn at_end(parser: &Parser<'_>, last: Option<&Clause>) -> Result<Option<Clause>, PatternError> {
    parser.refuse_clause()?;
    let ends = matches!(parser.peek(), Token::End | Token::Symbol(";"));
    match last {
        Some(Clause::Match { .. }) if ends => Ok(Some(Clause::Project(Projection {
            span: parser.span(),
            kind: ProjectionKind::Implied,
            distinct: false,
            star: true,
            items: Vec::new(),
            order: Vec::new(),
            skip: None,
            limit: None,
            condition: None,
        }))),
        Some(_) if ends => {
            let error = parser.error("a query ends with RETURN");
            let error = error.about(Problem::InvalidClauseComposition);
            Err(error.fix("say what to show: RETURN a, b.name, count(*)"))
        }
        Some(Clause::Match { .. }) => {
            let error = parser.expected("an edge, `,`, `WHERE`, an operator or a clause");
            Err(error.did_you_mean(CLAUSES.into_iter().chain(["WHERE", "AND", "OR"])))
        }
        _ => {
            let error = parser.expected("a clause such as `MATCH (a:Task)` or `RETURN a`");
            Err(error.did_you_mean(CLAUSES))
        }
    }
}

/// Why a query does not end where its `RETURN` does.
fn after_return(parser: &Parser<'_>) -> PatternError {
    if let Err(error) = parser.refuse_clause() {
        return error;
    }
    if parser.is_word("UNION") {
        let error = parser.error("UNION is not part of a query");
        return error.about(Problem::InvalidClauseComposition).fix("ask two queries");
    }
    if parser.is_word("WHERE") {
        let error = parser.error("WHERE belongs to MATCH or WITH");
        return error.fix("write MATCH … WHERE … RETURN …, or WITH … WHERE … RETURN …");
    }
    let clause = ["MATCH", "WITH", "UNWIND", "RETURN", "OPTIONAL"];
    if clause.iter().any(|word| parser.is_word(word)) {
        let error = parser.error("RETURN is the last clause of a query");
        let error = error.about(Problem::InvalidClauseComposition);
        return error.fix("write WITH in place of the RETURN before");
    }
    let error = parser.expected("an operator, `,`, `AS`, `ORDER BY`, `SKIP`, `LIMIT` or the end");
    error.did_you_mean(["AS", "ORDER BY", "SKIP", "LIMIT", "AND", "OR"])
}

fn unwind(parser: &mut Parser<'_>) -> Result<Clause, PatternError> {
    let list = parser.with_chains(false, Parser::expression)?;
    if !parser.eat_word("AS") {
        return Err(parser.expected("`AS` and a name").fix("write UNWIND list AS item"));
    }
    let name = parser.variable()?.ok_or_else(|| parser.expected("a name after `AS`"))?;
    Ok(Clause::Unwind { list, name })
}

fn projection(parser: &mut Parser<'_>, part: &mut Projection) -> Result<(), PatternError> {
    part.distinct = parser.eat_word("DISTINCT");
    part.star = parser.eat("*");
    if !part.star || parser.eat(",") {
        part.items.push(item(parser)?);
        while parser.eat(",") {
            part.items.push(item(parser)?);
        }
    }
    if parser.eat_word("ORDER") {
        if !parser.eat_word("BY") {
            return Err(parser.expected("`BY` after `ORDER`"));
        }
        part.order.push(order_item(parser)?);
        while parser.eat(",") {
            part.order.push(order_item(parser)?);
        }
    }
    if parser.eat_word("SKIP") {
        part.skip = Some(parser.with_chains(false, Parser::expression)?);
    }
    if parser.eat_word("LIMIT") {
        part.limit = Some(parser.with_chains(false, Parser::expression)?);
    }
    if part.kind == ProjectionKind::With {
        part.condition = parser.condition()?;
    }
    Ok(())
}

fn item(parser: &mut Parser<'_>) -> Result<Item, PatternError> {
    let start = parser.span();
    let expr = parser.with_chains(false, Parser::expression)?;
    let written = start.to(parser.last_span());
    let text = parser.text[written.start..written.end].into();
    let name = if parser.eat_word("AS") {
        Some(parser.variable()?.ok_or_else(|| parser.expected("a name after `AS`"))?)
    } else {
        None
    };
    Ok(Item { expr, name, text })
}

fn order_item(parser: &mut Parser<'_>) -> Result<OrderItem, PatternError> {
    let expr = parser.with_chains(false, Parser::expression)?;
    let descending = parser.eat_word("DESC") || parser.eat_word("DESCENDING");
    if !descending && !parser.eat_word("ASC") {
        parser.eat_word("ASCENDING");
    }
    Ok(OrderItem { expr, descending })
}
