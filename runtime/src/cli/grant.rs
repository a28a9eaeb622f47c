//! `grant`: a person lets effects leave that the flock does not grant, or takes that back.

use behaviors::KindPattern;
use serde_json::json;

use super::answer;
use super::failure::Failure;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling grant tool:pay_flight            from now on
  starling grant 'tool:*' --revoke          not any more";

/// Grants effects on a branch, or takes them back
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// An effect, or a glob over effects
    effect: String,
    /// Take it back
    #[arg(long)]
    revoke: bool,
    /// Who says so
    #[arg(long, value_name = "user:NAME")]
    actor: Option<String>,
}

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    KindPattern::parse(&args.effect).map_err(Failure::Usage)?;
    let (kind, word) =
        if args.revoke { ("grant.revoked", "taken back") } else { ("grant.given", "granted") };
    let told = format!("{} is {word}", args.effect);
    let payload = json!({"effects": [args.effect]});
    answer::say(kind, payload, args.actor.as_deref(), &told, shell)
}
