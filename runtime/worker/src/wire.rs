//! What goes between host and worker: frames, each a length and its bytes.

use std::io::{self, BufRead, Read};
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// No frame is longer, in bytes; an event has at most 1 MiB, its reads a few thousand elements.
const FRAME_MAX: usize = 256 << 20;

const LOAD: u8 = 0;
const REACT: u8 = 1;

/// How often a socket is asked before its reader sleeps: for some ten microseconds, which is what
/// the other side takes for a small answer, and far less than going to sleep and being woken.
const LOOKS: usize = 100;

/// A socket whose reader waits a moment before it sleeps.
#[derive(Debug)]
pub(crate) struct Patient<S>(pub(crate) S);

impl<S: AsFd + Read> Read for Patient<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for _ in 0..LOOKS {
            match recv(&self.0, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((length, _)) => return Ok(length),
                Err(Errno::AGAIN) => std::hint::spin_loop(),
                Err(error) => return Err(error.into()),
            }
        }
        self.0.read(buffer)
    }
}

/// What the host asks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ask<'a> {
    /// Load a script. The first one loaded is number 0.
    Load { path: &'a str, text: &'a str },
    /// Let a behavior react: the script's number, its own number in there, the encoded firing.
    React { script: u32, behavior: u32, firing: &'a [u8] },
}

impl<'a> Ask<'a> {
    /// Writes it as a frame.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Ask::Load { path, text } => {
                let length = u32::try_from(path.len()).expect("a path is short").to_le_bytes();
                write_frame(out, &[&[LOAD], &length, path.as_bytes(), text.as_bytes()]);
            }
            Ask::React { script, behavior, firing } => {
                let (script, behavior) = (script.to_le_bytes(), behavior.to_le_bytes());
                write_frame(out, &[&[REACT], &script, &behavior, firing]);
            }
        }
    }

    /// Reads what `write` wrote, without its length.
    pub(crate) fn read(frame: &'a [u8]) -> io::Result<Self> {
        let bad = || io::Error::new(io::ErrorKind::InvalidData, "a frame that asks nothing");
        let (tag, rest) = frame.split_first().ok_or_else(bad)?;
        let (number, rest) = rest.split_first_chunk().ok_or_else(bad)?;
        let number = u32::from_le_bytes(*number);
        match *tag {
            LOAD => {
                let (path, text) = rest.split_at_checked(number as usize).ok_or_else(bad)?;
                let utf8 = |bytes| std::str::from_utf8(bytes).map_err(|_| bad());
                Ok(Ask::Load { path: utf8(path)?, text: utf8(text)? })
            }
            REACT => {
                let (behavior, firing) = rest.split_first_chunk().ok_or_else(bad)?;
                let behavior = u32::from_le_bytes(*behavior);
                Ok(Ask::React { script: number, behavior, firing })
            }
            _ => Err(bad()),
        }
    }
}

/// Writes a frame of these parts.
pub(crate) fn write_frame(out: &mut Vec<u8>, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    assert!(length <= FRAME_MAX, "what goes between the processes is bounded where it is made");
    out.extend_from_slice(&(length as u32).to_le_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Reads a frame into `frame`; false at the end of the input.
pub(crate) fn read_frame(input: &mut impl BufRead, frame: &mut Vec<u8>) -> io::Result<bool> {
    if input.fill_buf()?.is_empty() {
        return Ok(false);
    }
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_MAX {
        let what = format!("a frame of {length} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    frame.clear();
    let read = input.take(length as u64).read_to_end(frame)?;
    if read < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_read_as_it_was_written() {
        let asks = [
            Ask::Load { path: "behaviors/é.star", text: "x = 1\n" },
            Ask::React { script: 7, behavior: 1, firing: b"\0\xff" },
            Ask::React { script: 0, behavior: 0, firing: b"" },
        ];
        let mut bytes = Vec::new();
        asks.iter().for_each(|ask| ask.write(&mut bytes));
        let (mut input, mut frame) = (bytes.as_slice(), Vec::new());
        for ask in asks {
            assert!(read_frame(&mut input, &mut frame).expect("a frame"));
            assert_eq!(Ask::read(&frame).expect("it asks"), ask);
        }
        assert!(!read_frame(&mut input, &mut frame).expect("the end"));
        assert!(read_frame(&mut &bytes[..9], &mut frame).is_err(), "it was cut");
        assert!(Ask::read(&[9, 0, 0, 0, 0]).is_err());
    }
}
