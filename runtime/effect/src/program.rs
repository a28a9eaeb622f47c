//! A program that answers for a behavior: it is told what the behavior sees and prints what it
//! proposes. It looks and says; it has neither the network nor a folder to write in, so running it
//! again is always safe.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::answer::{Answer, Seen, storable};
use crate::call::Call;
use crate::class::Class;
use crate::error::{Blame, EffectError};
use crate::executor::{Executor, Limits, Pending};
use crate::process::{Capture, Command, Done, How};
use crate::sandbox::{Confines, Sandbox};

/// The exit code by which a program says no; its reason stands on standard error.
const VETO: i32 = 2;
/// How much longer than a program may take its answer is waited for.
const AFTER: Duration = Duration::from_secs(1);
/// How much of its standard error is kept as its log.
const LOG_CHARS_MAX: usize = 16_000;
/// How deep a proposal may nest.
const DEPTH_MAX: usize = 48;

/// A program of a flock.
#[derive(Clone, Debug)]
pub struct Program {
    /// The effect that runs it: `exec:NAME`.
    pub effect: String,
    /// The flock's folder.
    pub flock: PathBuf,
    /// Its path, relative to the flock.
    pub path: String,
    /// What one run may take.
    pub timeout: Duration,
    /// How much it may print.
    pub output_bytes: usize,
    /// How much memory it may map, if that is bounded.
    pub memory_bytes: Option<u64>,
    /// Whether it is confined.
    pub sandbox: Sandbox,
}

impl Program {
    async fn act(&self, call: &Call) -> Answer {
        if call.cancel.is_cancelled() {
            return Answer::Cancelled;
        }
        if let Err(error) = self.is_asked(&call.args) {
            return Answer::Failed(error);
        }
        let limits = self.limits();
        let bounded = Call { timeout: self.timeout, ..call.clone() };
        match self.command(call).run(&bounded, &limits).await {
            // What ran is what was asked for only if it is still there.
            Ok(done) => match self.is_asked(&call.args) {
                Ok(()) => self.answer(&done),
                Err(error) => Answer::Failed(error),
            },
            Err(error) => Answer::Failed(error),
        }
    }

    /// Whether the file still is the code that was asked.
    fn is_asked(&self, args: &Value) -> Result<(), EffectError> {
        let path = self.flock.join(&self.path);
        let wrong = |what: String| {
            let action = "save the file again, or wait until the flock has loaded it";
            EffectError::new("program.changed", Blame::Machine, what, action)
        };
        let bytes = std::fs::read(&path)
            .map_err(|error| wrong(format!("{} cannot be read: {error}", self.path)))?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        if args["hash"] == json!(hash) {
            return Ok(());
        }
        Err(wrong(format!("{} is another file than the one that was loaded", self.path)))
    }

    fn command(&self, call: &Call) -> Command {
        let mut told = call.args.clone();
        if let Some(told) = told.as_object_mut() {
            told.remove("program");
            told.remove("hash");
        }
        let name = self.effect.split_once(':').map_or("", |(_, name)| name);
        let millis = self.timeout.as_millis().to_string();
        let env = [("STARLING_BEHAVIOR", name), ("STARLING_TIMEOUT_MS", &millis)];
        let flock = self.flock.canonicalize().unwrap_or_else(|_| self.flock.clone());
        Command {
            argv: vec![flock.join(&self.path).display().to_string()],
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            input: serde_json::to_vec(&told).expect("arguments are JSON"),
            sandbox: self.sandbox,
            confines: Confines {
                flock: Some(flock),
                workspace: None,
                writes: false,
                network: false,
                reads: Vec::new(),
                also_writes: Vec::new(),
            },
            memory_bytes: self.memory_bytes,
        }
    }

