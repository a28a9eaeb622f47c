//! Messages on a socket: four bytes of length, little-endian, then the message in postcard's form.
//!
//! A peer may be slow between messages, not within one, and it cannot make the reader hold more
//! memory than it has sent bytes.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest message, in bytes; see also `LARGE`.
pub(super) const FRAME_MAX: usize = 257 << 20;
/// An owner reads one message of more bytes than this at a time, so that many peers together cannot
/// exhaust it.
pub(super) const LARGE: usize = 4 << 20;
/// How long one message may take to arrive.
const FRAME_TIME: Duration = Duration::from_secs(60);
/// How long the peer may be silent within a message, or not read what is written to it.
pub(super) const STALL_TIME: Duration = Duration::from_secs(20);
/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// Appends a message with its length to `out`. Too long a one is left out, and its length returned.
pub(super) fn append<T: Serialize>(out: &mut Vec<u8>, message: &T) -> Result<(), usize> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let taken = std::mem::take(out);
    *out = postcard::to_extend(message, taken).expect("a Vec takes every message");
    let length = out.len() - start - 4;
    if length > FRAME_MAX {
        out.truncate(start);
        return Err(length);
    }
    let length = u32::try_from(length).expect("checked against the limit");
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Reads a message from its bytes.
pub(super) fn decode<T: DeserializeOwned>(frame: &[u8]) -> io::Result<T> {
    postcard::from_bytes(frame).map_err(|_| invalid("a message that cannot be read"))
}

pub(super) fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The receiving half of a socket.
#[derive(Debug)]
pub(super) struct Frames {
    reader: BufReader<UnixStream>,
}

impl Frames {
    pub(super) fn new(stream: UnixStream) -> Frames {
        Frames { reader: BufReader::with_capacity(CHUNK, stream) }
    }

    /// Waits for the next message, however long that takes, and gives its length; `None` when the
    /// peer has closed.
    pub(super) fn next_length(&mut self) -> io::Result<Option<usize>> {
        if self.reader.buffer().is_empty() {
            self.reader.get_ref().set_read_timeout(None)?;
            if self.fill()? == 0 {
                return Ok(None);
            }
            self.reader.get_ref().set_read_timeout(Some(STALL_TIME))?;
        }
        let mut length = [0; 4];
        self.reader.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > FRAME_MAX { Err(invalid("a message over the limit")) } else { Ok(Some(length)) }
    }

    /// Reads the message whose length `next_length` gave. Memory grows with what has arrived.
    pub(super) fn body(&mut self, length: usize) -> io::Result<Bytes> {
        let started = Instant::now();
        let mut body = vec![0; length.min(CHUNK)];
        let mut filled = 0;
        while filled < length {
            if filled == body.len() {
                body.resize((2 * filled).min(length), 0);
            }
            match self.reader.read(&mut body[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if started.elapsed() > FRAME_TIME {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(body.into())
    }

    /// Reads one message within the time of a greeting.
    pub(super) fn greeting<T: DeserializeOwned>(&mut self, wait: Duration) -> io::Result<T> {
        self.reader.get_ref().set_read_timeout(Some(wait))?;
        if self.fill()? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let length = self.next_length()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if length > CHUNK {
            return Err(invalid("a greeting over the limit"));
        }
        decode(&self.body(length)?)
    }

    fn fill(&mut self) -> io::Result<usize> {
        loop {
            match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                filled => return filled.map(<[u8]>::len),
            }
        }
    }
}
