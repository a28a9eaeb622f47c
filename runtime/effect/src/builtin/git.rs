//! `git.status`, `git.diff` and `git.commit`: the workspace as a repository.
//!
//! git runs in the sandbox, without hooks and without this user's settings: a repository's own
//! configuration can name programs, and they are the repository's, not ours. A commit carries the
//! action that made it, so that it can be found again.

use serde_json::{Value, json};

use super::Policy;
use super::shell::{Writes, failure, run};
use crate::answer::{Answer, Fingerprint, Seen};
use crate::call::Call;
use crate::class::Class;
use crate::error::{Blame, EffectError};
use crate::executor::{Executor, Limits, Pending};
use crate::process::{Done, How};
use crate::schema::Schema;
use crate::tools::judge::cut_short;

/// One of the three.
#[derive(Debug)]
pub(super) struct Git {
    policy: Policy,
    name: &'static str,
    schema: Schema,
    class: Class,
}

/// The line of a commit's message that names the action.
const TRAILER: &str = "Starling-Action";

/// What every call of git begins with.
pub(super) const ALWAYS: [&str; 16] = [
    "git",
    "--no-optional-locks",
    "--literal-pathspecs",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "core.pager=cat",
    "-c",
    "commit.gpgSign=false",
    "-c",
    "gc.auto=0",
    "--no-pager",
];

impl Git {
    fn new(policy: &Policy, name: &'static str, class: Class, schema: Value) -> Self {
        let schema = Schema::new(schema).expect("a built-in schema is one");
        Git { policy: policy.clone(), name, schema, class }
    }

    pub(super) fn status(policy: &Policy) -> Self {
        let schema = json!({"type": "object", "additionalProperties": false});
        Git::new(policy, "git.status", Class::ReadOnly, schema)
    }

    pub(super) fn diff(policy: &Policy) -> Self {
        let schema = json!({
            "type": "object", "additionalProperties": false,
            "properties": {
                "paths": {"type": "array", "items": {"type": "string"}, "default": []},
                "staged": {"type": "boolean", "default": false},
            },
        });
        Git::new(policy, "git.diff", Class::ReadOnly, schema)
    }

