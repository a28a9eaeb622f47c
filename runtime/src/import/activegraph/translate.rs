//! Its events as ours: id, cause and changes of each.

mod changes;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use behaviors::is_runtime_kind;
use log::{BranchName, Cause, Derivation, Draft, Event, EventId, Head, Offset, Time};
use projection::Graph;
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use super::{Bad, ImportError, Row, Run};
use changes::Relations;

/// One run as a branch of ours.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) branch: BranchName,
    pub(super) run: String,
    /// The branch that it was forked from, and where.
    pub(super) parent: Option<(BranchName, Head)>,
    /// Its own events, and where each stood in the file.
    pub(super) events: Vec<(Event, log::Blobs, String)>,
    pub(super) notices: Vec<String>,
}

/// What is known of a translated run.
#[derive(Clone, Debug)]
struct Known {
    branch: BranchName,
    rows: Vec<Row>,
    /// The ids of its events with us, by theirs.
    ids: HashMap<String, EventId>,
    /// The world after the last row.
    world: World,
    /// The worlds at which other runs were forked, by the number of rows before them.
    forks: BTreeMap<usize, World>,
}

/// A graph, and what cannot stand in it yet.
#[derive(Clone, Debug, Default)]
struct World {
    graph: Graph,
    relations: Relations,
}

/// Translates runs, each after the one that it was forked from.
#[derive(Debug)]
pub(super) struct Translator {
    /// The branch, where there is only one run.
    alone: Option<BranchName>,
    /// The events at which any run was forked; those of a copied prefix are called the same.
    forks: BTreeSet<String>,
    known: BTreeMap<String, Known>,
}

/// What stands before a kind that is one of our runtime's, which it must not be taken for.
const PREFIX: &str = "activegraph";

impl Translator {
    /// A translator of these runs; where there is one, it becomes `branch`.
    pub(super) fn new(runs: &[Run], branch: &BranchName) -> Translator {
        let alone = (runs.len() == 1).then(|| branch.clone());
        let forks = runs.iter().filter_map(|run| run.parent.as_ref().map(|(_, at)| at.clone()));
        let forks = forks.collect();
        Translator { alone, forks, known: BTreeMap::new() }
    }

    /// Translates one run. Also tells the rows that could not be.
    pub(super) fn run(&mut self, run: &Run) -> Result<(Line, Vec<Bad>), ImportError> {
        let branch = match &self.alone {
            Some(branch) => branch.clone(),
            None => run.id.parse().map_err(|error: log::NameError| ImportError::Name {
                run: run.id.clone(),
                what: error.to_string(),
            })?,
        };
        let (shared, mut notices) = self.shared(run);
        let parent = shared
            .as_ref()
            .map(|(from, count)| (self.known[from].branch.clone(), Head::of_count(*count as u64)));
        let mut known = match shared {
            Some((from, count)) => self.known[&from].up_to(count, branch.clone()),
            None => Known::of(branch.clone()),
        };
        let (mut events, mut bad) = (Vec::new(), Vec::new());
        let mut loose = 0;
        for row in &run.rows[known.rows.len()..] {
            match known.add(run, row) {
                Err(what) => bad.push(Bad { place: row.place.clone(), what }),
                Ok((event, blobs)) => {
                    loose += u64::from(row.cause.is_some() && event.cause().is_none());
                    events.push((event, blobs, row.place.clone()));
                }
            }
            if self.forks.contains(&row.id) {
                known.forks.insert(known.rows.len(), known.world.clone());
            }
        }
        if loose > 0 {
            notices.push(format!(
                "{loose} events name a cause that is no event of the run before them"
            ));
        }
        let waiting = known.world.relations.waiting();
        if waiting > 0 {
            notices.push(format!(
                "{waiting} relations have an end that is not there: their events are kept, and each \
                 becomes an edge once both ends are"
            ));
        }
        self.known.insert(run.id.clone(), known);
        Ok((Line { branch, run: run.id.clone(), parent, events, notices }, bad))
    }

