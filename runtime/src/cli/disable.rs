//! `disable`: a person switches a behavior off, whether its flock runs or not.

use serde_json::json;

use super::answer;
use super::failure::Failure;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling disable greet_guest              until it is enabled again";

/// Switches a behavior off: what waits of it is withdrawn, and its file stays
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The behavior's name
    name: String,
    /// Who says so
    #[arg(long, value_name = "user:NAME")]
    actor: Option<String>,
}

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let told = format!("{} is disabled", args.name);
    let payload = json!({"name": args.name});
    answer::say("behavior.disabled", payload, args.actor.as_deref(), &told, shell)
}
