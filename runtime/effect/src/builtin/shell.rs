//! `shell`: a program and its arguments, never a line that a shell would take apart.
//!
//! It writes in the workspace and has no network. What it may have done is not known from outside:
//! its class is opaque.

use serde_json::{Value, json};

use super::Policy;
use super::local::no_workspace;
use super::worktree;
use crate::answer::{Answer, Seen};
use crate::call::Call;
use crate::class::Class;
use crate::error::{Blame, EffectError};
use crate::executor::{Executor, Limits, Pending};
use crate::process::{Command, Done, How, is_long};
use crate::sandbox::Confines;
use crate::schema::Schema;
use crate::tools::judge::cut_short;
use crate::tools::tool::no_reconcile;

/// Runs programs in the workspace.
#[derive(Debug)]
pub(super) struct Shell {
    policy: Policy,
    schema: Schema,
}

impl Shell {
    pub(super) fn new(policy: &Policy) -> Self {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["argv"],
            "properties": {
                "argv": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                "input": {"type": "string", "default": ""},
            },
        });
        let schema = Schema::new(schema).expect("a built-in schema is one");
        Shell { policy: policy.clone(), schema }
    }

    async fn act(&self, call: &Call) -> Answer {
        if call.cancel.is_cancelled() {
            return Answer::Cancelled;
        }
        let words = call.args["argv"].as_array().into_iter().flatten();
        let argv: Vec<String> = words.filter_map(|word| word.as_str().map(str::to_owned)).collect();
        let input = call.args["input"].as_str().unwrap_or("").as_bytes().to_vec();
        let done = run(&self.policy, call, argv, input, Writes::Yes).await;
        match done {
            Ok(done) => answer(&done),
            Err(error) => Answer::Failed(error),
        }
    }
}

/// Whether a program may change the workspace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Writes {
    Yes,
    No,
}

/// Runs a program in the workspace, without network.
pub(super) async fn run(
    policy: &Policy,
    call: &Call,
    argv: Vec<String>,
    input: Vec<u8>,
    writes: Writes,
) -> Result<Done, EffectError> {
    let workspace = call.workspace.as_ref().ok_or_else(no_workspace)?;
    let mut also = (Vec::new(), Vec::new());
    if let Some(shared) = worktree::shared(workspace) {
        // A commit in a second working tree adds objects to the repository; its branches, settings
        // and hooks are not written from here.
        if writes == Writes::Yes && call.effect == "git.commit" {
            also.1.extend([shared.common.join("objects"), shared.own]);
        }
        also.0.push(shared.common);
    }
    let canonical = |path: &std::path::Path| path.canonicalize().unwrap_or_else(|_| path.into());
    let command = Command {
        argv,
        env: Vec::new(),
        input,
        sandbox: policy.sandbox,
        confines: Confines {
            flock: Some(canonical(&policy.flock)),
            workspace: Some(canonical(workspace)),
            writes: writes == Writes::Yes,
            network: false,
            reads: also.0,
            also_writes: also.1,
        },
        memory_bytes: None,
    };
    command.run(call, &Limits::default()).await
}

/// A program that ended with another code than 0 has failed, and what it wrote says why.
fn answer(done: &Done) -> Answer {
    match &done.how {
        How::Exit(0) => Answer::Succeeded {
            result: json!({"exit": 0, "stdout": done.out.text(), "stderr": done.err.text()}),
            fingerprint: None,
        },
        How::Exit(code) => Answer::Failed(failure(*code, done)),
        how => cut_short(Class::Opaque, how, &done.err),
    }
}

/// A failure with all that the program wrote, or an excerpt and all of it beside.
pub(super) fn failure(code: i32, done: &Done) -> EffectError {
    let (out, err) = (done.out.text(), done.err.text());
    if code == 1 && out.is_empty() && err.starts_with("bwrap: ") {
        return crate::tools::judge::not_started(&err);
    }
    let sign = |line: &&str| line.to_lowercase().contains("error");
    let first = err.lines().chain(out.lines()).find(sign).or_else(|| err.lines().next());
    let head = format!("exit code {code}: {}", first.unwrap_or("it says nothing"));
    let all = format!("{err}\n{out}");
    let error =
        |what: &str| EffectError::new("process.exit", Blame::Tool, what, "see what it wrote");
    if is_long(&all) {
        error(&head).with_output(all)
    } else {
        error(format!("{head}\n{all}").trim_end())
    }
}

impl Executor for Shell {
    fn class(&self) -> Class {
        Class::Opaque
    }

    fn limits(&self) -> Limits {
        Limits { timeout: std::time::Duration::from_secs(600), ..Limits::default() }
    }

    fn check(&self, args: &Value) -> Result<Value, EffectError> {
        let args = self.schema.arguments("shell", args)?;
        let empty = args["argv"][0].as_str().is_none_or(str::is_empty);
        let mut words = args["argv"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if empty || words.any(|word| word.contains('\0')) {
            return Err(EffectError::new(
                "arguments.argv",
                Blame::Caller,
                "`argv` names no program, or has a NUL in it",
                "give the program and its arguments as a list",
            ));
        }
        Ok(args)
    }

    fn run<'a>(&'a self, call: &'a Call) -> Pending<'a, Answer> {
        Box::pin(self.act(call))
    }

    fn look<'a>(&'a self, _call: &'a Call, _intent: &'a Value) -> Pending<'a, Seen> {
        Box::pin(async { no_reconcile(Class::Opaque) })
    }
}
