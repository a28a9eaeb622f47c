//! What the host tells the keeper, and what the keeper tells the host: JSON both.

use std::io::{self, Read};
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, WaitStatus, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::sandbox::{FILTER_FD, filter};

/// The longest order: arguments and environment of one command.
const ORDER_BYTES_MAX: u32 = 4 << 20;

/// How many processes a user may have once a command runs. The kernel does not hold root to it.
const PROCESSES_MAX: u64 = 4096;

/// One command to keep.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The program and its arguments; `FILTER_FD` among them becomes the filter's number.
    pub(crate) argv: Vec<String>,
    /// The whole environment.
    pub(crate) env: Vec<(String, String)>,
    /// Where it runs.
    pub(crate) folder: Option<PathBuf>,
    /// What follows the order on the socket.
    pub(crate) input: Input,
    /// How long it has to end by itself when it is told to.
    pub(crate) grace_ms: u64,
    /// The most memory that it may map, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// The largest file that it may write, in bytes.
    pub(crate) file_bytes: u64,
}

/// What follows an order.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Input {
    /// So many bytes for its standard input, then nothing.
    Once(usize),
    /// Bytes for its standard input until the host closes the socket.
    Stream,
}

impl Input {
    /// How many bytes are read before the command starts.
    pub(crate) fn length(self) -> usize {
        match self {
            Input::Once(length) => length,
            Input::Stream => 0,
        }
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ended {
    /// By itself, with this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It was told to, and is gone.
    Told,
    /// It never began.
    NotStarted(String),
}

impl Ended {
    pub(super) fn not_started(why: impl Into<String>) -> Self {
        Ended::NotStarted(why.into())
    }

    pub(super) fn from_status(status: WaitStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Ended::Exit(code),
            (None, Some(signal)) => Ended::Signal(signal),
            (None, None) => Ended::not_started("it ended in no known way"),
        }
    }
}

/// An order as bytes: its length, then itself.
pub(crate) fn encode(order: &Order) -> Vec<u8> {
    let body = serde_json::to_vec(order).expect("an order is JSON");
    let length = u32::try_from(body.len()).expect("an order is short");
    [&length.to_le_bytes()[..], &body].concat()
}

/// Reads an order, and no byte of what follows it.
pub(super) fn read(from: &mut impl Read) -> io::Result<Order> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > ORDER_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long"));
    }
    let mut body = vec![0; length as usize];
    from.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

impl Order {
    /// The arguments, with the filter of system calls opened where they ask for it.
    pub(super) fn argv(&self) -> io::Result<Vec<String>> {
        if !self.argv.iter().any(|word| word == FILTER_FD) {
            return Ok(self.argv.clone());
        }
        let number = filter::open_for_child()?.to_string();
        let word = |word: &String| if word == FILTER_FD { number.clone() } else { word.clone() };
        Ok(self.argv.iter().map(word).collect())
    }

    /// Sets the limits of this process, which its children inherit.
    pub(super) fn limit(&self) -> io::Result<()> {
        set(Resource::Core, 0)?;
        set(Resource::Fsize, self.file_bytes)?;
        set(Resource::Nofile, 1024)?;
        set(Resource::Nproc, PROCESSES_MAX)?;
        if let Some(bytes) = self.memory_bytes {
            set(Resource::As, bytes)?;
        }
        Ok(())
    }
}

/// Lowers a limit; one that is lower already stays.
fn set(resource: Resource, most: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.map_or(most, |had| had.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}
