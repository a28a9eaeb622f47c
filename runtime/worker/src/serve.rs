//! The worker's side: it loads scripts and lets them react, one asked thing after the other.

use std::fs::File;
use std::io::{self, BufReader, Write};

use behaviors::{Firing, Loaded, MessageError, Proposals, ReactError, Reply, encode_reply};
use script::{Limits, ScriptHost};
use serde_json::{Value, json};

use crate::confine::confine;
use crate::wire::{Ask, Patient, read_frame, write_frame};

/// The word by which a process is told that it is a worker.
pub(crate) const NAME: &str = "starling-script-worker";

/// If this process was started as a worker, it is that until its host is gone, and ends.
///
/// To be called first of all in `main` by every program that makes a `Worker` of itself.
pub fn serve_if_asked() {
    if std::env::args_os().next().is_some_and(|name| name == NAME) {
        let served = confine().and_then(|()| serve());
        std::process::exit(i32::from(served.is_err()));
    }
}

fn serve() -> io::Result<()> {
    let host = ScriptHost::new(Limits::default());
    let mut scripts: Vec<Vec<Loaded>> = Vec::new();
    let open = |fd: io::Result<std::os::fd::OwnedFd>| fd.map(File::from);
    let stdin = open(rustix::stdio::stdin().try_clone_to_owned())?;
    let mut out = open(rustix::stdio::stdout().try_clone_to_owned())?;
    let mut input = BufReader::with_capacity(64 << 10, Patient(stdin));
    let (mut frame, mut answer) = (Vec::new(), Vec::new());
    loop {
        if !read_frame(&mut input, &mut frame)? {
            return Ok(());
        }
        let reply = match Ask::read(&frame)? {
            Ask::Load { path, text } => load(&host, path, text, &mut scripts),
            Ask::React { script, behavior, firing } => {
                let script = scripts.get(script as usize);
                let loaded = script.and_then(|script| script.get(behavior as usize));
                let unknown = || MessageError { what: "a behavior that is not loaded".to_owned() };
                let reply = loaded.ok_or_else(unknown).and_then(|loaded| react(loaded, firing));
                encode_reply(&reply.map_err(io::Error::other)?)
            }
        };
        // At once: who is not answered when the process ends is the one that ended it.
        answer.clear();
        write_frame(&mut answer, &[&reply]);
        out.write_all(&answer)?;
    }
}

/// Loads a script; the reply lists the metadata of its behaviors.
fn load(host: &ScriptHost, path: &str, text: &str, scripts: &mut Vec<Vec<Loaded>>) -> Vec<u8> {
    let loaded = match host.load(path, text) {
        Ok(loaded) => loaded,
        Err(error) => return encode_reply(&Err(error.details().clone())),
    };
    let all = loaded.iter().map(|one| Value::Object(one.metadata().to_json())).collect::<Vec<_>>();
    scripts.push(loaded);
    serde_json::to_vec(&json!({ "behaviors": all })).expect("JSON is written to a Vec")
}

fn react(loaded: &Loaded, firing: &[u8]) -> Result<Result<Reply, ReactError>, MessageError> {
    let firing = Firing::decode(firing)?;
    let behavior = loaded.behavior();
    let mut out = Proposals::new(behavior.metadata(), &firing);
    let done = behavior.react(&firing, &mut out);
    Ok(done.and_then(|()| out.finish()))
}