    pub(super) fn commit(policy: &Policy) -> Self {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["message", "paths"],
            "properties": {
                "message": {"type": "string", "minLength": 1},
                "paths": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                "author": {"type": "string", "default": "Starling <starling@localhost>"},
            },
        });
        Git::new(policy, "git.commit", Class::Queryable, schema)
    }

    /// Runs git and gives what it printed, or why that cannot be had.
    async fn git(&self, call: &Call, words: &[&str], writes: Writes) -> Result<String, Answer> {
        let argv = ALWAYS.iter().chain(words).map(|word| (*word).to_owned()).collect();
        let done =
            run(&self.policy, call, argv, Vec::new(), writes).await.map_err(Answer::Failed)?;
        let Done { how, out, err } = &done;
        match how {
            How::Exit(0) => Ok(out.text()),
            How::Exit(code) => Err(Answer::Failed(failure(*code, &done))),
            how => Err(cut_short(self.class, how, err)),
        }
    }

    async fn act(&self, call: &Call) -> Result<Answer, Answer> {
        if call.cancel.is_cancelled() {
            return Ok(Answer::Cancelled);
        }
        let (result, fingerprint) = match self.name {
            "git.status" => (self.read_status(call).await?, None),
            "git.diff" => (self.read_diff(call).await?, None),
            _ => {
                let (result, fingerprint) = self.make_commit(call).await?;
                (result, Some(fingerprint))
            }
        };
        Ok(Answer::Succeeded { result, fingerprint })
    }

    async fn read_status(&self, call: &Call) -> Result<Value, Answer> {
        let words = ["status", "--porcelain=v1", "-z", "--branch", "--untracked-files=all"];
        let text = self.git(call, &words, Writes::No).await?;
        let mut parts = text.split('\0').filter(|part| !part.is_empty());
        let branch = parts.next().and_then(|line| line.strip_prefix("## ")).unwrap_or("");
        let mut files = Vec::new();
        while let Some(part) = parts.next() {
            let (state, path) = part.split_at_checked(3).unwrap_or((part, ""));
            let mut file = json!({"state": state.trim_end(), "path": path});
            if state.starts_with(['R', 'C']) {
                file["from"] = json!(parts.next());
            }
            files.push(file);
        }
        Ok(json!({"branch": branch, "files": files}))
    }

    async fn read_diff(&self, call: &Call) -> Result<Value, Answer> {
        let mut words = vec!["diff", "--no-ext-diff", "--no-textconv", "--no-color"];
        if call.args["staged"] == json!(true) {
            words.push("--cached");
        }
        words.push("--");
        words.extend(texts(&call.args["paths"]));
        Ok(json!({"diff": self.git(call, &words, Writes::No).await?}))
    }

    async fn make_commit(&self, call: &Call) -> Result<(Value, Fingerprint), Answer> {
        let before = self.git(call, &["rev-parse", "--verify", "-q", "HEAD"], Writes::No).await;
        let before = before.ok().map(|text| text.trim().to_owned());
        let paths: Vec<&str> = texts(&call.args["paths"]).collect();
        let mut add = vec!["add", "--"];
        add.extend(&paths);
        self.git(call, &add, Writes::Yes).await?;
        let author = call.args["author"].as_str().unwrap_or("");
        let (name, mail) = author.trim_end_matches('>').split_once('<').unwrap_or((author, ""));
        let (name, mail) = (format!("user.name={}", name.trim()), format!("user.email={mail}"));
        let message = call.args["message"].as_str().unwrap_or("");
        let message = format!("{message}\n\n{TRAILER}: {}\n", call.action);
        let mut commit = vec!["-c", &name, "-c", &mail, "commit", "--no-verify", "-q"];
        commit.extend(["--only", "-m", &message, "--"]);
        commit.extend(&paths);
        self.git(call, &commit, Writes::Yes).await?;
        let head = self.git(call, &["rev-parse", "HEAD"], Writes::No).await?.trim().to_owned();
        let what = "HEAD".to_owned();
        let fingerprint = Fingerprint { what, base: before, result: Some(head.clone()) };
        Ok((json!({"commit": head}), fingerprint))
    }

    /// Looks for a commit that names the action.
    async fn find(&self, call: &Call) -> Seen {
        let pattern = format!("^{TRAILER}: {}$", call.action);
        let words = ["log", "--all", "-1", "--format=%H", "--grep", &pattern];
        match self.git(call, &words, Writes::No).await {
            Ok(text) if text.trim().is_empty() => Seen::Absent,
            Ok(text) => Seen::Found(json!({"commit": text.trim()})),
            // A repository without any commit has none of this action either.
            Err(Answer::Failed(error)) if error.message.contains("does not have any commits") => {
                Seen::Absent
            }
            Err(Answer::Failed(error) | Answer::Unknown(error)) => Seen::Unreachable(error),
            Err(_) => Seen::Pending,
        }
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

impl Executor for Git {
    fn class(&self) -> Class {
        self.class
    }

    fn limits(&self) -> Limits {
        Limits { concurrent: 1, ..Limits::default() }
    }

    fn check(&self, args: &Value) -> Result<Value, EffectError> {
        let args = self.schema.arguments(self.name, args)?;
        let author = args.get("author").and_then(Value::as_str);
        if author.is_some_and(|author| !author.contains('<') || author.contains(['\n', '\0'])) {
            let what = "`author` is not NAME <MAIL>";
            return Err(EffectError::new("arguments.author", Blame::Caller, what, "write it so"));
        }
        Ok(args)
    }

    fn run<'a>(&'a self, call: &'a Call) -> Pending<'a, Answer> {
        Box::pin(async move { self.act(call).await.unwrap_or_else(|answer| answer) })
    }

    fn look<'a>(&'a self, call: &'a Call, _intent: &'a Value) -> Pending<'a, Seen> {
        Box::pin(async move {
            match self.class {
                Class::ReadOnly => Seen::Absent,
                _ => self.find(call).await,
            }
        })
    }
}