    fn answer(&self, done: &Done) -> Answer {
        let log = tail(&done.err);
        let failed = |kind: &str, what: String, action: &str| {
            let what = if log.is_empty() { what } else { format!("{what}\n{log}") };
            Answer::Failed(EffectError::new(kind, Blame::Tool, what, action))
        };
        let path = &self.path;
        match &done.how {
            How::Exit(0) => match proposals(&done.out, self.output_bytes) {
                Ok(proposals) => {
                    let result = json!({"proposals": proposals, "log": log});
                    Answer::Succeeded { result, fingerprint: None }
                }
                Err((kind, what)) => {
                    failed(kind, format!("{path}: {what}"), "let it print one JSON object a line")
                }
            },
            How::Exit(VETO) => {
                let reason = if log.is_empty() { "it gives no reason" } else { &log };
                let result = json!({"veto": reason, "log": log});
                Answer::Succeeded { result, fingerprint: None }
            }
            How::Exit(code) => {
                failed("process.exit", format!("{path} ended with exit code {code}"), "mend it")
            }
            How::NotStarted(why) => {
                let action =
                    "let its first line name its interpreter, such as #!/usr/bin/env python3";
                failed("process.start", format!("{path} does not start: {}", why.trim()), action)
            }
            How::TimedOut => {
                let what = format!("{path} did not answer within {:?}", self.timeout);
                failed("process.timeout", what, "let it do less, or give it time: [exec] timeout")
            }
            How::Signal(signal) => {
                let what = format!("{path} was ended by signal {signal}");
                failed("process.signal", what, "see whether it ran out of memory")
            }
            How::Cancelled => Answer::Cancelled,
            How::Lost => {
                let what = format!("{path} did not end when it was told to");
                let action = "look for the process and end it";
                Answer::Unknown(EffectError::new("process.lost", Blame::Tool, what, action))
            }
        }
    }
}

/// The last of what it said.
fn tail(err: &Capture) -> String {
    let text = err.text();
    let text = text.trim();
    let skip = text.chars().count().saturating_sub(LOG_CHARS_MAX);
    text.chars().skip(skip).collect()
}

/// The lines that it printed, each an object that can be stored.
fn proposals(out: &Capture, limit: usize) -> Result<Vec<Value>, (&'static str, String)> {
    let fits = out.total() <= limit as u64;
    let Some(bytes) = out.whole().filter(|_| fits) else {
        return Err(("output.too_large", format!("it printed more than {limit} bytes")));
    };
    let wrong =
        |line: usize, what: String| ("output.json", format!("line {line} it printed {what}"));
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(("output.json", "what it printed is no UTF-8".to_owned()));
    };
    let mut found = Vec::new();
    for (nth, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let read: Result<Map<String, Value>, _> = serde_json::from_str(line);
        let shown: String = line.chars().take(120).collect();
        let map =
            read.map_err(|error| wrong(nth + 1, format!("is no JSON object ({error}): {shown}")))?;
        let value = Value::Object(map);
        storable(&value, DEPTH_MAX).map_err(|what| wrong(nth + 1, what))?;
        found.push(value);
    }
    Ok(found)
}

impl Executor for Program {
    fn class(&self) -> Class {
        Class::ReadOnly
    }

    fn limits(&self) -> Limits {
        // It ends a program itself, and then says so; whoever waits for it waits a little longer.
        let (timeout, output_bytes) = (self.timeout + AFTER, self.output_bytes);
        Limits { timeout, output_bytes, ..Limits::default() }
    }

    fn check(&self, args: &Value) -> Result<Value, EffectError> {
        if args["hash"].is_string() {
            return Ok(args.clone());
        }
        let what = format!("{} is asked by its behavior only", self.effect);
        let action = "put what it does into a tool, and ask for that";
        Err(EffectError::new("arguments.schema", Blame::Caller, what, action))
    }

    fn run<'a>(&'a self, call: &'a Call) -> Pending<'a, Answer> {
        Box::pin(self.act(call))
    }

    fn look<'a>(&'a self, _call: &'a Call, _intent: &'a Value) -> Pending<'a, Seen> {
        Box::pin(async { Seen::Absent })
    }
}

/// Whether a file may be run.
#[must_use]
pub fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}
