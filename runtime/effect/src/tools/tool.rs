//! A tool that is a command: arguments on its standard input, the result on its standard output.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::file::{Runs, ToolFile, Want};
use super::judge;
use crate::answer::{Answer, Seen};
use crate::call::Call;
use crate::class::Class;
use crate::error::{Blame, EffectError};
use crate::executor::{Executor, Limits, Pending};
use crate::process::Command;
use crate::sandbox::{Confines, Sandbox};

/// A command of a flock.
#[derive(Debug)]
pub(super) struct Tool {
    file: Arc<ToolFile>,
    place: Place,
}

/// Where the commands of a tool file run, and under what.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) flock: PathBuf,
    pub(crate) sandbox: Sandbox,
}

impl Tool {
    pub(super) fn new(file: ToolFile, flock: &Path, sandbox: Sandbox) -> Self {
        Tool { file: Arc::new(file), place: Place { flock: flock.to_owned(), sandbox } }
    }

    async fn act(&self, call: &Call) -> Answer {
        let Runs::Command(argv) = &self.file.runs else {
            unreachable!("a server is no command");
        };
        if call.cancel.is_cancelled() {
            return Answer::Cancelled;
        }
        let command = match self.place.command(&self.file, argv, call) {
            Ok(command) => command,
            Err(error) => return Answer::Failed(error),
        };
        match command.run(call, &self.file.limits).await {
            Ok(done) => judge::answer(&self.file, &done),
            Err(error) => Answer::Failed(error),
        }
    }
}

/// Asks the file's command what became of an attempt.
pub(crate) async fn reconcile(place: &Place, file: &ToolFile, class: Class, call: &Call) -> Seen {
    let Some(argv) = &file.reconcile else {
        return no_reconcile(class);
    };
    let mut command = match place.command(file, argv, call) {
        Ok(command) => command,
        Err(error) => return Seen::Unreachable(error),
    };
    command.confines.writes = false;
    match command.run(call, &file.limits).await {
        Ok(done) => judge::seen(file, &done),
        Err(error) => Seen::Unreachable(error),
    }
}

/// What can be said of a tool that cannot be asked.
pub(crate) fn no_reconcile(class: Class) -> Seen {
    if class == Class::ReadOnly {
        // There is nothing that could have taken effect.
        return Seen::Absent;
    }
    let what = "the tool has no command that says what became of an attempt";
    Seen::Unreachable(EffectError::new(
        "reconcile.none",
        Blame::Tool,
        what,
        "find out by hand, or give the tool `reconcile`",
    ))
}

impl Executor for Tool {
    fn class(&self) -> Class {
        self.file.class
    }

    fn limits(&self) -> Limits {
        self.file.limits
    }

    fn check(&self, args: &Value) -> Result<Value, EffectError> {
        self.file.args.arguments(&format!("tool:{}", self.file.name), args)
    }

    fn run<'a>(&'a self, call: &'a Call) -> Pending<'a, Answer> {
        Box::pin(self.act(call))
    }

    fn look<'a>(&'a self, call: &'a Call, _intent: &'a Value) -> Pending<'a, Seen> {
        Box::pin(reconcile(&self.place, &self.file, self.file.class, call))
    }
}

impl Place {
    /// A command of a tool file, for one attempt.
    pub(crate) fn command(
        &self,
        file: &ToolFile,
        argv: &[String],
        call: &Call,
    ) -> Result<Command, EffectError> {
        let millis = call.timeout.as_millis().to_string();
        let mut env = vec![
            ("STARLING_ACTION".to_owned(), call.action.clone()),
            ("STARLING_ATTEMPT".to_owned(), call.attempt.to_string()),
            ("STARLING_EFFECT".to_owned(), call.effect.clone()),
            ("STARLING_IDEMPOTENCY_KEY".to_owned(), call.idempotency_key.clone()),
            ("STARLING_TIMEOUT_MS".to_owned(), millis),
        ];
        env.extend(environment(file)?);
        let input = serde_json::to_vec(&call.args).expect("arguments are JSON");
        let workspace = call.workspace.as_ref();
        let workspace = workspace.map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
        Ok(Command {
            argv: self.argv(argv),
            env,
            input,
            sandbox: self.sandbox,
            confines: self.confines(file, workspace),
            memory_bytes: file.memory_bytes,
        })
    }

    /// A program that is named by a path lies beside the flock's files.
    pub(crate) fn argv(&self, argv: &[String]) -> Vec<String> {
        let mut argv = argv.to_vec();
        if let Some(program) = argv.first_mut()
            && program.contains('/')
            && !program.starts_with('/')
        {
            *program = self.flock.join(&*program).display().to_string();
        }
        argv
    }

    pub(crate) fn confines(&self, file: &ToolFile, workspace: Option<PathBuf>) -> Confines {
        Confines {
            flock: Some(self.flock.clone()),
            workspace,
            writes: file.effects.contains(&Want::Write),
            network: file.effects.contains(&Want::Network),
            reads: file.reads.iter().map(|path| expanded(path)).collect(),
            also_writes: Vec::new(),
        }
    }
}

/// `~/x` below the home of who runs.
fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// What the file says is in the environment; `$NAME` is filled in from the host's, only here.
pub(crate) fn environment(file: &ToolFile) -> Result<Vec<(String, String)>, EffectError> {
    let variable = |(name, value): (&String, &String)| match value.strip_prefix('$') {
        None => Ok((name.clone(), value.clone())),
        Some(source) => {
            let found = std::env::var(source).map_err(|_| {
                EffectError::new(
                    "environment.missing",
                    Blame::Machine,
                    format!(
                        "{} wants the variable {source}, which is not set",
                        file.path.display()
                    ),
                    "set the variable where Starling is started",
                )
            })?;
            Ok((name.clone(), found))
        }
    };
    file.env.iter().map(variable).collect()
}
