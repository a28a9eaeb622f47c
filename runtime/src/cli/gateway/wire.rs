//! As much of HTTP/1.1 as the gateway and its tools need: one request, one answer, a closed socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// The longest head and the longest body.
const BYTES_MAX: u64 = 1 << 20;

/// A request or an answer.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// Its first line.
    pub(super) first: String,
    /// Its headers, names in small letters.
    pub(super) headers: Vec<(String, String)>,
    /// Its body.
    pub(super) body: Vec<u8>,
}

impl Message {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The status of an answer.
    pub(super) fn status(&self) -> Option<u16> {
        self.first.split(' ').nth(1)?.parse().ok()
    }
}

/// Reads one message.
pub(super) fn read(stream: &TcpStream) -> io::Result<Message> {
    let mut from = BufReader::new(stream.take(BYTES_MAX));
    let mut message = Message { first: line(&mut from)?, ..Message::default() };
    loop {
        let header = line(&mut from)?;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
        message.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = message.header("content-length").and_then(|text| text.parse::<u64>().ok());
    let length = length.unwrap_or(0).min(BYTES_MAX);
    from.take(length).read_to_end(&mut message.body)?;
    if message.body.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(message)
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

/// Writes one message.
pub(super) fn write(
    mut to: &TcpStream,
    first: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<()> {
    let mut text = format!("{first}\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len()));
    to.write_all(text.as_bytes())?;
    to.write_all(body)?;
    to.flush()
}
