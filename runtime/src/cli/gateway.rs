//! `gateway`: a world to fail against, on loopback, and the tools that reach it.
//!
//! It books, pays, mails and publishes by writing a line to a ledger, and on demand it fails in
//! each way that a provider does. It is what `examples/payments` and its tests act on; the engine
//! knows nothing of it.

mod client;
mod ledger;
mod server;
mod wire;

use std::path::PathBuf;

use super::failure::Failure;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling gateway serve --ledger ledger.jsonl                     a gateway on port 8377
  starling gateway serve --ledger ledger.jsonl --modes modes.json  one that fails as the file says
  echo '{\"item\": \"hotel\"}' | GATEWAY=127.0.0.1:8377 starling gateway call pay";

/// A gateway on loopback that books, pays, mails and publishes, and fails on demand
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES, hide = true)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Serves until it is killed
    Serve {
        /// The file that each thing done is appended to
        #[arg(long, value_name = "FILE")]
        ledger: PathBuf,
        /// How single requests fail: {"pay:hotel": ["reply_lost", "ok"]}
        #[arg(long, value_name = "FILE")]
        modes: Option<PathBuf>,
        /// The port on loopback; 0 takes any and prints it
        #[arg(long, default_value_t = 8377)]
        port: u16,
    },
    /// Asks the gateway to do something: a tool, which reads its arguments as JSON
    Call {
        /// quote, book, pay, mail or publish
        what: String,
    },
    /// Asks the gateway what became of an action: the reconcile command of a tool
    Look {
        /// book, pay or publish
        what: String,
    },
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    match args.what {
        What::Serve { ledger, modes, port } => {
            server::serve(&ledger, modes.as_deref(), port, shell)
        }
        What::Call { what } => client::call(&what, shell),
        What::Look { what } => client::look(&what, shell),
    }
}
