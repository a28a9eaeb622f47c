//! Running a plan: every row is pushed through all stages before the next one is made.
//!
//! Only grouping, DISTINCT and ORDER BY keep anything: groups, the rows seen, the rows to sort. A
//! sorted result with a LIMIT keeps no more than it may give.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::QueryError;
use super::aggregate::{AggregateCode, Seen};
use super::order::{Key, order};
use super::plan::{Plan, Stage, Work};
use crate::graph::Graph;
use crate::pattern::{Aim, Code, Env, ErrorClass, Fault, Halt, Problem, Search, Steps, Task, Val};

/// The values of one row.
pub(crate) type Row<'a> = Vec<Val<'a>>;

/// What is called with each row of the result.
pub(crate) type Sink<'s, 'a> = &'s mut dyn FnMut(Row<'a>) -> ControlFlow<()>;

/// Whether more rows are wanted.
type Flow = Result<ControlFlow<()>, QueryError>;

const MORE: Flow = Ok(ControlFlow::Continue(()));
const ENOUGH: Flow = Ok(ControlFlow::Break(()));

/// A stage at work.
struct Running<'a> {
    search: Search<'a, Graph>,
    work: &'a Work,
    kept: Kept<'a>,
}

/// What a stage keeps between rows.
enum Kept<'a> {
    Nothing,
    Groups {
        places: BTreeMap<Key<'a>, usize>,
        groups: Vec<(Row<'a>, Vec<Seen<'a>>)>,
    },
    Seen(BTreeSet<Key<'a>>),
    /// Rows with what they are sorted by, and how many of them may be given.
    Rows {
        rows: Vec<(Row<'a>, Row<'a>)>,
        most: Option<usize>,
    },
    Left(u64),
}

/// Runs a plan and gives each row of its result.
pub(crate) fn run<'a>(
    plan: &'a Plan,
    graph: &'a Graph,
    env: &'a Env<'a>,
    steps: &'a Steps,
    sink: Sink<'_, 'a>,
) -> Result<(), QueryError> {
    let mut stages = Vec::with_capacity(plan.stages.len());
    for stage in &plan.stages {
        stages.push(Running::new(stage, graph, env, steps)?);
    }
    bound_sorts(&mut stages);
    if push(&mut stages, Vec::new(), sink)?.is_continue() || keeps_any(&stages) {
        finish(&mut stages, sink)?;
    }
    Ok(())
}