    /// The run that this one was forked from, and how many rows they share.
    fn shared(&self, run: &Run) -> (Option<(String, usize)>, Vec<String>) {
        let Some((parent, at)) = &run.parent else { return (None, Vec::new()) };
        let apart = |why: &str| {
            let what = format!("it was forked from {parent} at {at}, {why}: a branch of its own");
            (None, vec![what])
        };
        let Some(known) = self.known.get(parent) else { return apart("which is not there") };
        let Some(last) = known.rows.iter().position(|row| row.id == *at) else {
            return apart("which has no such event");
        };
        let count = last + 1;
        let copied = run.rows.len() >= count;
        let same = copied && run.rows.iter().zip(&known.rows[..count]).all(|(a, b)| a.same(b));
        if same {
            (Some((parent.clone(), count)), Vec::new())
        } else {
            apart("but its copy differs")
        }
    }
}

impl Known {
    fn of(branch: BranchName) -> Known {
        let (rows, ids, forks) = (Vec::new(), HashMap::new(), BTreeMap::new());
        Known { branch, rows, ids, world: World::default(), forks }
    }

    /// What a fork after so many rows knows.
    fn up_to(&self, count: usize, branch: BranchName) -> Known {
        let rows = self.rows[..count].to_vec();
        let ids = rows.iter().map(|row| (row.id.clone(), self.ids[&row.id])).collect();
        let forks = self.forks.range(..=count).map(|(at, world)| (*at, world.clone())).collect();
        let world = self.forks.get(&count).expect("a world is kept where a run is forked").clone();
        Known { branch, rows, ids, world, forks }
    }

    /// Translates the next row, or says what is wrong with it.
    fn add(&mut self, run: &Run, row: &Row) -> Result<(Event, log::Blobs), String> {
        if self.ids.contains_key(&row.id) {
            return Err(format!("the event `{}` stands in its run already", row.id));
        }
        let mut relations = self.world.relations.clone();
        let base = if self.rows.is_empty() { run.base.as_ref() } else { None };
        let draft = draft(run, row, self, base, &mut relations)?;
        let offset = Offset::new(self.rows.len() as u64);
        let encoded = Event::encode(&draft, offset).map_err(|error| error.to_string())?;
        self.world.graph.apply(&encoded.0).map_err(|refusal| refusal.to_string())?;
        self.world.relations = relations;
        self.ids.insert(row.id.clone(), encoded.0.id());
        self.rows.push(row.clone());
        Ok(encoded)
    }
}

/// The event of a row.
fn draft(
    run: &Run,
    row: &Row,
    known: &Known,
    base: Option<&Value>,
    relations: &mut Relations,
) -> Result<Draft, String> {
    let id = Derivation::new().text(PREFIX).text(&run.id).text(&row.id).finish();
    let kind: SmolStr = if is_runtime_kind(&row.kind) {
        format!("{PREFIX}.{}", row.kind).into()
    } else {
        row.kind.as_str().into()
    };
    let actor = row.actor.as_deref().filter(|actor| !actor.is_empty()).unwrap_or("unknown");
    let cause = row.cause.as_ref().and_then(|cause| known.ids.get(cause));
    let cause = cause.map(|cause| cause_of(row, actor, *cause));
    let mut changes = match base {
        None => Vec::new(),
        Some(base) => changes::of_base(base, relations)?,
    };
    changes.extend(changes::of_row(row, &known.world.graph, relations)?);
    let imported = json!({
        "from": PREFIX, "run": run.id, "id": row.id, "type": row.kind, "caused_by": row.cause,
        "frame_id": row.frame, "timestamp": row.time,
    });
    let extra = Map::from_iter([(super::super::MARK.to_owned(), imported)]);
    let payload = row.payload.clone();
    // Time is data; what cannot be read as one stands as it was in `imported`.
    let time = row.time.parse().unwrap_or(Time::EPOCH);
    Ok(Draft { payload, changes, cause, time, extra, ..Draft::new(id, kind, actor) })
}

/// An answer is caused by what asked, anything else by the event that its behavior was woken by.
fn cause_of(row: &Row, actor: &str, event: EventId) -> Cause {
    if row.kind.ends_with(".responded") {
        return Cause::Action { action: event };
    }
    let behavior = row.payload.get("behavior").and_then(Value::as_str).unwrap_or(actor);
    Cause::Firing { event, behavior: behavior.into(), row: Vec::new() }
}
