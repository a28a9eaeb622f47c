//! Two hundred ways to be led astray, and a listener that counts who came.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::*;
use crate::Cancel;
use crate::sandbox::Sandbox;

/// A server on this machine that counts its visitors and answers what it is told to.
struct Server {
    port: u16,
    visits: Arc<AtomicUsize>,
}

impl Server {
    fn answering(answer: impl Fn(u16, &str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let visits = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&visits);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let mut stream = stream;
                let mut asked = Vec::new();
                let mut buffer = [0; 1024];
                while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut buffer) {
                        Ok(count) if count > 0 => asked.extend_from_slice(&buffer[..count]),
                        _ => break,
                    }
                }
                let asked = String::from_utf8_lossy(&asked).into_owned();
                drop(stream.write_all(answer(port, &asked).as_bytes()));
            }
        });
        Server { port, visits }
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn policy(hosts: &[String], local: &[String]) -> Policy {
    Policy {
        flock: PathBuf::from("/"),
        sandbox: Sandbox::Off,
        hosts: hosts.to_vec(),
        local_hosts: local.to_vec(),
    }
}

/// Every name leads where the test says.
fn leads_to(addresses: &'static [&'static str]) -> Resolve {
    Arc::new(move |_, port| {
        let found = addresses.iter().map(|ip| SocketAddr::new(ip.parse().expect("an IP"), port));
        let found: Vec<SocketAddr> = found.collect();
        Box::pin(async move { Ok(found) })
    })
}

