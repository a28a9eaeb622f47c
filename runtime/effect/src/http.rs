//! `http.fetch`: reads from hosts that the person allowed, and cannot be led anywhere else.
//!
//! 1. Nothing is reached that is not on the list, whatever a redirect says.
//! 2. A name is resolved once. If one of its addresses is of this machine or a private network the
//!    whole name is refused; otherwise the connection goes to an address that was looked at.
//! 3. Only GET and HEAD: what is fetched changes nothing, so it may be fetched again.

mod address;
mod target;

use std::net::SocketAddr;
use std::sync::{Arc, Once};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde_json::{Map, Value, json};

use crate::answer::{Answer, Seen};
use crate::builtin::Policy;
use crate::call::Call;
use crate::class::Class;
use crate::error::{Blame, EffectError};
use crate::executor::{Executor, Limits, Pending};
use crate::process::{Capture, KEPT_BYTES};
use crate::schema::Schema;

use target::{Allowed, Target, Trust};

/// The most redirects of one fetch.
const REDIRECTS_MAX: usize = 5;

/// The most that is read of one answer.
const BODY_BYTES_MAX: u64 = 16 << 20;

/// Asks for the addresses of a host.
pub(crate) type Resolve =
    Arc<dyn Fn(String, u16) -> Pending<'static, std::io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Fetches.
pub(crate) struct Fetch {
    allowed: Allowed,
    resolve: Resolve,
    schema: Schema,
}

impl std::fmt::Debug for Fetch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Fetch").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

impl Fetch {
    /// Fetches what the policy allows.
    pub(crate) fn new(policy: &Policy) -> Self {
        let system: Resolve = Arc::new(|host, port| {
            Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
        });
        Fetch::with(policy, system)
    }

    fn with(policy: &Policy, resolve: Resolve) -> Self {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["url"],
            "properties": {
                "url": {"type": "string", "maxLength": 8192},
                "method": {"enum": ["GET", "HEAD"], "default": "GET"},
                "headers": {
                    "type": "object", "additionalProperties": {"type": "string"}, "default": {},
                },
            },
        });
        let schema = Schema::new(schema).expect("a built-in schema is one");
        Fetch { allowed: Allowed::new(&policy.hosts, &policy.local_hosts), resolve, schema }
    }

    async fn act(&self, call: &Call) -> Result<Value, EffectError> {
        let mut url = target::parse(call.args["url"].as_str().unwrap_or(""))?;
        let method = if call.args["method"] == "HEAD" { Method::HEAD } else { Method::GET };
        let mut headers = headers(&call.args["headers"])?;
        for _ in 0..=REDIRECTS_MAX {
            let target = self.allowed.target(&url)?;
            let response = self.send(&url, &target, method.clone(), headers.clone()).await?;
            let Some(next) = redirect(&url, &response)? else {
                return read(url, response).await;
            };
            if next.origin() != url.origin() {
                // What was meant for one host, a token perhaps, is not for the next.
                headers.clear();
            }
            url = next;
        }
        Err(refusal("http.redirects", "it is redirected again and again", "fetch its target"))
    }

    /// Sends one request to an address that was looked at.
    async fn send(
        &self,
        url: &Url,
        target: &Target,
        method: Method,
        headers: HeaderMap,
    ) -> Result<Response, EffectError> {
        let found = match target.literal {
            Some(address) => Ok(vec![SocketAddr::new(address, target.port)]),
            None => (self.resolve)(target.host.clone(), target.port).await,
        };
        let found = found.map_err(|error| network("network.name", &target.host, &error))?;
        address::check(&target.host, &found, target.trust == Trust::Local)?;
        let client = client(&target.host, &found)
            .map_err(|error| network("network.client", &target.host, &error))?;
        let sent = client.request(method, url.clone()).headers(headers).send().await;
        sent.map_err(|error| network("network.connect", &target.host, &chain(&error)))
    }
}

/// A client that knows one host, by these addresses, and no proxy and no redirect.
fn client(host: &str, addresses: &[SocketAddr]) -> reqwest::Result<Client> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // A program that embeds Starling may have chosen one; then that one stands.
        drop(rustls::crypto::ring::default_provider().install_default());
    });
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .resolve_to_addrs(host, addresses)
        .user_agent(concat!("starling/", env!("CARGO_PKG_VERSION")))
        .build()
}

