//! `enable`: a person switches a behavior on again, whether its flock runs or not.

use serde_json::json;

use super::answer;
use super::failure::Failure;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling enable greet_guest               it is as if it were just loaded";

/// Switches a behavior on again: it is as if it were just loaded
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
    let told = format!("{} is enabled", args.name);
    let payload = json!({"name": args.name});
    answer::say("behavior.enabled", payload, args.actor.as_deref(), &told, shell)
}
