//! Delta matching beside drasi-core: the same queries over the same stream of changes, in one process.
//!
//! The world is of claims with two pieces of evidence each; the stream adds further claims, each by
//! five inserts (the claim, two pieces of evidence, two edges) and one update that makes its condition
//! true. Timed is what each system does with one change, already in its own form: it takes the change in
//! and says which matches came and went. Of Starling's time, that of matching is told apart from the
//! fold into the graph; of drasi's it cannot be.

mod drasi;
mod starling;

/// The two queries, as each system writes them.
const QUERIES: [(&str, &str); 2] = [
    (
        "(e:Evidence)-[:SUPPORTS]->(c:Claim) WHERE c.confidence > 0.7",
        "MATCH (e:Evidence)-[:SUPPORTS]->(c:Claim) WHERE c.confidence > 0.7 RETURN e.n AS e, c.confidence AS c",
    ),
    (
        "(e:Evidence)-[:SUPPORTS]->(c:Claim)<-[:SUPPORTS]-(f:Evidence) WHERE c.confidence > 0.7",
        "MATCH (e:Evidence)-[:SUPPORTS]->(c:Claim)<-[:SUPPORTS]-(f:Evidence) WHERE c.confidence > 0.7 \
         RETURN e.n AS e, f.n AS f, c.confidence AS c",
    ),
];

/// How many claims the timed stream adds.
const CLAIMS: u64 = 2_000;
/// The elements of one claim, and the changes that bring it about.
const ELEMENTS: u64 = 5;
const CHANGES: u64 = 6;

/// What happens to the world, in words of neither system.
#[derive(Clone, Copy, Debug)]
enum Change {
    Claim(u64),
    Evidence(u64, u64),
    Supports(u64, u64),
    Confidence(u64),
}

fn changes(claim: u64) -> [Change; CHANGES as usize] {
    [
        Change::Claim(claim),
        Change::Evidence(claim, 0),
        Change::Evidence(claim, 1),
        Change::Supports(claim, 0),
        Change::Supports(claim, 1),
        Change::Confidence(claim),
    ]
}

/// How often the stream is run, each time with other claims; the fastest counts.
const ROUNDS: u64 = 5;

/// What a run found and took.
#[derive(Clone, Copy, Debug)]
struct Run {
    rows: usize,
    /// Microseconds a change.
    us: f64,
    /// Of these, what is not the upkeep of the graph, where that can be told apart.
    matching_us: f64,
}

impl Run {
    fn least(runs: impl Iterator<Item = Run>) -> Run {
        let least = runs.min_by(|a, b| a.us.total_cmp(&b.us));
        least.expect("the stream is run more than once")
    }
}

fn main() {
    let numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let largest: u64 = numbers.max().unwrap_or(100_000);
    for (ours, theirs) in QUERIES {
        // The first touch of a process's memory is the system's time and no one's work.
        starling::run(ours, 0);
        drasi::run(theirs, 0);
        println!("\n{ours}");
        println!(
            "{:>9} | {:>8} µs | {:>8} µs | {:>8} µs | {:>11} | {:>14}",
            "elements", "starling", "matching", "drasi", "ratio", "matching ratio"
        );
        for size in [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|size| *size <= largest)
        {
            let before = size / ELEMENTS;
            let starling = starling::run(ours, before);
            let drasi = drasi::run(theirs, before);
            println!(
                "{size:>9} | {:>11.3} | {:>11.3} | {:>11.2} | {:>11.1} | {:>14.1}   ({} and {} rows)",
                starling.us,
                starling.matching_us,
                drasi.us,
                drasi.us / starling.us,
                drasi.us / starling.matching_us,
                starling.rows,
                drasi.rows
            );
        }
    }
}