fn headers(given: &Value) -> Result<HeaderMap, EffectError> {
    let mut headers = HeaderMap::new();
    for (name, value) in given.as_object().into_iter().flatten() {
        let refuse = || {
            let what = format!("the header `{}` may not be sent", name.escape_debug());
            EffectError::new("arguments.header", Blame::Caller, what, "leave it out")
        };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refuse())?;
        // These say where the request goes, or where it ends.
        if ["host", "connection", "content-length", "transfer-encoding", "upgrade"]
            .contains(&key.as_str())
        {
            return Err(refuse());
        }
        let value = HeaderValue::from_str(value.as_str().unwrap_or("")).map_err(|_| refuse())?;
        headers.insert(key, value);
    }
    Ok(headers)
}

/// Where an answer sends on to; nothing if it is an answer.
fn redirect(url: &Url, response: &Response) -> Result<Option<Url>, EffectError> {
    let codes = [301, 302, 303, 307, 308];
    let place = response.headers().get(LOCATION);
    let Some(place) = place.filter(|_| codes.contains(&response.status().as_u16())) else {
        return Ok(None);
    };
    let place = place.to_str().map_err(|_| target::no_url("the redirect is no text"))?;
    target::parse_from(url, place).map(Some)
}

async fn read(url: Url, mut response: Response) -> Result<Value, EffectError> {
    let status = response.status();
    let mut body = Capture::new(KEPT_BYTES);
    let mut hasher = blake3::Hasher::new();
    let mut bytes = 0u64;
    let mut is_text = true;
    loop {
        let chunk = response.chunk().await;
        let chunk = chunk.map_err(|error| network("network.body", url.as_str(), &chain(&error)))?;
        let Some(chunk) = chunk.filter(|_| bytes < BODY_BYTES_MAX) else { break };
        is_text &= !chunk.contains(&0);
        bytes += chunk.len() as u64;
        hasher.update(&chunk);
        body.push(&chunk);
    }
    body.finish();
    if status.is_client_error() || status.is_server_error() {
        return Err(status_error(status, &url, &body.text()));
    }
    let headers: Map<String, Value> = response
        .headers()
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), json!(value))
        })
        .collect();
    let text = if is_text { json!(body.text()) } else { Value::Null };
    Ok(json!({
        "status": status.as_u16(), "url": url.as_str(), "headers": headers, "text": text,
        "bytes": bytes, "hash": hasher.finalize().to_hex().as_str(),
        "cut": body.is_cut() || bytes >= BODY_BYTES_MAX,
    }))
}

fn status_error(status: StatusCode, url: &Url, body: &str) -> EffectError {
    let again = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    let blame = if again { Blame::Provider } else { Blame::Caller };
    let body: String = body.chars().take(2000).collect();
    let what = format!("{url} answers {status}\n{body}");
    let action = if again { "try again later" } else { "correct the address or the headers" };
    let error = EffectError::new("http.status", blame, what.trim_end(), action);
    if again { error.retryable() } else { error }
}

fn refusal(kind: &str, what: &str, action: &str) -> EffectError {
    EffectError::new(kind, Blame::Policy, what, action)
}

fn network(kind: &str, host: &str, error: &dyn std::fmt::Display) -> EffectError {
    let what = format!("{host}: {error}");
    EffectError::new(kind, Blame::Provider, what, "see whether the host can be reached").retryable()
}

/// An error with what caused it: the outermost says little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

impl Executor for Fetch {
    fn class(&self) -> Class {
        Class::ReadOnly
    }

    fn limits(&self) -> Limits {
        Limits::default()
    }

    fn check(&self, args: &Value) -> Result<Value, EffectError> {
        let args = self.schema.arguments("http.fetch", args)?;
        let url = target::parse(args["url"].as_str().unwrap_or(""))?;
        self.allowed.target(&url)?;
        headers(&args["headers"])?;
        Ok(args)
    }

    fn run<'a>(&'a self, call: &'a Call) -> Pending<'a, Answer> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = call.cancel.cancelled() => Answer::Cancelled,
                done = self.act(call) => match done {
                    Ok(result) => Answer::Succeeded { result, fingerprint: None },
                    Err(error) => Answer::Failed(error),
                },
                () = tokio::time::sleep(call.timeout) => {
                    let what = "its time was over";
                    Answer::Failed(EffectError::new(
                        "network.timeout", Blame::Provider, what, "try again later",
                    ).retryable())
                }
            }
        })
    }

    fn look<'a>(&'a self, _call: &'a Call, _intent: &'a Value) -> Pending<'a, Seen> {
        Box::pin(async { Seen::Absent })
    }
}

#[cfg(test)]
mod tests;
