//! `settle`: a person says what became of an effect of which nobody else can know.

use clap::ValueEnum;
use serde_json::{Value, json};

use super::answer;
use super::failure::Failure;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling effects                                  lists what is unknown, with its id
  starling settle 3f2a9c succeeded '{\"id\": 41}'     it was done, with this result
  starling settle 3f2a9c failed                     it was not done";

/// What became of it.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Became {
    /// It was done
    Succeeded,
    /// It was not done
    Failed,
}

/// Says what became of an effect whose outcome is unknown
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The effect, by the first digits of its id
    id: String,
    /// What became of it
    became: Became,
    /// Its result, as JSON or as a text
    result: Option<String>,
    /// Who says so
    #[arg(long, value_name = "user:NAME")]
    actor: Option<String>,
}

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let succeeded = matches!(args.became, Became::Succeeded);
    let result = args.result.as_deref().map_or(Value::Null, answer::value);
    let payload =
        json!({"action": args.id, "say": "settle", "succeeded": succeeded, "result": result});
    let word = if succeeded { "succeeded" } else { "failed" };
    let told = format!("{} is settled: it {word}", args.id);
    answer::say("effect.answered", payload, args.actor.as_deref(), &told, shell)
}