fn keeps_any(stages: &[Running<'_>]) -> bool {
    stages.iter().any(|stage| matches!(stage.kept, Kept::Groups { .. } | Kept::Rows { .. }))
}

/// Tells each sort how many rows the stages after it can use.
fn bound_sorts(stages: &mut [Running<'_>]) {
    for place in 0..stages.len() {
        let mut bound: u64 = 0;
        let mut limited = false;
        for after in &stages[place + 1..] {
            match (after.work, &after.kept) {
                (Work::Skip(_), Kept::Left(left)) => bound = bound.saturating_add(*left),
                (Work::Limit(_), Kept::Left(left)) => {
                    bound = bound.saturating_add(*left);
                    limited = true;
                    break;
                }
                _ => break,
            }
        }
        if let Kept::Rows { most, .. } = &mut stages[place].kept {
            *most = limited.then(|| usize::try_from(bound).unwrap_or(usize::MAX));
        }
    }
}

impl<'a> Running<'a> {
    fn new(
        stage: &'a Stage,
        graph: &'a Graph,
        env: &'a Env<'a>,
        steps: &'a Steps,
    ) -> Result<Running<'a>, QueryError> {
        let mut search = Search::new(graph, graph, &stage.program, env, steps);
        search.strict = true;
        let kept = match &stage.work {
            Work::Group { .. } => Kept::Groups { places: BTreeMap::new(), groups: Vec::new() },
            Work::Distinct => Kept::Seen(BTreeSet::new()),
            Work::Sort(_) => Kept::Rows { rows: Vec::new(), most: None },
            Work::Skip(code) | Work::Limit(code) => Kept::Left(count(&mut search, code)?),
            _ => Kept::Nothing,
        };
        Ok(Running { search, work: &stage.work, kept })
    }

    fn values(&mut self, codes: &'a [Code]) -> Result<Row<'a>, QueryError> {
        let values = codes.iter().map(|code| value(&mut self.search, code));
        values.collect()
    }
}

/// The value of an expression in the row of a search.
fn value<'a>(search: &mut Search<'a, Graph>, code: &'a Code) -> Result<Val<'a>, QueryError> {
    let value = search.value(code)?;
    no_fault(search)?;
    Ok(value)
}

fn no_fault(search: &mut Search<'_, Graph>) -> Result<(), QueryError> {
    search.fault.take().map_or(Ok(()), |fault| Err(fault.into()))
}

/// How many rows `SKIP` or `LIMIT` asks for.
fn count<'a>(search: &mut Search<'a, Graph>, code: &'a Code) -> Result<u64, QueryError> {
    let number = value(search, code)?;
    let class = ErrorClass::Syntax;
    let Some(whole) = number.as_whole() else {
        let message = format!("rows are counted in whole numbers, not in {}", number.word());
        return Err(Fault { class, problem: Problem::InvalidArgumentType, message }.into());
    };
    u64::try_from(whole).map_err(|_| {
        let message = format!("rows are counted from zero, not from {whole}");
        Fault { class, problem: Problem::NegativeIntegerArgument, message }.into()
    })
}

/// Pushes a row through all stages.
fn push<'a>(stages: &mut [Running<'a>], row: Row<'a>, sink: Sink<'_, 'a>) -> Flow {
    let Some((stage, rest)) = stages.split_first_mut() else { return Ok(sink(row)) };
    match stage.work {
        Work::Match { binds, optional } => matching(stage, binds, *optional, row, rest, sink),
        Work::Unwind(list) => unwind(stage, list, row, rest, sink),
        Work::Project { values, keeps_row } => {
            stage.search.row = row;
            let mut out = stage.values(values)?;
            if *keeps_row {
                out.append(&mut stage.search.row);
            }
            push(rest, out, sink)
        }
        Work::Group { keys, aggregates } => {
            stage.search.row = row;
            group(stage, keys, aggregates)?;
            MORE
        }
        Work::Distinct => {
            let Kept::Seen(seen) = &mut stage.kept else { unreachable!("DISTINCT keeps rows") };
            let new = seen.insert(Key(row.clone()));
            if new { push(rest, row, sink) } else { MORE }
        }
        Work::Sort(keys) => {
            keep_sorted(stage, keys, row)?;
            MORE
        }
        Work::Skip(_) => {
            let Kept::Left(left) = &mut stage.kept else { unreachable!("SKIP counts") };
            if *left > 0 {
                *left -= 1;
                return MORE;
            }
            push(rest, row, sink)
        }
        Work::Limit(_) => {
            let Kept::Left(left) = &mut stage.kept else { unreachable!("LIMIT counts") };
            if *left == 0 {
                return ENOUGH;
            }
            *left -= 1;
            let last = *left == 0;
            let flow = push(rest, row, sink)?;
            if last { ENOUGH } else { Ok(flow) }
        }
        Work::Filter(condition) => {
            stage.search.row = row;
            let holds = value(&mut stage.search, condition)?.truth() == Some(true);
            let row = std::mem::take(&mut stage.search.row);
            if holds { push(rest, row, sink) } else { MORE }
        }
        Work::Cut(width) => {
            let mut row = row;
            row.truncate(*width);
            push(rest, row, sink)
        }
    }
}

/// Keeps a row to be sorted, and lets go of those that a LIMIT will not reach.
fn keep_sorted<'a>(
    stage: &mut Running<'a>,
    keys: &'a [(Code, bool)],
    row: Row<'a>,
) -> Result<(), QueryError> {
    stage.search.row = row;
    let mut by = Vec::with_capacity(keys.len());
    for (code, _) in keys {
        by.push(value(&mut stage.search, code)?);
    }
    let row = std::mem::take(&mut stage.search.row);
    let Kept::Rows { rows, most } = &mut stage.kept else { unreachable!("a sort keeps rows") };
    rows.push((by, row));
    if let Some(most) = *most
        && rows.len() / 2 > most.max(64)
    {
        sort(rows, keys);
        rows.truncate(most);
    }
    Ok(())
}

