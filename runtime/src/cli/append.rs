//! `append`: events from outside, from a person or another program.

mod lines;
mod outside;

use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use log::{Appended, Branch, Draft, Head, Log, Missing, Offer, Offset, Store};
use serde_json::{Value, json};

use self::lines::Line;
pub(super) use self::outside::actor;
use self::outside::{Outside, draft};
use super::failure::Failure;
use super::shell::{Shell, counted};
use crate::tags;

const EXAMPLES: &str = "\
Examples:
  starling append note.added '{\"text\": \"hello\"}'
  starling append order.placed '{\"sum\": 12.5}' --key order-7      takes effect once
  starling append task.done --actor user:ann --expect 41          only if 41 is the last offset
  starling append task.added --changes '[{\"create\": \"task:1\", \"type\": \"Task\"}]'
  producer | starling append -      lines {\"kind\", \"payload\", \"changes\"?, \"key\"?, \"actor\"?}";

/// How many lines land together at most.
const BATCH_LINES: usize = 1000;

/// Appends an event, or one for each line of standard input; makes the store if there is none
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// What happened, in dotted lower-case words; `-` reads events from standard input
    kind: String,
    /// The domain's words, as a JSON object
    #[arg(value_name = "JSON")]
    payload: Option<String>,
    /// What it does to the graph, as a JSON list
    #[arg(long, value_name = "JSON")]
    changes: Option<String>,
    /// Who says so
    #[arg(long, value_name = "user:NAME")]
    actor: Option<String>,
    /// Takes effect once: the same again changes nothing, other content is a conflict
    #[arg(long)]
    key: Option<String>,
    /// Refuse unless this is the last offset (`none` on an empty branch)
    #[arg(long, value_name = "OFFSET", value_parser = head)]
    expect: Option<Head>,
}

fn head(text: &str) -> Result<Head, String> {
    if text == "none" {
        return Ok(Head::EMPTY);
    }
    let offset: Option<u64> = text.parse().ok().filter(|offset| *offset < u64::MAX);
    let offset = offset.ok_or_else(|| "the last offset, a whole number, or `none`".to_owned())?;
    Ok(Head::after(Offset::new(offset)))
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let actor = actor(args.actor.as_deref())?;
    if args.kind == "-" {
        if args.payload.is_some() || args.changes.is_some() || args.key.is_some() {
            let what = "with `-` payload, changes and key stand in the lines";
            return Err(Failure::Usage(what.to_owned()));
        }
        return run_lines(&actor, args.expect, shell);
    }
    let payload = args.payload.as_deref().map(outside::payload).transpose()?;
    let changes = args.changes.as_deref().map(outside::changes).transpose()?;
    let said = Outside {
        kind: args.kind,
        payload: payload.unwrap_or_default(),
        changes: changes.unwrap_or_default(),
        key: args.key,
        actor,
    };
    let draft = draft(said)?;
    let (log, branch) = open(shell)?;
    let id = draft.id;
    let appended = offer(&log, &branch, vec![draft], args.expect)?;
    tell(shell, &branch, &appended, &[id])?;
    if appended.landed.iter().any(|landed| landed.repeated) {
        shell.say("it was there already, by its key; nothing was written");
    }
    if shell.made_store() {
        shell.say("next: starling log");
    }
    Ok(())
}

/// Lands what is there in one batch, and does not wait for more while something is there: so a slow
/// producer's line lands at once, and a fast one's land by the thousand.
fn run_lines(actor: &str, expect: Option<Head>, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let (log, branch) = open(shell)?;
    let (sender, incoming) = sync_channel(2 * BATCH_LINES);
    let (input, actor) = (shell.take_input(), actor.to_owned());
    let reading = thread::Builder::new().name("standard input".to_owned());
    let reading = reading.spawn(move || lines::read(input, &actor, &sender));
    reading.map_err(|error| Failure::Failed(format!("standard input cannot be read: {error}")))?;
    let (mut expect, mut landed) = (expect, 0);
    while let Some((drafts, last, bad)) = next_batch(&incoming) {
        if !drafts.is_empty() {
            let ids: Vec<_> = drafts.iter().map(|draft| draft.id).collect();
            let first = last + 1 - drafts.len() as u64;
            let appended = offer(&log, &branch, drafts, expect).map_err(|failure| {
                failure.reworded(|words| {
                    format!(
                        "lines {first} to {last} were not appended, {landed} before were: {words}"
                    )
                })
            })?;
            landed += ids.len();
            expect = expect.map(|_| appended.head);
            tell(shell, &branch, &appended, &ids)?;
            shell.out.flush()?;
        }
        if let Some(failure) = bad {
            let after = format!("{landed} lines before it were appended");
            return Err(failure.reworded(|words| format!("{words}; {after}")));
        }
    }
    let events = counted(landed as u64, "event");
    shell.say(format_args!("appended {events} to {}", branch.name));
    Ok(())
}

