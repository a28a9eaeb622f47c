//! The host's side: the process, what it was asked and has not answered, and starting it anew.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use behaviors::{Behavior, Firing, Loaded, Metadata, Proposals, ReactError, Reply, decode_reply};
use serde_json::Value;

use crate::confine::MEMORY_MAX;
use crate::serve::NAME;
use crate::wire::{Ask, Patient, read_frame};

/// How long a reaction or the loading of a script may take. The limits of the language end nearly
/// everything sooner; this is for what they do not see.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// How many firings are handed over ahead of their turn, and how many bytes. So few that they
/// always find room on their way, also while the worker is busy and reads nothing.
const AHEAD_MAX: usize = 64;
const AHEAD_BYTES_MAX: usize = 32 << 10;

/// A process that loads scripts and lets them react.
#[derive(Debug)]
pub struct Worker(Mutex<Host>);

#[derive(Debug)]
struct Host {
    /// The program that calls `serve_if_asked`.
    program: PathBuf,
    running: Option<Running>,
    /// What is loaded, by number.
    scripts: Vec<Script>,
    /// What was asked and not yet taken, oldest first.
    asked: VecDeque<Asked>,
    /// What is written with the next write.
    unsent: Vec<u8>,
}

/// A script that is loaded, and will be loaded again when the process is another.
#[derive(Clone, Debug)]
struct Script {
    path: String,
    text: String,
    declared: Vec<Metadata>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    stream: UnixStream,
    replies: BufReader<Patient<UnixStream>>,
}

/// A firing that was handed over.
#[derive(Debug)]
struct Asked {
    place: Place,
    firing: Vec<u8>,
    /// Whether a process ended over it already.
    again: bool,
    answer: Option<Result<Reply, ReactError>>,
}

impl Asked {
    fn write(&self, unsent: &mut Vec<u8>) {
        let (script, behavior) = self.place;
        Ask::React { script, behavior, firing: &self.firing }.write(unsent);
    }
}

/// A behavior: the number of its script and its own in there.
type Place = (u32, u32);

impl Worker {
    /// A worker of this program, started and found to answer.
    ///
    /// # Errors
    /// It cannot be started, or cannot be shut in.
    pub fn start(program: PathBuf) -> io::Result<Arc<Worker>> {
        let mut host = Host {
            program,
            running: None,
            scripts: Vec::new(),
            asked: VecDeque::new(),
            unsent: Vec::new(),
        };
        host.running = Some(start(&host.program)?);
        Ask::Load { path: "", text: "" }.write(&mut host.unsent);
        host.exchange(&mut Vec::new())?;
        Ok(Arc::new(Worker(Mutex::new(host))))
    }

    /// Loads a script; `path` is relative to the flock and names it in messages. The behaviors that
    /// it declares come in the file's order.
    ///
    /// # Errors
    /// The script cannot be read or run, what it declares cannot be used, or it ended the process.
    pub fn load(self: &Arc<Self>, path: &str, text: &str) -> Result<Vec<Loaded>, ReactError> {
        let mut host = self.host();
        let known =
            host.scripts.iter().position(|script| script.path == path && script.text == text);
        let number = match known {
            Some(number) => number,
            None => {
                host.await_all();
                let declared = host.load(path, text)?;
                let (path, text) = (path.to_owned(), text.to_owned());
                host.scripts.push(Script { path, text, declared });
                host.scripts.len() - 1
            }
        };
        let script = u32::try_from(number).expect("scripts are files");
        let behavior = |(number, metadata): (u32, &Metadata)| {
            let (worker, metadata) = (Arc::clone(self), metadata.clone());
            Loaded::new(Arc::new(Remote { worker, place: (script, number), metadata }), text)
        };
        Ok((0..).zip(&host.scripts[number].declared).map(behavior).collect())
    }

    fn host(&self) -> MutexGuard<'_, Host> {
        self.0.lock().expect("nothing panics while the worker is asked")
    }
}

impl Host {
    /// The worker, with everything loaded.
    fn running(&mut self) -> Result<&mut Running, ReactError> {
        if self.running.is_none() {
            let started = start(&self.program);
            self.running = Some(started.map_err(|error| {
                let program = self.program.display();
                let what = format!("{program} cannot be started to run scripts: {error}");
                ReactError { stopped: true, ..ReactError::new(what) }
            })?);
            for script in self.scripts.clone() {
                self.load(&script.path, &script.text)?;
            }
        }
        Ok(self.running.as_mut().expect("it was just started"))
    }

    fn load(&mut self, path: &str, text: &str) -> Result<Vec<Metadata>, ReactError> {
        self.running()?;
        Ask::Load { path, text }.write(&mut self.unsent);
        let mut frame = Vec::new();
        self.exchange(&mut frame).map_err(|error| {
            let error = self.ended(&error);
            ReactError { file: Some(path.to_owned()), ..error }
        })?;
        let json: Value = serde_json::from_slice(&frame).unwrap_or_default();
        let Some(all) = json["behaviors"].as_array() else {
            let reply = decode_reply(&frame).map_err(|error| ReactError::new(error.to_string()))?;
            let no_list = || ReactError::new("the worker loaded a script and did not say what");
            return Err(reply.err().unwrap_or_else(no_list));
        };
        let metadata = |json: &Value| {
            let fields = json.as_object().cloned().unwrap_or_default();
            Metadata::from_json(&fields, path).map_err(|error| ReactError::new(error.to_string()))
        };
        all.iter().map(metadata).collect()
    }

