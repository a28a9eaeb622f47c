//! `log`: what happened, one sentence an event.

mod filter;

use std::collections::VecDeque;

use log::{Address, Branch, Escapes, Event, Head, Log, LogError, Missing, Offset, Store};
use tokio::runtime::Builder;
use tokio::sync::watch;

use self::filter::{Chosen, Filter};
use super::failure::Failure;
use super::sentence::Narrator;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling log                  the whole branch main
  starling log side -n 10       the last ten events of side
  starling log main@600 -n 5    the five events up to offset 600
  starling log --follow         and what happens from now on
  starling log --kind 'effect.*' --actor 'behavior:pay*' -n 10
  starling log --node trip:1    what wrote it, linked to it or fired on it
  starling log --cause main@42  the chain of causes that led to an event
  starling log --match '(:Trip {status: \"closed\"})'   what made it true, or false again
  starling log --json | jq .kind";

/// Shows what happened: offset, who, what kind, what it did, and why
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// What to show: a branch, or one up to an offset; main if none is named
    #[arg(value_name = "ADDRESS|BRANCH")]
    address: Option<Address>,
    /// Go on with events as they come
    #[arg(long, short)]
    follow: bool,
    /// The last N events only
    #[arg(short, value_name = "N")]
    number: Option<u64>,
    #[command(flatten)]
    filter: Filter,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let log = shell.open(Missing::Refuse)?;
    let address = shell.address(args.address);
    let (branch, cut) = shell.resolve(&*log, &address)?;
    if args.follow && address.at != log::At::BeforeHead(0) {
        return Err(Failure::Usage(format!(
            "--follow goes on from the end of a branch: write {} instead of {address}",
            branch.name
        )));
    }
    let mut teller = Teller {
        narrator: Narrator::default(),
        chosen: args.filter.choose(&log, &branch, &address, shell)?,
        last: None,
    };
    let mut from = Offset::ZERO;
    if let Some(number) = args.number {
        if teller.chosen.is_all() {
            from = Offset::new(cut.count() - number.min(cut.count()));
        } else {
            teller.last = Some((number, VecDeque::new()));
        }
    }
    teller.show(&log, &branch, from, cut, shell)?;
    if let Some((_, lines)) = teller.last.take() {
        lines.iter().try_for_each(|line| shell.out.write_all(line))?;
    }
    if args.follow {
        shell.out.flush()?;
        return follow(&log, &branch, cut, shell, &mut teller);
    }
    if cut == Head::EMPTY {
        shell.say(format_args!("{} has no events yet; next: starling append KIND", branch.name));
    }
    Ok(())
}

/// Tells the events that were chosen.
struct Teller {
    narrator: Narrator,
    chosen: Chosen,
    /// So many lines at most, the last ones, are kept and told in the end.
    last: Option<(u64, VecDeque<Vec<u8>>)>,
}

impl Teller {
    fn show(
        &mut self,
        log: &Store,
        branch: &Branch,
        from: Offset,
        to: Head,
        shell: &mut Shell<'_>,
    ) -> Result<(), Failure> {
        for event in log::read(log, branch.id, from..to.next())? {
            let event: Event = event?;
            if !self.chosen.accepts(&event)? {
                self.narrator.remember(&event);
                continue;
            }
            let mut line = Vec::new();
            if shell.json() {
                log::write_line(log, &event, Escapes::Needed, &mut line)?;
            } else {
                line.extend_from_slice(self.narrator.line(&event).as_bytes());
                line.push(b'\n');
            }
            let Some((most, lines)) = &mut self.last else {
                shell.out.write_all(&line)?;
                continue;
            };
            lines.push_back(line);
            if lines.len() as u64 > *most {
                lines.pop_front();
            }
        }
        Ok(shell.out.flush()?)
    }
}

fn follow(
    log: &Store,
    branch: &Branch,
    shown: Head,
    shell: &mut Shell<'_>,
    teller: &mut Teller,
) -> Result<(), Failure> {
    let failed = |source| LogError::Io { doing: "starting to follow", source };
    let waiting = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut heads = log.watch(branch.id)?;
    let mut shown = shown;
    loop {
        let head = *heads.borrow_and_update();
        if head > shown {
            teller.show(log, branch, shown.next(), head, shell)?;
            shown = head;
        }
        waiting.block_on(changed(&mut heads))?;
    }
}

async fn changed(heads: &mut watch::Receiver<Head>) -> Result<(), Failure> {
    let gone = || Failure::Failed("the store has stopped".to_owned());
    tokio::select! {
        changed = heads.changed() => changed.map_err(|_| gone()),
        // Where the signal cannot be caught it ends the process by itself.
        Ok(()) = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    }
}
