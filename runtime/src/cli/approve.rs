//! `approve`: a person lets an effect leave, or answers what was asked.

use serde_json::json;

use super::answer;
use super::failure::Failure;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling effects                       lists what waits, with its id
  starling approve 3f2a9c                it may leave
  starling approve 3f2a9c '\"window\"'     the answer to what was asked";

/// Approves an effect that waits for it, or answers a question
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The effect, by the first digits of its id
    id: String,
    /// The answer, as JSON or as a text
    answer: Option<String>,
    /// Who says so
    #[arg(long, value_name = "user:NAME")]
    actor: Option<String>,
}

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let answer = args.answer.as_deref().map(answer::value);
    let payload = json!({"action": args.id, "say": "approve", "answer": answer});
    let told = format!("{} is approved", args.id);
    answer::say("effect.answered", payload, args.actor.as_deref(), &told, shell)
}
