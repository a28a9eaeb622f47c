//! Killing the writer: a process that is gone in the middle of anything has lost nothing that it
//! acknowledged, and whatever it did not acknowledge can be sent again.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use log::{BranchId, Draft, Event, Head, Log, LogError, Offset, RedbLog, genesis, link, read_all};
use serde_json::json;

use crate::support::random::Random;
use crate::support::{STORE, append, append_of, draft, long, name};

/// Names the store, in the process that is killed.
const STORE_PATH: &str = "STARLING_TEST_KILLED_STORE";
const TEST: &str = "crash::kill_9_loses_nothing_and_what_is_sent_again_lands_once";
/// A store is used for so many kills; then the next one is made.
const KILLS_A_STORE: u64 = 8;

/// Event `n` of every store.
fn event(n: u64) -> Draft {
    let text = Random::new(n).text(if n.is_multiple_of(31) { 5000 } else { n % 90 });
    let mut draft = draft(n, &json!({"n": n, "text": text}));
    draft.key = Some(format!("key {n}").into());
    draft
}

/// What is appended after so many events.
fn batch_after(events: u64) -> Vec<Draft> {
    (events..events + 1 + events % 5).map(event).collect()
}

/// Appends until it is killed, and tells of each step.
fn write_for_ever(path: &Path) -> ! {
    let tell = |text: &str| {
        // In one piece, so that a kill leaves no half of a line that looks whole.
        let mut out = std::io::stdout().lock();
        out.write_all(format!("told: {text}.\n").as_bytes()).expect("somebody listens");
        out.flush().expect("somebody listens");
    };
    tell("begun");
    let log = match RedbLog::open(path) {
        Err(LogError::Missing { .. }) => RedbLog::create(path, STORE),
        opened => opened,
    };
    let log = log.expect("nothing is wrong with the store");
    let main = log.branches().expect("the log is open").first().map(|branch| branch.id);
    let main = main.unwrap_or_else(|| log.create(&name("main")).expect("a branch is made").id);
    let mut head = log.branch(main).expect("it is there").tip.head;
    tell("opened");
    loop {
        let appended = append(&log, main, head, &batch_after(head.count()));
        let appended = appended.expect("nobody else appends");
        head = appended.head;
        tell(&format!("{} {}", head.count(), appended.link));
    }
}

/// What a killed writer had told.
#[derive(Debug, Default)]
struct Told {
    opened: bool,
    /// The number of events and the link of the last, of the last acknowledged append.
    acknowledged: Option<(u64, String)>,
}

impl Told {
    /// Gives the name of the step.
    fn line(&mut self, line: &str) {
        let Some(text) = line.strip_prefix("told: ").and_then(|text| text.strip_suffix('.')) else {
            return;
        };
        match text.split_once(' ') {
            Some((events, link)) => {
                let events = events.parse().expect("a number of events");
                self.acknowledged = Some((events, link.to_owned()));
            }
            None => self.opened |= text == "opened",
        }
    }
}

/// Starts a writer, and kills it so long after it said that it has begun, or opened the store.
fn kill(path: &Path, delay: Duration, opened: bool) -> Told {
    let program = std::env::current_exe().expect("this test is a program");
    let mut child = Command::new(program)
        .args([TEST, "--exact", "--nocapture"])
        .env(STORE_PATH, path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a program can be started");
    let output = BufReader::new(child.stdout.take().expect("it has an output"));
    let (sender, lines) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in output.lines() {
            drop(sender.send(line.expect("the output is text")));
        }
    });
    let (mut told, mut until) = (Told::default(), None);
    loop {
        let line = match until {
            None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => lines.recv_timeout(until - Instant::now().min(until)),
        };
        match line {
            Ok(line) => {
                told.line(&line);
                if until.is_none() && (told.opened || !opened && line.contains("begun")) {
                    until = Some(Instant::now() + delay);
                }
            }
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => panic!("the writer ended by itself"),
        }
    }
    child.kill().expect("it is ours");
    let status = child.wait().expect("it was started");
    assert_eq!(status.signal(), Some(9), "it was killed: {status}");
    reader.join().expect("it only reads");
    lines.iter().for_each(|line| told.line(&line));
    told
}

