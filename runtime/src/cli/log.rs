//! `log`: what happened, one sentence an event.

use log::{Address, Branch, Escapes, Event, Head, Log, LogError, Missing, Offset, Store};
use tokio::runtime::Builder;
use tokio::sync::watch;

use super::failure::Failure;
use super::sentence::Narrator;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling log                  the whole branch main
  starling log side -n 10       the last ten events of side
  starling log main@600 -n 5    the five events up to offset 600
  starling log --follow         and what happens from now on
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
    let shown = args.number.map_or(cut.count(), |number| number.min(cut.count()));
    let from = Offset::new(cut.count() - shown);
    let mut narrator = Narrator::default();
    show(&log, &branch, from, cut, shell, &mut narrator)?;
    if args.follow {
        return follow(&log, &branch, cut, shell, &mut narrator);
    }
    if cut == Head::EMPTY {
        shell.say(format_args!("{} has no events yet; next: starling append KIND", branch.name));
    }
    Ok(())
}

fn show(
    log: &Store,
    branch: &Branch,
    from: Offset,
    to: Head,
    shell: &mut Shell<'_>,
    narrator: &mut Narrator,
) -> Result<(), Failure> {
    let mut line = Vec::new();
    for event in log::read(log, branch.id, from..to.next())? {
        let event: Event = event?;
        line.clear();
        if shell.json() {
            log::write_line(log, &event, Escapes::Needed, &mut line)?;
        } else {
            line.extend_from_slice(narrator.line(&event).as_bytes());
            line.push(b'\n');
        }
        shell.out.write_all(&line)?;
    }
    Ok(shell.out.flush()?)
}

fn follow(
    log: &Store,
    branch: &Branch,
    shown: Head,
    shell: &mut Shell<'_>,
    narrator: &mut Narrator,
) -> Result<(), Failure> {
    let failed = |source| LogError::Io { doing: "starting to follow", source };
    let waiting = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut heads = log.watch(branch.id)?;
    let mut shown = shown;
    loop {
        let head = *heads.borrow_and_update();
        if head > shown {
            show(log, branch, shown.next(), head, shell, narrator)?;
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
