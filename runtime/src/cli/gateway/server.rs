//! The gateway itself: what it does, and how it fails.

use std::collections::BTreeMap;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::ledger::{Asked, Ledger};
use super::wire;
use crate::cli::failure::Failure;
use crate::cli::shell::Shell;

/// How a request goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// It is done and answered.
    #[default]
    Ok,
    /// The connection closes, and nothing is done.
    NeverReceived,
    /// It is done, and the connection closes without an answer.
    ReplyLost,
    /// The connection closes, and it is done a while later.
    LandsLater,
    /// It is done, and the answer takes its time.
    Slow,
    /// It is answered with an error of the server, and not done.
    ServerError,
    /// It is done, and the answer is not what was agreed.
    WrongBody,
    /// It is refused for good.
    Refused,
}

/// How long what lands later takes, and what is slow.
const LATER: Duration = Duration::from_millis(1500);

/// What the threads of the gateway share.
#[derive(Debug)]
struct World {
    ledger: Ledger,
    /// For `WHAT:ITEM`, how its requests go, one after the other.
    modes: BTreeMap<String, Vec<Mode>>,
    asked: BTreeMap<String, usize>,
    /// Actions that will land, by what and id.
    coming: Vec<(String, String)>,
}

/// Serves until the process is ended.
pub(super) fn serve(
    ledger: &Path,
    modes: Option<&Path>,
    port: u16,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| Failure::Failed(format!("{what}: {error}"))
    };
    let modes = match modes {
        None => BTreeMap::new(),
        Some(path) => {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(failed(&name))?;
            let modes = serde_json::from_str(&text);
            modes.map_err(|error| Failure::Usage(format!("{name}: {error}")))?
        }
    };
    let opened = Ledger::open(ledger).map_err(failed(&ledger.display().to_string()))?;
    let world = World { ledger: opened, modes, asked: BTreeMap::new(), coming: Vec::new() };
    let world = Arc::new(Mutex::new(world));
    let listener = TcpListener::bind(("127.0.0.1", port));
    let listener = listener.map_err(failed(&format!("port {port}")))?;
    let address = listener.local_addr().map_err(failed("the port"))?;
    shell.line(address)?;
    shell.out.flush()?;
    for stream in listener.incoming().flatten() {
        let world = Arc::clone(&world);
        // Whoever breaks off a connection is nobody to tell.
        thread::spawn(move || drop(answer(&stream, &world)));
    }
    Ok(())
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().expect("no thread breaks off while it holds the ledger")
}

fn answer(stream: &TcpStream, world: &Arc<Mutex<World>>) -> io::Result<()> {
    let request = wire::read(stream)?;
    let mut words = request.first.split(' ');
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let what = path.trim_start_matches('/').to_owned();
    let header = |name: &str| request.header(name).unwrap_or("").to_owned();
    if method == "GET" {
        return look(stream, &lock(world), &what, &header("action"));
    }
    let Ok(args) = serde_json::from_slice::<Value>(&request.body) else {
        return reply(stream, "400 Bad Request", &json!({"error": "the body is no JSON"}));
    };
    let asked = Asked {
        what,
        action: header("action"),
        key: header("idempotency-key"),
        attempt: header("attempt"),
        args,
    };
    act(stream, world, &asked)
}

