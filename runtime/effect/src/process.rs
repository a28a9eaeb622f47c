//! One command, run by its keeper to an end that is known: by itself, by its deadline, by a
//! cancellation, or not known within the bound.

mod capture;

pub use capture::excerpt;
pub(crate) use capture::is_long;
pub(crate) use capture::{Capture, KEPT_BYTES};

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Pair;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::time::timeout;

use crate::call::Call;
use crate::error::{Blame, EffectError};
use crate::executor::Limits;
use crate::keeper::{self, Ended, Input, Order};
use crate::sandbox::{Confines, Sandbox};

/// How long a command has to end by itself once it is told to.
const GRACE: Duration = Duration::from_millis(400);

/// The largest file that a command may write.
const FILE_BYTES: u64 = 1 << 30;

const NO_KEEPER: &str = "no program beside this one keeps commands; `main` calls \
    `effect::keep_if_asked()` first, or `starling-keep` is built (cargo build --release -p starling-effect)";

/// Variables that every command gets as the host has them. No other is inherited.
const INHERITED: [&str; 6] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM"];

/// A command to run.
#[derive(Debug)]
pub(crate) struct Command {
    /// The program and its arguments. `starling` is this very program.
    pub(crate) argv: Vec<String>,
    /// What it has in its environment besides the few that are inherited.
    pub(crate) env: Vec<(String, String)>,
    /// Its standard input.
    pub(crate) input: Vec<u8>,
    /// Whether it is confined.
    pub(crate) sandbox: Sandbox,
    /// What it may see and change.
    pub(crate) confines: Confines,
    /// The most memory that it may map.
    pub(crate) memory_bytes: Option<u64>,
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Done {
    /// How it ended.
    pub(crate) how: How,
    /// What it wrote to its standard output.
    pub(crate) out: Capture,
    /// What it wrote to its standard error.
    pub(crate) err: Capture,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// By itself, with this code.
    Exit(i32),
    /// By a signal that is not ours.
    Signal(i32),
    /// It never began.
    NotStarted(String),
    /// Its time was over; it is gone.
    TimedOut,
    /// It was cancelled; it is gone.
    Cancelled,
    /// It was to end and did not within the bound; its keeper goes on trying.
    Lost,
}

impl Command {
    /// Runs it to its end.
    ///
    /// # Errors
    /// It did not begin: the sandbox or the keeper is missing.
    pub(crate) async fn run(self, call: &Call, limits: &Limits) -> Result<Done, EffectError> {
        let sandbox = self.sandbox;
        let mut kept = self.start(false).await?;
        let mut done =
            Done { how: How::Lost, out: Capture::new(KEPT_BYTES), err: Capture::new(KEPT_BYTES) };
        let Kept { out, err, control, .. } = &mut kept;
        let (mut report, mut orders) = control.split();
        let why = {
            let work = async {
                let said = read_report(&mut report);
                tokio::join!(drain(out, &mut done.out), drain(err, &mut done.err), said).2
            };
            tokio::pin!(work);
            let end = tokio::select! {
                ended = &mut work => Err(ended),
                () = call.cancel.cancelled() => Ok(How::Cancelled),
                () = tokio::time::sleep(call.timeout) => Ok(How::TimedOut),
            };
            match end {
                Err(ended) => how(ended),
                Ok(why) => {
                    // Its keeper ends it as soon as nothing more can come.
                    drop(orders.shutdown().await);
                    let bound = limits.cancel_within.mul_f64(0.9);
                    match timeout(bound, &mut work).await {
                        Ok(Some(Ended::Told)) => why,
                        // It had ended by itself before it was told to.
                        Ok(ended) => how(ended),
                        Err(_) => How::Lost,
                    }
                }
            }
        };
        done.how = match why {
            // The sandbox tells the signal that ended what it held as shells do.
            How::Exit(code) if sandbox == Sandbox::Required && (129..=192).contains(&code) => {
                How::Signal(code - 128)
            }
            why => why,
        };
        if done.how != How::Lost {
            drop(kept.child.wait().await);
        }
        Ok(done)
    }

    /// Starts it with its input open; dropping what this gives ends it.
    pub(crate) async fn stream(self) -> Result<Kept, EffectError> {
        self.start(true).await
    }

