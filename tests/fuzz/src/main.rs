//! Mutates the corpus for as long as it is told, and adds what goes a way that was not met before.

mod target;

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use target::{CORPUS, Random, check, deep, mutant, texts};

/// How long a text of the corpus may be, so that it stays small.
const KEPT_MAX: usize = 160;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(60);
    let seed = std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut corpus = texts(CORPUS);
    let mut met: BTreeSet<String> = corpus.iter().flat_map(|text| run(text)).collect();
    deep().iter().for_each(|text| drop(run(text)));
    let (mut random, mut count, known) = (Random(seed), 0u64, corpus.len());
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        let text = mutant(&corpus, &mut random);
        count += 1;
        let ways = run(&text);
        if text.len() <= KEPT_MAX && ways.iter().any(|way| !met.contains(way)) {
            met.extend(ways);
            corpus.push(text);
        }
    }
    println!("{count} texts in {seconds} s, {} ways, none broke a promise", met.len());
    let mut lines: Vec<String> =
        corpus.iter().map(|text| serde_json::to_string(text).expect("a text")).collect();
    lines.sort();
    lines.dedup();
    std::fs::write("corpus/patterns.txt", lines.join("\n") + "\n")
        .expect("the corpus can be written");
    println!("corpus: {known} texts before, {} now", lines.len());
}

/// Checks a text, and ends the run if it breaks a promise.
fn run(text: &str) -> Vec<String> {
    match catch_unwind(|| check(text)) {
        Ok(Ok(ways)) => ways,
        Ok(Err(what)) => broken(text, &what),
        Err(_) => broken(text, "it panicked"),
    }
}

fn broken(text: &str, what: &str) -> ! {
    let shown = serde_json::to_string(text).unwrap_or_default();
    println!("{what}\n{shown}");
    std::process::exit(1)
}
