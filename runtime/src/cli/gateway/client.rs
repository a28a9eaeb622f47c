//! The tools that reach the gateway: arguments on standard input, the answer on standard output.
//!
//! They are honest about what they know. A connection that was refused, or an answer that refuses,
//! is settled: exit code 1. Whatever happened after the request had left may have been done: exit
//! code 75, unless an answer says what came of it.

use std::env;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::wire::{self, Message};
use crate::cli::failure::Failure;
use crate::cli::shell::Shell;

/// The exit code of a tool that does not know whether it was done.
const CANNOT_TELL: u8 = 75;

/// Asks the gateway to do something.
pub(super) fn call(what: &str, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let mut input = Vec::new();
    let read = shell.take_input().read_to_end(&mut input);
    read.map_err(|error| Failure::Failed(format!("the arguments: {error}")))?;
    let stream = match connect() {
        Ok(stream) => stream,
        Err(what) => return fail(shell, 1, "network.refused", &what, true),
    };
    match exchange(&stream, &format!("POST /{what} HTTP/1.1"), &input) {
        Ok(answer) => tell(shell, &answer),
        Err(error) => {
            let what = format!("the request left, and no answer came: {error}");
            fail(shell, CANNOT_TELL, "network.no_answer", &what, true)
        }
    }
}

/// Asks the gateway what became of the action in the environment.
pub(super) fn look(what: &str, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let answer = connect().and_then(|stream| {
        exchange(&stream, &format!("GET /{what} HTTP/1.1"), &[]).map_err(|e| e.to_string())
    });
    let answer = answer.map_err(Failure::Failed)?;
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    shell.line(body)
}

fn connect() -> Result<TcpStream, String> {
    let place = env::var("GATEWAY").unwrap_or_else(|_| "127.0.0.1:8377".to_owned());
    let address: SocketAddr =
        place.parse().map_err(|_| format!("GATEWAY={place} is no ADDRESS:PORT"))?;
    let stream = TcpStream::connect_timeout(&address, timeout());
    let stream = stream.map_err(|error| {
        format!("nobody answers at {place}: {error}; start `starling gateway serve`")
    })?;
    let set = stream.set_read_timeout(Some(timeout()));
    set.and_then(|()| stream.set_write_timeout(Some(timeout()))).map_err(|e| e.to_string())?;
    Ok(stream)
}

/// A little less than the tool has, so that it can still say what it knows.
fn timeout() -> Duration {
    let millis = env::var("STARLING_TIMEOUT_MS").ok().and_then(|text| text.parse().ok());
    Duration::from_millis(millis.unwrap_or(10_000_u64) * 4 / 5 + 1)
}

fn exchange(stream: &TcpStream, first: &str, body: &[u8]) -> std::io::Result<Message> {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let (action, attempt) = (variable("STARLING_ACTION"), variable("STARLING_ATTEMPT"));
    let key = variable("STARLING_IDEMPOTENCY_KEY");
    let headers = [("action", &*action), ("attempt", &attempt), ("idempotency-key", &key)];
    wire::write(stream, first, &headers, body)?;
    wire::read(stream)
}

/// Passes an answer on. What a server of errors has done is not known.
fn tell(shell: &mut Shell<'_>, answer: &Message) -> Result<(), Failure> {
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    match answer.status().unwrap_or(0) {
        200..=299 => shell.line(text),
        409 => fail(shell, 1, "provider.conflict", &text, false),
        400..=499 => fail(shell, 1, "provider.refused", &text, false),
        status => fail(shell, CANNOT_TELL, "provider.error", &format!("{status}: {text}"), true),
    }
}

fn fail(
    shell: &mut Shell<'_>,
    code: u8,
    kind: &str,
    what: &str,
    retryable: bool,
) -> Result<(), Failure> {
    let error: Value =
        json!({"kind": kind, "message": what, "retryable": retryable, "blame": "provider"});
    shell.line(json!({"error": error}))?;
    Err(Failure::Told(code))
}