    /// Hands a firing over that will come, if there is room.
    fn ahead(&mut self, place: Place, firing: Vec<u8>) {
        let bytes: usize = self.asked.iter().map(|asked| asked.firing.len()).sum();
        let known = |asked: &Asked| asked.place == place && asked.firing == firing;
        let room = self.asked.len() < AHEAD_MAX && bytes + firing.len() <= AHEAD_BYTES_MAX;
        if room && !self.asked.iter().any(known) && self.running().is_ok() {
            self.ask(place, firing);
        }
    }

    fn ask(&mut self, place: Place, firing: Vec<u8>) {
        let asked = Asked { place, firing, again: false, answer: None };
        asked.write(&mut self.unsent);
        self.asked.push_back(asked);
    }

    /// What a behavior makes of a firing: its answer, if it was handed over ahead.
    fn react(&mut self, place: Place, firing: Vec<u8>) -> Result<Reply, ReactError> {
        let known = |asked: &Asked| asked.place == place && asked.firing == firing;
        let mut number = self.asked.iter().position(known);
        if number.is_none() {
            // Its turn came before it was expected, or the world is not the one it was shown.
            self.await_all();
            self.running()?;
            self.ask(place, firing);
            number = Some(self.asked.len() - 1);
        }
        let number = number.expect("it is asked by now");
        while self.asked[number].answer.is_none() {
            self.await_one();
        }
        let asked = self.asked.remove(number).expect("it was found");
        // What stood before it was meant for a turn that came otherwise, or comes soon.
        while self.asked.len() > AHEAD_MAX / 2 && self.asked[0].answer.is_some() {
            self.asked.pop_front();
        }
        asked.answer.expect("it was awaited")
    }

    fn await_all(&mut self) {
        while self.asked.iter().any(|asked| asked.answer.is_none()) {
            self.await_one();
        }
        // All are answered, and whoever they are for asks again if they are needed.
        self.asked.clear();
    }

    /// Waits for the next answer. When the process ended, all that is open is asked again; who was
    /// its end twice, or too slow, has that for an answer.
    fn await_one(&mut self) {
        let next = self.asked.iter().position(|asked| asked.answer.is_none());
        let next = next.expect("something is asked");
        let mut frame = Vec::new();
        let answer = self.exchange(&mut frame).and_then(|()| {
            decode_reply(&frame).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
        });
        let error = match answer {
            Ok(answer) => {
                self.asked[next].answer = Some(answer);
                return;
            }
            Err(error) => error,
        };
        let (late, ended) = (is_late(&error), self.ended(&error));
        // Once is told nobody: somebody else may have ended the process, for want of memory.
        let first = &mut self.asked[next];
        if first.again || late {
            first.answer = Some(Err(ended));
        }
        first.again = true;
        let started = self.running().map(|_| ());
        for asked in self.asked.iter_mut().filter(|asked| asked.answer.is_none()) {
            match &started {
                Ok(()) => asked.write(&mut self.unsent),
                Err(error) => asked.answer = Some(Err(error.clone())),
            }
        }
    }

    /// Sends what waits, and reads one frame.
    fn exchange(&mut self, frame: &mut Vec<u8>) -> io::Result<()> {
        let running = self.running.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        if !self.unsent.is_empty() {
            running.stream.write_all(&self.unsent)?;
            self.unsent.clear();
        }
        if read_frame(&mut running.replies, frame)? {
            return Ok(());
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    /// Ends the process, and says why it was or had to be.
    fn ended(&mut self, error: &io::Error) -> ReactError {
        let status = self.end();
        let what = if is_late(error) {
            let seconds = ANSWER_MAX.as_secs();
            format!("it did not end within {seconds} s, and its process was stopped")
        } else {
            let signal = status.and_then(|status| status.signal());
            let how = signal.map_or(String::new(), |signal| format!(" (signal {signal})"));
            let most = MEMORY_MAX >> 20;
            format!(
                "it ended the process that runs scripts{how}, most likely by a value that does not fit \
                 into {most} MiB or is nested too deep"
            )
        };
        tracing::debug!(%error, "a script's process was ended: {what}");
        ReactError { stopped: true, ..ReactError::new(what) }
    }

    fn end(&mut self) -> Option<std::process::ExitStatus> {
        self.unsent.clear();
        let mut running = self.running.take()?;
        // One that ended by itself keeps the status it has.
        running.child.kill().ok();
        running.child.wait().ok()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether nothing came in time.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn start(program: &PathBuf) -> io::Result<Running> {
    let (stream, theirs) = UnixStream::pair()?;
    let child = Command::new(program)
        .arg0(OsString::from(NAME))
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs.try_clone()?)))
        .stdout(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.set_write_timeout(Some(ANSWER_MAX))?;
    let replies = BufReader::with_capacity(64 << 10, Patient(stream.try_clone()?));
    Ok(Running { child, stream, replies })
}

/// A behavior that reacts in the worker.
#[derive(Debug)]
struct Remote {
    worker: Arc<Worker>,
    place: Place,
    metadata: Metadata,
}

impl Behavior for Remote {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn prepare(&self, firing: &Firing<'_>) {
        self.worker.host().ahead(self.place, firing.encode());
    }

    fn react(&self, firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
        out.take(self.worker.host().react(self.place, firing.encode())?)
    }
}
