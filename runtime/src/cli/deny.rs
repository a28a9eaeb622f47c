//! `deny`: a person refuses an effect, or answers a question with no.

use serde_json::json;

use super::answer;
use super::failure::Failure;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling deny 3f2a9c
  starling deny 3f2a9c 'too expensive'";

/// Refuses an effect that waits for approval, or answers a question with no
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The effect, by the first digits of its id
    id: String,
    /// Why
    reason: Option<String>,
    /// Who says so
    #[arg(long, value_name = "user:NAME")]
    actor: Option<String>,
}

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let reason = args.reason.unwrap_or_default();
    let payload = json!({"action": args.id, "say": "deny", "reason": reason});
    let told = format!("{} is denied", args.id);
    answer::say("effect.answered", payload, args.actor.as_deref(), &told, shell)
}
