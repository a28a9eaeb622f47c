//! How much a script may take, and what it leaves behind.

use script::{Limits, ScriptHost};

use crate::{DECLARED, outcome};

fn failure(body: &str, limits: Limits) -> String {
    let script = format!("{DECLARED}def b(trip):\n{body}");
    outcome(&script, limits).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn steps_are_counted_the_same_in_every_run() {
    let limits = Limits { steps: 10_000, ..Limits::default() };
    let told = "error: behaviors/b.star:2:1: it took more than 10000 steps, calls and turns of \
                loops together";
    let endless = "    for x in range(1000000000):\n        pass\n";
    assert_eq!(failure(endless, limits), told);
    let nested = "    [0 for x in range(1000000000) for y in range(1000000000)]\n";
    assert_eq!(failure(nested, limits), told);
    // The least limit that lets a reaction pass is the same whenever it is sought.
    let least = || {
        let body = "    for x in range(3000):\n        pass\n";
        (3000..4000).find(|steps| failure(body, Limits { steps: *steps, ..limits }).is_empty())
    };
    assert!(least().is_some_and(|steps| steps < 3010), "{:?}", least());
    assert_eq!(least(), least());
}

#[test]
fn calls_and_memory_are_bounded() {
    let recursion = "    def f(x):\n        return f(x + 1)\n    f(1)\n";
    let told = "error: behaviors/b.star:4:16: calls are nested more than 64 deep";
    assert_eq!(failure(recursion, Limits::default()), told);
    let large = "    x = []\n    for i in range(3000):\n        x.append('x' * 100000)\n";
    let told = "error: behaviors/b.star:2:1: it took more than 67108864 bytes of memory";
    assert_eq!(failure(large, Limits::default()), told);
}

#[test]
fn loading_is_bounded_as_well() {
    let script = "x = [0 for x in range(1000000000)]\n";
    let error = ScriptHost::default().load("b.star", script).expect_err("it never ends");
    let told = "b.star: it took more than 1000000 steps, calls and turns of loops together";
    assert_eq!(error.to_string(), told);
}

/// What a file defines is frozen, so that one firing cannot tell another anything.
#[test]
fn nothing_is_left_behind() {
    let script = format!("SEEN = []\n{DECLARED}def b(trip):\n    SEEN.append(trip.id)\n");
    let found = outcome(&script, Limits::default());
    let told = "error: behaviors/b.star:4:5: this cannot be changed: it is part of what the \
                reaction sees, or was made when the file was loaded";
    assert!(found.starts_with(told), "{found}");
}

#[test]
fn every_thread_gets_the_same() {
    let script = format!(
        "{DECLARED}def b(flights, rand):\n    order = rand.shuffle(flights)\n    \
         emit('x', {{'order': [f.id for f in order], 'u': rand.uniform(), 'n': rand.normal()}})\n"
    );
    let loaded = ScriptHost::default().load("b.star", &script).expect("it loads");
    let run = || {
        let scene = behaviors::testing::Scene::new(crate::scene());
        let reply = behaviors::testing::react(&**loaded[0].behavior(), &scene);
        behaviors::testing::reply_text(&reply)
    };
    let here = run();
    let there = std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        all.into_iter().map(|one| one.join().expect("it ends")).collect::<Vec<_>>()
    });
    assert!(there.iter().all(|text| *text == here), "{here} {there:?}");
}