/// Compares all events with those that were sent. Gives the links.
fn check_events(log: &dyn Log, main: BranchId) -> Vec<String> {
    let mut before = genesis();
    let mut links = Vec::new();
    for (n, found) in (0..).zip(read_all(log, main).expect("the branch is there")) {
        let found = found.expect("no event is damaged");
        let sent = Event::encode(&event(n), Offset::new(n)).expect("it was sent").0;
        assert_eq!(found, sent, "event {n}");
        before = link(&before, found.offset(), &found.digest());
        links.push(before.to_string());
    }
    let tip = log.branch(main).expect("the branch is there").tip;
    assert_eq!((tip.head.count(), tip.link), (links.len() as u64, before), "the tip");
    links
}

/// How a kill was survived.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    /// There is no store, and none was promised.
    Nothing,
    /// There is exactly what was acknowledged.
    Acknowledged,
    /// The append that was under way is there, too.
    More,
}

/// Looks at what a killed writer left, and sends again what it may have been sending.
fn look_after(path: &Path, told: &Told) -> Left {
    let acknowledged = told.acknowledged.as_ref().map_or(0, |(events, _)| *events);
    let log = match RedbLog::open(path) {
        Err(LogError::Missing { .. }) if !told.opened => return Left::Nothing,
        opened => opened.expect("a store that was made opens again"),
    };
    let leftover = |name: &str| name.contains(".new-");
    let files = fs::read_dir(path.parent().expect("a folder")).expect("it can be read");
    let names = files.map(|file| file.expect("it can be read").file_name());
    let names: Vec<_> = names.map(|name| name.into_string().expect("a plain name")).collect();
    assert!(!names.iter().any(|name| leftover(name)), "{names:?}");
    let Some(main) = log.branches().expect("the log is open").first().map(|branch| branch.id)
    else {
        assert!(!told.opened, "the branch was made");
        return Left::Acknowledged;
    };
    let links = check_events(&log, main);
    let before = links.len() as u64;
    if let Some((events, link)) = &told.acknowledged {
        assert_eq!(links.get(*events as usize - 1), Some(link), "{events} were acknowledged");
    }
    // Before the first answer of this life, earlier lives' events are there.
    let start = if told.acknowledged.is_some() { acknowledged } else { before };
    let doubted = batch_after(start);
    let landed_before = before > start;
    let whole = [start, start + doubted.len() as u64];
    assert!(whole.contains(&before), "{before} events, where a batch starts at {start}");
    let again = append_of(main, Head::of_count(before), &doubted);
    let answer = log.submit(again).wait().expect("the log answers").expect("the same content");
    assert_eq!(answer.head.count(), whole[1]);
    assert!(answer.landed.iter().all(|landed| landed.repeated == landed_before), "{answer:?}");
    assert_eq!(check_events(&log, main).len() as u64, whole[1], "no event stands twice");
    log.close().expect("the store closes");
    if landed_before { Left::More } else { Left::Acknowledged }
}

/// Writers are killed while they make a store, open it, recover it and append.
#[test]
fn kill_9_loses_nothing_and_what_is_sent_again_lands_once() {
    if let Some(path) = std::env::var_os(STORE_PATH) {
        write_for_ever(Path::new(&path));
    }
    let kills = if long() { 1000 } else { 64 };
    let (mut left_nothing, mut more, mut while_making, mut told_nothing) = (0, 0, 0, 0);
    let mut random = Random::new(kills);
    let mut folder = None;
    for nth in 0..kills {
        if nth % KILLS_A_STORE == 0 {
            folder = Some(tempfile::tempdir().expect("a temporary folder can be made"));
        }
        let path = folder.as_ref().expect("just made").path().join("store.log");
        let making = !path.exists();
        let delay = Duration::from_micros(2000 + random.below(40_000));
        // However slow the disk is, a store is there after three kills.
        let opened = nth % KILLS_A_STORE > 1 && (making || random.chance(70));
        let told = kill(&path, delay, opened);
        let left = look_after(&path, &told);
        while_making += u64::from(making);
        left_nothing += u64::from(left == Left::Nothing);
        more += u64::from(left == Left::More);
        told_nothing += u64::from(told.acknowledged.is_none());
    }
    println!(
        "{kills} kills: {while_making} of a writer that had to make the store ({left_nothing} left \
         none), {told_nothing} before the first answer, {more} with an append that landed \
         unanswered"
    );
    assert!(while_making >= kills / KILLS_A_STORE);
}