fn fetch(fetch: &Fetch, args: Value) -> Answer {
    let args = match fetch.check(&args) {
        Ok(args) => args,
        Err(error) => return Answer::Failed(error),
    };
    let call = Call {
        action: String::new(),
        attempt: 1,
        effect: "http.fetch".to_owned(),
        args,
        idempotency_key: String::new(),
        timeout: Duration::from_secs(10),
        workspace: None,
        cancel: Cancel::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(fetch.run(&call))
}

fn kind(answer: Answer) -> String {
    match answer {
        Answer::Failed(error) => error.kind,
        other => panic!("it is refused: {other:?}"),
    }
}

/// Spellings of this machine and of networks around it. Each is on the list of allowed hosts, so
/// that only the look at its address stands in the way.
#[rustfmt::skip]
const NEAR: [&str; 72] = [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001",
    "0x7f.1", "127.000.000.001", "127.255.255.254", "0", "0.0.0.0", "0x0", "00", "[::1]", "[::]",
    "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::ffff:0.0.0.0]",
    "[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::]", "[2001:0:7f00:1::]", "[fe80::1]", "[fec0::1]",
    "[fc00::1]", "[fd00::1]", "[fd00:ec2::254]", "[ff02::1]", "[100::1]", "[2001:db8::1]", "[3fff::1]", "[64:ff9b:1::1]",
    "169.254.169.254", "169.254.0.1", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "0xa9.0xfe.0xa9.0xfe",
    "169.16689662", "10.0.0.1", "10.255.255.255", "167772161", "0xa000001", "012.0.0.1", "172.16.0.1", "172.31.255.255",
    "192.168.0.1", "192.168.1.1", "3232235521", "0xc0a80001", "100.64.0.1", "100.127.255.255", "192.0.0.1", "192.0.2.1",
    "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255", "１２７.0.0.1",
];

/// Texts that are no plain URL, or name a host that nobody allowed.
#[rustfmt::skip]
const STRANGE: [&str; 40] = [
    "http://allowed.test@127.0.0.1:PORT/", "http://allowed.test:80@127.0.0.1:PORT/", "http://user:pass@allowed.test:PORT/",
    "http://allowed.test:PORT@evil.test/", "http://127.0.0.1:PORT#@allowed.test/", "http://127.0.0.1:PORT?@allowed.test/",
    "http://127.0.0.1:PORT\\@allowed.test/", "http:\\\\127.0.0.1:PORT/", "http://allowed.test\0.evil.test/", "http://a\0.b:PORT/",
    "http://127.0.0.1\0:PORT/", "http://127.0.0.1%00:PORT/", "http://allowed.test%00.evil.test/", "http://allowed.test\n127.0.0.1/",
    "http://allowed.test\r\nHost: evil.test/", "http://allowed.test\t.evil.test/", "http://allowed.test /", " http://127.0.0.1:PORT/",
    "http://evil.test/", "http://allowed.test.evil.test/",
    "http://notallowed.test/", "http://evilallowed.test/", "http://sub.allowed.test/",
    "http://allowed.test:1/", "http://allowed.test./", "http://localhost:PORT/", "http://LOCALHOST:PORT/", "http://localhost.:PORT/",
    "http://localtest.me:PORT/", "http://127.0.0.1.nip.io:PORT/",
    "file:///etc/passwd", "ftp://127.0.0.1:PORT/", "gopher://127.0.0.1:PORT/_x",
    "data:text/plain,x", "javascript:1", "//127.0.0.1:PORT/", "127.0.0.1:PORT", "http://", "http:///", "http://[::1%25lo]:PORT/",
];

#[test]
fn no_spelling_of_a_near_address_is_reached() {
    let server = Server::answering(|_, _| ok("secret"));
    let mut tried = 0;
    for spelling in NEAR {
        let text = format!("http://{spelling}:{}/", server.port);
        // What the parser makes of it is allowed, as a careless person might.
        let host = Url::parse(&text).ok().and_then(|url| url.host_str().map(str::to_owned));
        let hosts: Vec<String> =
            host.iter().map(|host| format!("{host}:{}", server.port)).collect();
        let fetcher = Fetch::new(&policy(&hosts, &[]));
        let said = kind(fetch(&fetcher, json!({"url": text})));
        assert!(["http.address", "arguments.url"].contains(&said.as_str()), "{text}: {said}");
        // And by a name that leads there.
        if let Some(ip) = host.and_then(|host| host.trim_matches(['[', ']']).parse().ok()) {
            let found = SocketAddr::new(ip, server.port);
            let resolve: Resolve = Arc::new(move |_, _| Box::pin(async move { Ok(vec![found]) }));
            let hosts = [format!("allowed.test:{}", server.port)];
            let named = Fetch::with(&policy(&hosts, &[]), resolve);
            let text = format!("http://allowed.test:{}/", server.port);
            assert_eq!(kind(fetch(&named, json!({"url": text}))), "http.address", "{ip}");
            tried += 1;
        }
        tried += 1;
    }
    for text in STRANGE {
        let text = text.replace("PORT", &server.port.to_string());
        let fetcher = Fetch::with(&policy(&["allowed.test".into()], &[]), leads_to(&["127.0.0.1"]));
        let said = kind(fetch(&fetcher, json!({"url": text})));
        assert!(["http.host", "arguments.url"].contains(&said.as_str()), "{text}: {said}");
        tried += 1;
    }
    assert!(tried >= 180, "{tried} ways were tried");
    assert_eq!(server.visits(), 0, "nobody came");
}

/// A name with one good address and one near one is refused whole, in either order; and a name
/// that leads elsewhere when it is asked again is asked only once.
#[test]
fn a_name_is_resolved_once_and_all_its_addresses_count() {
    let server = Server::answering(|_, _| ok("secret"));
    let hosts = [format!("allowed.test:{}", server.port)];
    let url = json!({"url": format!("http://allowed.test:{}/", server.port)});
    for mixed in [&["8.8.8.8", "127.0.0.1"][..], &["127.0.0.1", "8.8.8.8"], &["2600::1", "::1"]] {
        let fetcher = Fetch::with(&policy(&hosts, &[]), leads_to(mixed));
        assert_eq!(kind(fetch(&fetcher, url.clone())), "http.address");
    }
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let rebinding: Resolve = Arc::new(move |_, port| {
        // The first answer is near and allowed; the second is a surprise that nobody asks for.
        let ip = if count.fetch_add(1, Ordering::SeqCst) == 0 { "127.0.0.1" } else { "127.0.0.2" };
        let found = vec![SocketAddr::new(ip.parse().expect("an IP"), port)];
        Box::pin(async move { Ok(found) })
    });
    let fetcher = Fetch::with(&policy(&[], &hosts), rebinding);
    assert!(matches!(fetch(&fetcher, url), Answer::Succeeded { .. }));
    assert_eq!((asked.load(Ordering::SeqCst), server.visits()), (1, 1));
}

#[test]
fn a_redirect_is_looked_at_like_any_url() {
    let victim = Server::answering(|_, _| ok("secret"));
    let goals = [
        format!("http://127.0.0.1:{}/", victim.port),
        format!("http://[::1]:{}/", victim.port),
        format!("http://0x7f000001:{}/", victim.port),
        format!("//127.0.0.1:{}/", victim.port),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/passwd".to_owned(),
        format!("http://user@127.0.0.1:{}/", victim.port),
    ];
    for goal in goals {
        for code in [301, 302, 303, 307, 308] {
            let to = goal.clone();
            let door = Server::answering(move |_, _| {
                format!("HTTP/1.1 {code} Go\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
            });
            let door_host = format!("localhost:{}", door.port);
            let fetcher = Fetch::new(&policy(&["*.test".into()], &[door_host]));
            let url = format!("http://localhost:{}/", door.port);
            let said = kind(fetch(&fetcher, json!({"url": url})));
            assert!(["http.host", "arguments.url"].contains(&said.as_str()), "{goal}: {said}");
        }
    }
    assert_eq!(victim.visits(), 0, "nobody came");
}

#[test]
fn a_circle_of_redirects_ends_and_headers_stay_with_their_host() {
    let circle = Server::answering(|_, _| {
        "HTTP/1.1 302 Go\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n".to_owned()
    });
    let host = format!("localhost:{}", circle.port);
    let fetcher = Fetch::new(&policy(&[], &[host]));
    let url = format!("http://localhost:{}/", circle.port);
    assert_eq!(kind(fetch(&fetcher, json!({"url": url}))), "http.redirects");
    assert_eq!(circle.visits(), REDIRECTS_MAX + 1);

    let goal = Server::answering(|_, asked| ok(asked));
    let to = goal.port;
    let door = Server::answering(move |_, _| {
        format!("HTTP/1.1 302 Go\r\nlocation: http://127.0.0.1:{to}/\r\ncontent-length: 0\r\n\r\n")
    });
    let local = [format!("localhost:{}", door.port), format!("127.0.0.1:{}", goal.port)];
    let fetcher = Fetch::new(&policy(&[], &local));
    let url = format!("http://localhost:{}/", door.port);
    let args = json!({"url": url, "headers": {"authorization": "Bearer secret"}});
    let Answer::Succeeded { result, .. } = fetch(&fetcher, args) else { panic!("it arrives") };
    let text = result["text"].as_str().expect("what was asked");
    assert!(text.starts_with("GET / HTTP/1.1") && !text.contains("secret"), "{text}");
}

#[test]
fn what_a_server_says_is_told_with_who_can_mend_it() {
    let cases =
        [(503, true, Blame::Provider), (429, true, Blame::Provider), (404, false, Blame::Caller)];
    for (code, retryable, blame) in cases {
        let server = Server::answering(move |_, _| {
            format!("HTTP/1.1 {code} No\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy")
        });
        let fetcher = Fetch::new(&policy(&[], &[format!("127.0.0.1:{}", server.port)]));
        let url = format!("http://127.0.0.1:{}/x", server.port);
        let Answer::Failed(error) = fetch(&fetcher, json!({"url": url})) else {
            panic!("it fails")
        };
        assert_eq!((error.retryable, error.blame), (retryable, blame), "{error}");
    }
    let large = Server::answering(|_, _| ok(&"x".repeat(400_000)));
    let fetcher = Fetch::new(&policy(&[], &[format!("127.0.0.1:{}", large.port)]));
    let url = format!("http://127.0.0.1:{}/x", large.port);
    let Answer::Succeeded { result, .. } = fetch(&fetcher, json!({"url": url})) else {
        panic!("it succeeds")
    };
    assert_eq!((&result["cut"], &result["bytes"]), (&json!(false), &json!(400_000)));
    assert_eq!(result["text"].as_str().map(str::len), Some(400_000), "it is kept whole");
}