/// Does what is asked, or fails as the modes say.
fn act(stream: &TcpStream, world: &Arc<Mutex<World>>, asked: &Asked) -> io::Result<()> {
    if asked.what == "quote" {
        return quote(stream, world, asked);
    }
    if !["book", "pay", "mail", "publish"].contains(&asked.what.as_str()) {
        return reply(stream, "404 Not Found", &json!({"error": "there is nothing of that name"}));
    }
    // Bound first: in the head of the match the ledger would stay locked to its end.
    let mode = lock(world).next_mode(asked);
    match mode {
        Mode::NeverReceived => Ok(()),
        Mode::ServerError => {
            let body = json!({"error": "the gateway is out of order"});
            reply(stream, "503 Service Unavailable", &body)
        }
        Mode::Refused => reply(stream, "402 Payment Required", &json!({"error": "no money"})),
        Mode::LandsLater => {
            let coming = (asked.what.clone(), asked.action.clone());
            lock(world).coming.push(coming.clone());
            // The caller hears nothing from here on.
            stream.shutdown(std::net::Shutdown::Both)?;
            thread::sleep(LATER);
            let mut world = lock(world);
            world.coming.retain(|other| *other != coming);
            world.record(asked).map(drop)
        }
        mode => {
            let (status, body) = lock(world).record(asked)?;
            match mode {
                Mode::ReplyLost => return Ok(()),
                Mode::WrongBody => {
                    return wire::write(stream, "HTTP/1.1 200 OK", &[], b"<html>Thank you!</html>");
                }
                Mode::Slow => thread::sleep(LATER),
                _ => {}
            }
            reply(stream, status, &body)
        }
    }
}

impl World {
    fn next_mode(&mut self, asked: &Asked) -> Mode {
        let item = asked.args["item"].as_str().unwrap_or("");
        let name = format!("{}:{item}", asked.what);
        let turn = self.asked.entry(name.clone()).or_default();
        let mode = self.modes.get(&name).and_then(|modes| modes.get(*turn));
        *turn += 1;
        mode.copied().unwrap_or_default()
    }

    /// Writes it down; for a payment the key decides whether it was there already.
    fn record(&mut self, asked: &Asked) -> io::Result<(&'static str, Value)> {
        if asked.what == "pay"
            && let Some(line) = self.ledger.of_key("pay", &asked.key)
        {
            if line["args"] != asked.args {
                let body = json!({"error": "the key was used for another payment"});
                return Ok(("409 Conflict", body));
            }
            return Ok(("200 OK", receipt(line)));
        }
        let line = self.ledger.record(asked)?;
        Ok(("200 OK", receipt(&line)))
    }
}

fn receipt(line: &Value) -> Value {
    json!({"receipt": line["receipt"]})
}

/// A price, which changes nothing and is not written down.
fn quote(stream: &TcpStream, world: &Arc<Mutex<World>>, asked: &Asked) -> io::Result<()> {
    let item = asked.args["item"].as_str().unwrap_or("");
    let price = 100 + 10 * item.len();
    let mode = lock(world).next_mode(asked);
    match mode {
        Mode::Ok => reply(stream, "200 OK", &json!({"item": item, "price": price})),
        Mode::Slow => {
            thread::sleep(LATER);
            reply(stream, "200 OK", &json!({"item": item, "price": price}))
        }
        Mode::WrongBody => wire::write(stream, "HTTP/1.1 200 OK", &[], b"<html>price</html>"),
        Mode::ServerError => reply(stream, "503 Service Unavailable", &json!({"error": "later"})),
        Mode::Refused => reply(stream, "404 Not Found", &json!({"error": "no such item"})),
        Mode::NeverReceived | Mode::ReplyLost | Mode::LandsLater => Ok(()),
    }
}

/// What became of an action.
fn look(stream: &TcpStream, world: &World, what: &str, action: &str) -> io::Result<()> {
    let coming = world.coming.iter().any(|(kind, id)| kind == what && id == action);
    let body = match world.ledger.of_action(what, action) {
        Some(line) => json!({"status": "found", "result": receipt(line)}),
        None if coming => json!({"status": "pending"}),
        None => json!({"status": "absent"}),
    };
    reply(stream, "200 OK", &body)
}

fn reply(stream: &TcpStream, status: &str, body: &Value) -> io::Result<()> {
    let first = format!("HTTP/1.1 {status}");
    let kind = [("content-type", "application/json")];
    wire::write(stream, &first, &kind, body.to_string().as_bytes())
}