    async fn start(self, stream: bool) -> Result<Kept, EffectError> {
        self.sandbox.check()?;
        let argv = resolve(&self.argv)?;
        let folder = self.confines.workspace.clone().or_else(|| self.confines.flock.clone());
        let home = match (self.sandbox, std::env::var("HOME")) {
            (Sandbox::Off, Ok(home)) => home,
            _ => "/tmp".to_owned(),
        };
        let inherited = INHERITED
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        let order = Order {
            argv: self.sandbox.wrap(&argv, &self.confines),
            env: inherited.chain([("HOME".to_owned(), home)]).chain(self.env).collect(),
            folder,
            input: if stream { Input::Stream } else { Input::Once(self.input.len()) },
            grace_ms: u64::try_from(GRACE.as_millis()).expect("a grace is short"),
            memory_bytes: self.memory_bytes,
            file_bytes: FILE_BYTES,
        };
        let mut first = keeper::encode(&order);
        first.extend(self.input);
        Kept::start(&first).await.map_err(|error| {
            EffectError::new(
                "process.keeper",
                Blame::Machine,
                format!("the keeper of the command does not start: {error}"),
                "see whether the machine is out of processes or memory",
            )
            .retryable()
        })
    }
}

/// A command that runs, and its keeper. Dropped, the control socket closes and the command ends.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) child: Child,
    pub(crate) out: tokio::process::ChildStdout,
    pub(crate) err: tokio::process::ChildStderr,
    pub(crate) control: UnixStream,
}

impl Kept {
    async fn start(first: &[u8]) -> std::io::Result<Kept> {
        let program = keeper_program().ok_or_else(|| std::io::Error::other(NO_KEEPER))?;
        let (ours, theirs) = Pair::pair()?;
        let mut command = tokio::process::Command::new(program);
        command.arg(keeper::ARGUMENT).env_clear().process_group(0);
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        // Their end must not stay open here, or the end of the keeper would not be seen.
        drop(command);
        let out = child.stdout.take().expect("its output is a pipe");
        let err = child.stderr.take().expect("its errors are a pipe");
        ours.set_nonblocking(true)?;
        let mut control = UnixStream::from_std(ours)?;
        // The keeper reads all of it before the command starts, so this waits for nobody else.
        control.write_all(first).await?;
        Ok(Kept { child, out, err, control })
    }
}

/// The program that keeps commands: this one if its `main` said so, else one beside it.
fn keeper_program() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let this = std::env::current_exe().ok()?;
        if keeper::is_ready() { Some(this) } else { beside(&this, &["starling-keep", "starling"]) }
    };
    FOUND.get_or_init(find).clone()
}

/// The `starling` program: this one, or the one beside it.
fn starling_program() -> Option<PathBuf> {
    let this = std::env::current_exe().ok()?;
    if this.file_name().is_some_and(|name| name == "starling") {
        return Some(this);
    }
    beside(&this, &["starling"])
}

/// The first of these programs that lies in the folder of `this` or in the one above.
fn beside(this: &Path, names: &[&str]) -> Option<PathBuf> {
    let folders = this.ancestors().skip(1).take(2);
    let places = folders.flat_map(|folder| names.iter().map(|name| folder.join(name)));
    places.into_iter().find(|place| place.is_file())
}

/// The arguments with `starling` replaced by the path of this program.
fn resolve(argv: &[String]) -> Result<Vec<String>, EffectError> {
    let mut argv = argv.to_vec();
    if argv.first().is_some_and(|program| program == "starling") {
        let program = starling_program().ok_or_else(|| {
            EffectError::new(
                "process.program",
                Blame::Machine,
                "the program `starling` is not beside this one",
                "build it: cargo build --release -p starling-runtime",
            )
        })?;
        argv[0] = program.display().to_string();
    }
    Ok(argv)
}

async fn drain(mut from: impl AsyncRead + Unpin, into: &mut Capture) {
    let mut buffer = vec![0; 32 << 10];
    while let Ok(count) = from.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        into.push(&buffer[..count]);
    }
    into.finish();
}

/// What the keeper said in the end; nothing if it was killed itself.
async fn read_report(mut from: impl AsyncRead + Unpin) -> Option<Ended> {
    let mut line = Vec::new();
    from.read_to_end(&mut line).await.ok()?;
    serde_json::from_slice(&line).ok()
}

fn how(ended: Option<Ended>) -> How {
    match ended {
        Some(Ended::Exit(code)) => How::Exit(code),
        Some(Ended::Signal(signal)) => How::Signal(signal),
        Some(Ended::NotStarted(why)) => How::NotStarted(why),
        Some(Ended::Told) | None => How::Lost,
    }
}
