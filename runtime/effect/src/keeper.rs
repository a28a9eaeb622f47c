//! The keeper: a process of our own between the host and one command, so that nothing is left.
//!
//! 1. When its command ends, whatever the command left behind is ended too, however it hid: a child
//!    in another group, in another session, or forked twice.
//! 2. When the host says so, or is gone (its end of the control socket closes, also by SIGKILL),
//!    the command is told to end, and after a grace is killed.
//! 3. It says how the command ended, in one line on the control socket, after all are gone.
//!
//! It is the same program, started again with one argument. Its standard input is the control
//! socket; its standard output and error are those of the command.

mod family;
mod group;
mod order;

pub(crate) use order::{Ended, Input, Order, encode};

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions};

use self::group::Group;

/// The one argument that makes this program a keeper.
pub(crate) const ARGUMENT: &str = "--keep-one-command";

/// Whether this program can be started again as a keeper.
static READY: AtomicBool = AtomicBool::new(false);

/// Whether `main` of this program called `keep_if_asked`.
pub(crate) fn is_ready() -> bool {
    READY.load(Ordering::Acquire)
}

/// Becomes the keeper of one command, and does not return, if this process was started as one.
/// A program that embeds Starling calls it first in `main`.
pub fn keep_if_asked() {
    READY.store(true, Ordering::Release);
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == ARGUMENT) && args.next().is_none() {
        let ended = keep();
        let mut line = serde_json::to_vec(&ended).expect("how it ended is JSON");
        line.push(b'\n');
        // The host may be gone; then nobody asks.
        drop(Control.write_all(&line));
        std::process::exit(0);
    }
}

/// The control socket, which is this process's standard input.
struct Control;

impl Read for Control {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::read(rustix::stdio::stdin(), &mut *buffer))?)
    }
}

impl Write for Control {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::write(rustix::stdio::stdin(), buffer))?)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Keeps the one command that the control socket orders.
fn keep() -> Ended {
    let order = match order::read(&mut Control) {
        Ok(order) => order,
        Err(error) => return Ended::not_started(format!("the order was not read: {error}")),
    };
    let mut payload = vec![0; order.input.length()];
    if let Err(error) = Control.read_exact(&mut payload) {
        return Ended::not_started(format!("the input was not read: {error}"));
    }
    let group = Group::make();
    let ended = match start(&order, group.as_ref()) {
        Ok((pid, stdin)) => watch(&order, pid, stdin, payload),
        Err(error) => Ended::not_started(error),
    };
    if let Some(group) = group {
        group.remove();
    }
    ended
}

/// Whether the number of a command's processes is bounded on this machine: where it is not, a limit
/// of the user still is, which does not hold root.
#[must_use]
pub fn processes_are_bounded() -> bool {
    let group = Group::make();
    if let Some(group) = &group {
        group.remove();
    }
    group.is_some() || !rustix::process::getuid().is_root()
}

/// Starts the command in a group of its own, under the order's limits.
fn start(order: &Order, group: Option<&Group>) -> Result<(Pid, ChildStdin), String> {
    let this = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(this))
        .map_err(|error| format!("orphans cannot be adopted: {error}"))?;
    let argv = order.argv().map_err(|error| format!("the filter is not passed on: {error}"))?;
    let (program, args) = argv.split_first().ok_or("the command is empty")?;
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(order.env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).process_group(0);
    if let Some(folder) = &order.folder {
        command.current_dir(folder);
    }
    order.limit().map_err(|error| format!("a limit was not set: {error}"))?;
    let child = match group {
        Some(group) if group.enter() => {
            let child = command.spawn();
            group.leave();
            child
        }
        _ => command.spawn(),
    };
    let mut child = child.map_err(|error| {
        let folder = order.folder.as_ref().filter(|folder| !folder.is_dir());
        match folder {
            Some(folder) => format!("the folder {} is not there", folder.display()),
            None => format!("`{program}` does not start: {error}"),
        }
    })?;
    let stdin = child.stdin.take().expect("its input is a pipe");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // Only its number is needed: it is waited for together with what it leaves behind.
    Ok((pid.expect("a process has a number"), stdin))
}

/// Waits for the command and for all that it leaves, and ends them when it must.
fn watch(order: &Order, pid: Pid, mut stdin: ChildStdin, payload: Vec<u8>) -> Ended {
    let state = Arc::new(State::default());
    let grace = Duration::from_millis(order.grace_ms);
    let shared = Arc::clone(&state);
    match order.input {
        Input::Once(_) => {
            // A command that does not read its input is no reason to stop watching it.
            thread::spawn(move || drop(stdin.write_all(&payload)));
            thread::spawn(move || {
                let mut rest = [0; 64];
                while Control.read(&mut rest).is_ok_and(|count| count > 0) {}
                end(&shared, grace);
            });
        }
        Input::Stream => {
            thread::spawn(move || {
                drop(std::io::copy(&mut Control, &mut stdin));
                drop(stdin);
                wait_until_gone(&shared, grace);
                end(&shared, grace);
            });
        }
    }
    reap_all(pid, &state)
}

/// What the two sides of a keeper share.
#[derive(Debug, Default)]
struct State {
    /// The command was told to end.
    told: AtomicBool,
    /// Nobody is left.
    gone: AtomicBool,
}

/// Reaps until no descendant is left; once the command itself has ended the rest is killed.
fn reap_all(pid: Pid, state: &State) -> Ended {
    let mut ended = None;
    loop {
        let options = if ended.is_some() { WaitOptions::NOHANG } else { WaitOptions::empty() };
        match rustix::process::wait(options) {
            Ok(Some((reaped, how))) if reaped == pid => {
                let told = state.told.load(Ordering::Acquire);
                ended = Some(if told { Ended::Told } else { Ended::from_status(how) });
            }
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => {
                family::kill_all();
                thread::sleep(Duration::from_millis(1));
            }
            // No child is left, and as orphans come to this process no descendant is.
            Err(_) => break,
        }
    }
    state.gone.store(true, Ordering::Release);
    ended.unwrap_or_else(|| Ended::not_started("it was never seen to end"))
}

/// Tells all to end, and kills whoever is still there after the grace.
fn end(state: &State, grace: Duration) {
    state.told.store(true, Ordering::Release);
    family::terminate_all();
    wait_until_gone(state, grace);
    while !state.gone.load(Ordering::Acquire) {
        family::kill_all();
        thread::sleep(Duration::from_millis(1));
    }
}

fn wait_until_gone(state: &State, most: Duration) {
    let begun = Instant::now();
    while !state.gone.load(Ordering::Acquire) && begun.elapsed() < most {
        thread::sleep(Duration::from_millis(2));
    }
}
