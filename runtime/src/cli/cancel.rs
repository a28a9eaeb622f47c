//! `cancel`: a person ends what is open. What has not left does not leave any more, what is out is
//! told to end.

use log::EventId;
use serde_json::json;

use super::answer;
use super::failure::Failure;
use super::shell::Shell;
use crate::effect::Scope;

const EXAMPLES: &str = "\
Examples:
  starling cancel 3f2a9c…(32 digits)       one effect
  starling cancel --all                    all that is open on the branch
  starling cancel --goal ID                all that followed from one event, now and later";

/// Cancels open effects
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The effect, by the first digits of its id
    #[arg(required_unless_present_any = ["all", "goal", "firing"])]
    id: Option<String>,
    /// All that is open on the branch
    #[arg(long, conflicts_with_all = ["id", "goal", "firing"])]
    all: bool,
    /// All that followed from an event from outside, by the event's whole id
    #[arg(long, value_name = "EVENT", conflicts_with_all = ["id", "firing"])]
    goal: Option<EventId>,
    /// All that one firing asked for, by the `taken` of its events
    #[arg(long, value_name = "TAKEN", conflicts_with = "id")]
    firing: Option<u64>,
    /// Why
    #[arg(long, default_value = "")]
    reason: String,
    /// Who says so
    #[arg(long, value_name = "user:NAME")]
    actor: Option<String>,
}

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let scope = match (&args.id, args.goal, args.firing) {
        (Some(id), _, _) => json!({"effect": id}),
        (None, Some(goal), _) => Scope::Goal(goal).to_json(),
        (None, None, Some(taken)) => Scope::Firing(taken).to_json(),
        (None, None, None) => Scope::Branch.to_json(),
    };
    let payload = json!({"scope": scope, "reason": args.reason});
    let told = "it is cancelled: nothing of it leaves any more";
    answer::say("effect.cancelling", payload, args.actor.as_deref(), told, shell)
}
