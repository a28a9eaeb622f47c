//! Every schedule of finishing, cancelling, timing out and shutting down: one attempt, one end.
//!
//! `cargo test --release --manifest-path tests/schedules/Cargo.toml`; `tests/run long` does it.

#[path = "../../runtime/src/effect/attempt.rs"]
mod attempt;

use attempt::{Flight, Signal, Verdict};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

const DONE: u8 = 7;

/// One attempt, and all who may end it, each on its own thread.
fn race() {
    let flight = Arc::new(Mutex::new(Flight::new()));
    let told: Arc<Mutex<Vec<Verdict<u8>>>> = Arc::new(Mutex::new(Vec::new()));
    let signal = |signals: Vec<Signal<u8>>| {
        let (flight, told) = (Arc::clone(&flight), Arc::clone(&told));
        thread::spawn(move || {
            for signal in signals {
                let verdict = flight.lock().unwrap().on(signal);
                // Who hears of it comes later than who decides: reports may cross.
                told.lock().unwrap().push(verdict);
            }
        })
    };
    let threads = [
        signal(vec![Signal::Finished(DONE)]),
        signal(vec![Signal::Cancelled, Signal::Overdue]),
        signal(vec![Signal::TimedOut, Signal::Overdue]),
        signal(vec![Signal::Shutdown]),
    ];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let told = told.lock().unwrap();
    let of = |fits: fn(&Verdict<u8>) -> bool| told.iter().filter(|verdict| fits(verdict)).count();
    let finished = of(|verdict| matches!(verdict, Verdict::Ended(_)));
    let given_up = of(|verdict| matches!(verdict, Verdict::GivenUp(_)));
    let late = of(|verdict| matches!(verdict, Verdict::Late(_)));
    assert!(flight.lock().unwrap().has_ended());
    assert!(finished + given_up <= 1, "one end: {told:?}");
    assert_eq!(finished + late, 1, "no receipt is lost: {told:?}");
    // Without an end it was the shutdown, and the log says that it was out.
    let stops = of(|verdict| *verdict == Verdict::Stop);
    assert!(finished + given_up == 1 || stops >= 1, "somebody is told to end it: {told:?}");
}

#[test]
fn ten_thousand_random_schedules_have_one_end() {
    shuttle::check_random(race, 10_000);
}

#[test]
fn ten_thousand_adversarial_schedules_have_one_end() {
    shuttle::check_pct(race, 10_000, 3);
}