/// The next drafts, the number of the last line, and what is wrong with the line after them.
type Batched = (Vec<Draft>, u64, Option<Failure>);

fn next_batch(incoming: &Receiver<Line>) -> Option<Batched> {
    let (mut drafts, mut last) = (Vec::new(), 0);
    let mut next = incoming.recv().ok();
    while let Some(line) = next {
        last = line.number;
        match line.draft {
            Err(failure) => return Some((drafts, last - 1, Some(failure))),
            Ok(draft) => drafts.push(draft),
        }
        next = if drafts.len() < BATCH_LINES { incoming.try_recv().ok() } else { None };
    }
    (!drafts.is_empty()).then_some((drafts, last, None))
}

/// Opens the store, which is made if need be, as is its branch `main`.
fn open(shell: &mut Shell<'_>) -> Result<(std::sync::Arc<Store>, Branch), Failure> {
    let log = shell.open(Missing::Create)?;
    let name = shell.branch_name();
    if name.as_str() == tags::BRANCH {
        let what = format!("`{name}` holds the tags of this store; `starling tag` writes there");
        return Err(Failure::Usage(what));
    }
    if log.branches()?.is_empty() && name == log::BranchName::main() {
        match log.create(&name) {
            Ok(_) | Err(log::LogError::BranchExists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let branch = shell.branch(&*log, &name)?;
    Ok((log, branch))
}

fn offer(
    log: &Store,
    branch: &Branch,
    drafts: Vec<Draft>,
    expected: Option<Head>,
) -> Result<Appended, Failure> {
    let answer = log.offer(branch.id, Offer { drafts, expected }).wait();
    let gone = || {
        Failure::Failed(format!(
            "the engine that runs {} let go of it unanswered; see whether it is in `starling log`, and \
             give it a --key to try again safely",
            branch.name
        ))
    };
    let named = |words: &str| words.replace(&branch.id.to_string(), branch.name.as_str());
    answer.ok_or_else(gone)?.map_err(|error| Failure::from(error).reworded(named))
}

fn tell(
    shell: &mut Shell<'_>,
    branch: &Branch,
    appended: &Appended,
    ids: &[log::EventId],
) -> Result<(), Failure> {
    for (landed, id) in appended.landed.iter().zip(ids) {
        let address = format!("{}@{}", branch.name, landed.offset);
        let json = || -> Value {
            json!({
                "branch": branch.name.as_str(),
                "offset": landed.offset.get(),
                "id": id.to_string(),
                "repeated": landed.repeated,
            })
        };
        shell.either(json, || address.clone())?;
    }
    Ok(())
}

/// The events in a file of lines, as `starling append -` reads them.
pub(super) fn drafts_of(file: &Path) -> Result<Vec<Draft>, Failure> {
    let opened = std::fs::File::open(file);
    let opened = opened.map_err(|error| {
        Failure::NotFound(format!("{} cannot be read: {error}", file.display()))
    })?;
    let actor = actor(None)?;
    let input = Box::new(std::io::BufReader::new(opened));
    let (sender, incoming) = sync_channel(2 * BATCH_LINES);
    let reading = thread::spawn(move || lines::read(input, &actor, &sender));
    let drafts = incoming.iter().map(|line| line.draft).collect::<Result<_, _>>();
    drop(reading.join());
    drafts.map_err(|failure| failure.reworded(|words| format!("{}: {words}", file.display())))
}