fn matching<'a>(
    stage: &mut Running<'a>,
    binds: &'a [Code],
    optional: bool,
    row: Row<'a>,
    rest: &mut [Running<'a>],
    sink: Sink<'_, 'a>,
) -> Flow {
    let search = &mut stage.search;
    search.row = row;
    let (mut flow, mut found) = (MORE, false);
    if let Some(bound) = search.bind_given(0)? {
        let task = Task { scope: 0, aim: Aim::Match };
        let run = search.run(task, bound, &mut |search, _| {
            found = true;
            let mut out = Vec::with_capacity(search.row.len() + binds.len());
            out.extend(search.row.iter().cloned());
            for code in binds {
                out.push(search.value(code)?);
            }
            flow = no_fault(search).and_then(|()| push(rest, out, sink));
            if matches!(flow, Ok(ControlFlow::Continue(()))) { Ok(()) } else { Err(Halt::Enough) }
        });
        if let Err(Halt::Exhausted(exhausted)) = run {
            return Err(exhausted.into());
        }
    }
    flow.as_ref().map_err(Clone::clone)?;
    no_fault(search)?;
    if found || !optional {
        return flow;
    }
    let mut out = std::mem::take(&mut search.row);
    out.extend(binds.iter().map(|_| Val::Null));
    push(rest, out, sink)
}

fn unwind<'a>(
    stage: &mut Running<'a>,
    list: &'a Code,
    row: Row<'a>,
    rest: &mut [Running<'a>],
    sink: Sink<'_, 'a>,
) -> Flow {
    stage.search.row = row;
    let items = match value(&mut stage.search, list)? {
        Val::Null => return MORE,
        Val::List(items) => items,
        one => vec![one],
    };
    for item in items {
        stage.search.count_step()?;
        let mut out = Vec::with_capacity(stage.search.row.len() + 1);
        out.extend(stage.search.row.iter().cloned());
        out.push(item);
        if push(rest, out, sink)?.is_break() {
            return ENOUGH;
        }
    }
    MORE
}

/// Adds the row of a search to its group.
fn group<'a>(
    stage: &mut Running<'a>,
    keys: &'a [Code],
    aggregates: &'a [AggregateCode],
) -> Result<(), QueryError> {
    let by = stage.values(keys)?;
    let mut given = Vec::with_capacity(aggregates.len());
    for code in aggregates {
        let mut one = |code: &'a Option<Code>| {
            code.as_ref().map(|code| value(&mut stage.search, code)).transpose()
        };
        given.push((one(&code.argument)?, one(&code.share)?));
    }
    let Kept::Groups { places, groups } = &mut stage.kept else { unreachable!("groups are kept") };
    let place = *places.entry(Key(by.clone())).or_insert_with(|| {
        groups.push((by, aggregates.iter().map(Seen::nothing).collect()));
        groups.len() - 1
    });
    for (seen, (argument, share)) in groups[place].1.iter_mut().zip(given) {
        if let Some(share) = share {
            seen.share(&share)?;
        }
        match argument {
            Some(argument) => seen.value(argument)?,
            None => seen.row(),
        }
    }
    Ok(())
}

/// Equal rows stay in the order in which they came.
fn sort(rows: &mut [(Row<'_>, Row<'_>)], keys: &[(Code, bool)]) {
    rows.sort_by(|(a, _), (b, _)| {
        let pairs = a.iter().zip(b).zip(keys);
        let mut orders = pairs.map(
            |((a, b), (_, descending))| {
                if *descending { order(b, a) } else { order(a, b) }
            },
        );
        orders.find(|ordering| ordering.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
}

/// Gives what the stages kept, now that no more rows come.
fn finish<'a>(stages: &mut [Running<'a>], sink: Sink<'_, 'a>) -> Result<(), QueryError> {
    let Some((stage, rest)) = stages.split_first_mut() else { return Ok(()) };
    match std::mem::replace(&mut stage.kept, Kept::Nothing) {
        Kept::Groups { mut groups, .. } => {
            let Work::Group { keys, aggregates } = stage.work else { unreachable!("they group") };
            // Without keys there is one group, even of no rows.
            if groups.is_empty() && keys.is_empty() {
                groups.push((Vec::new(), aggregates.iter().map(Seen::nothing).collect()));
            }
            for (mut row, seen) in groups {
                row.extend(seen.into_iter().map(Seen::result));
                if push(rest, row, sink)?.is_break() {
                    break;
                }
            }
        }
        Kept::Rows { mut rows, .. } => {
            let Work::Sort(keys) = stage.work else { unreachable!("it sorts") };
            sort(&mut rows, keys);
            for (_, row) in rows {
                if push(rest, row, sink)?.is_break() {
                    break;
                }
            }
        }
        Kept::Nothing | Kept::Seen(_) | Kept::Left(_) => {}
    }
    finish(rest, sink)
}
