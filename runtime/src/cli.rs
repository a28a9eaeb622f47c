//! The commands of `starling`: data goes to standard output, messages to standard error.
//!
//! A command is one file here: `Args`, whose doc comment is its help, and `run`. It is added by its
//! `mod` line and its line in `commands!`.

mod answer;
mod append;
mod approve;
mod attempt;
mod backup;
mod behaviors;
mod bisect;
mod blame;
mod branches;
mod cancel;
mod check;
mod check_test;
mod deny;
mod diff;
mod disable;
mod effects;
mod enable;
mod explain;
mod export;
mod failure;
mod fork;
mod gateway;
mod grant;
mod graph;
mod impact;
mod import;
mod log;
mod new;
mod place;
mod promote;
mod query;
mod replay;
mod rerun;
mod run;
mod sentence;
mod settle;
mod shell;
mod show;
mod subject;
mod tag;
mod test;
mod verify;
mod why;
mod world;

use std::ffi::OsString;
use std::io::{BufRead, Write};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use failure::Failure;
use shell::{Common, Shell};

/// Lists the commands: name of the variant and its module.
macro_rules! commands {
    ($($name:ident = $module:ident)*) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $($name($module::Args),)*
        }

        impl Command {
            fn run(self, shell: &mut Shell<'_>) -> Result<(), Failure> {
                match self {
                    $(Command::$name(args) => $module::run(args, shell),)*
                }
            }

            fn name(&self) -> String {
                match self {
                    $(Command::$name(_) => stringify!($name).to_lowercase(),)*
                }
            }
        }
    };
}

commands! {
    Run = run
    New = new
    Log = log
    Show = show
    Graph = graph
    Query = query
    Why = why
    Impact = impact
    Blame = blame
    Bisect = bisect
    Diff = diff
    Tag = tag
    Explain = explain
    Check = check
    Try = attempt
    Test = test
    Behaviors = behaviors
    Replay = replay
    Append = append
    Effects = effects
    Approve = approve
    Deny = deny
    Settle = settle
    Cancel = cancel
    Grant = grant
    Disable = disable
    Enable = enable
    Branches = branches
    Fork = fork
    Promote = promote
    Rerun = rerun
    Verify = verify
    Import = import
    Export = export
    Backup = backup
    Gateway = gateway
}

/// An append-only log that projects into a graph, and behaviors that react to it.
#[derive(Debug, Parser)]
#[command(name = "starling", version, before_help = EXAMPLES, after_help = AFTER)]
struct Line {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  starling run examples/bridge                      a colony agrees on a bridge, nobody leads
  starling append note.added '{\"text\": \"hello\"}'   makes a store, appends an event
  starling log                                      shows what happened
  starling fork main@0 idea                         a branch from there, nothing copied
  starling export > main.jsonl                      the branch as lines of JSON";

const AFTER: &str = "\
A store is a file. It is named by --store, else by STARLING_STORE, else it is
.starling/store.redb in this folder or the nearest one above. While a process has it open,
every other command works through that process. STARLING_LOG=debug shows what happens inside.
An address is BRANCH@OFFSET: main@42, main@head, main@head~5.
Exit codes: 0 done, 1 failed or different, 2 wrong usage, 3 not found, 4 damaged, 5 diverged,
6 conflict, 130 interrupted.";

const TEMPLATE: &str =
    "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// Shows what happens inside, if `STARLING_LOG` asks for it: `STARLING_LOG=debug starling run …`.
pub fn trace() {
    let Ok(filter) = std::env::var("STARLING_LOG") else { return };
    let filter = tracing_subscriber::EnvFilter::new(filter);
    let tracing = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Somebody who set up another one keeps it.
    drop(tracing.try_init());
}

/// Runs the command that `args` spell, and gives the exit code.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    input: Box<dyn BufRead + Send>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let command = Line::command().help_template(TEMPLATE);
    let mut command = command.mut_subcommands(|command| command.help_template(TEMPLATE));
    let line = command.try_get_matches_from_mut(args);
    let line = line.and_then(|matches| Line::from_arg_matches(&matches));
    let line = match line {
        Ok(line) => line,
        Err(asked) => {
            // Help that was asked for is data; a wrong line is told as a message.
            let (to, code): (&mut dyn Write, u8) =
                if asked.use_stderr() { (err, 2) } else { (out, 0) };
            drop(write!(to, "{}", asked.render()).and_then(|()| to.flush()));
            return code;
        }
    };
    let json = line.common.json;
    let name = line.command.name();
    let done = {
        let mut shell = Shell::new(line.common, &name, input, out, err);
        let done = line.command.run(&mut shell);
        done.and_then(|()| shell.finish())
    };
    done.map_or_else(|failure| failure.tell(err, json), |()| 0)
}
