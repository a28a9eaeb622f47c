//! Guards of a flock's files fail closed: broken, missing, unreadable or switched off, nothing
//! leaves that they might have stopped, and the refusal says which file or name is to be mended.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use effect::Class;
use log::{Log, Time};
use runtime::{Flock, Overrides, sync};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::effects::{Scripted, World};
use crate::support::flock::{scripts, start_folder};

const TOML: &str = "name = \"closed\"\n[grants]\neffects = [\"tool:x\"]\n";

const PAY: &str = r#"
behavior(name = "pay", description = "Pays.", on = "pay.asked", effects = ["tool:x"])
def pay(event):
    request("tool:x", {"n": event.payload.n})
"#;

/// A guard that allows one and nothing else.
const GUARD: &str = r#"
behavior(name = "only_one", description = "Lets one pass.", guard = True, on = "effect.requested")
def only_one(event):
    allow() if event.payload.args.n == 1 else deny("it is not one")
"#;

const BROKEN: &str = "behavior(name = \"only_one\", guard = True, on = \"effect.requested\"\n";

/// A flock of files that pays, its world, and the tool that it pays by.
struct Paying {
    folder: TempDir,
    world: World,
    tool: Arc<Scripted>,
    asked: u64,
}

impl Paying {
    fn new(toml: &str, files: &[(&str, &str)]) -> Paying {
        Paying::of(scripts(&format!("{toml}{TOML}"), &[&[("pay.star", PAY)], files].concat()))
    }

    fn of(folder: TempDir) -> Paying {
        let running = start_folder(folder.path(), &Overrides::default());
        let tool = Arc::new(Scripted::new(Class::Opaque, []));
        let world = World::of(running, &[("tool:x", &tool)]);
        Paying { folder, world, tool, asked: 0 }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join("behaviors").join(name), text).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.folder.path().join("behaviors").join(name)).unwrap();
    }

    /// Makes what is in the folder live.
    fn sync(&mut self) {
        let flock = Flock::read(self.folder.path(), &Overrides::default()).unwrap();
        sync(&mut self.world.running.engine, &flock, Time::default()).unwrap();
        self.world.settle();
    }

    /// Asks for a payment; what it says if it was refused.
    fn pay(&mut self, n: u64) -> Option<String> {
        self.asked += 1;
        let calls = self.tool.calls().len();
        let name = format!("pay {}", self.asked);
        self.world.running.say(&name, "pay.asked", json!({"n": n}), &json!([]));
        self.world.settle();
        let ended = self.world.payloads("effect.ended");
        assert_eq!(ended.len() as u64, self.asked, "each has its one outcome");
        let last = ended.last().unwrap();
        let refused = last["status"] == "rejected";
        assert_eq!(self.tool.calls().len() - calls, usize::from(!refused));
        refused.then(|| last["error"]["message"].as_str().unwrap_or_default().to_owned())
    }

    /// Every payment is refused, for this reason, also after a crash.
    fn refuses(mut self, says: &str) -> Paying {
        for n in [1, 2] {
            let refused = self.pay(n).unwrap_or_else(|| panic!("{says}: it was let pass"));
            assert!(refused.contains(says), "{refused}");
            let (running, asked) = (self.world.running.crash(), self.asked);
            let world = World::of(running, &[("tool:x", &self.tool)]);
            self = Paying { world, asked, ..self };
        }
        self
    }

    /// The guard is asked, and nothing else stands in the way.
    fn judges(&mut self) {
        assert_eq!(self.pay(1), None);
        assert_eq!(self.pay(2), Some("only_one denies: it is not one".to_owned()));
    }
}

#[test]
fn a_broken_guard_file_denies_everything_until_it_is_mended_or_gone() {
    let says = "behaviors/guard.star may hold a guard and is broken: behaviors/guard.star:";
    let broken = || {
        let mut paying = Paying::new("", &[]);
        paying.write("guard.star", BROKEN);
        paying.sync();
        paying.refuses(says)
    };
    let mut paying = broken();
    paying.write("guard.star", GUARD);
    paying.sync();
    paying.judges();
    // Once there was a good version, that one judges on.
    paying.write("guard.star", BROKEN);
    paying.sync();
    paying.judges();
    let mut paying = broken();
    paying.remove("guard.star");
    paying.sync();
    assert_eq!(paying.pay(2), None, "a person deleted it");
}

#[test]
fn a_guard_that_cannot_be_read_or_says_nothing_of_itself_denies_everything() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("guard.star"), GUARD).unwrap();
    let mut paying = Paying::new("", &[]);
    let link = paying.folder.path().join("behaviors/guard.star");
    symlink(elsewhere.path().join("guard.star"), link).unwrap();
    paying.sync();
    let mut paying = paying.refuses("behaviors/guard.star may hold a guard and is broken");
    paying.remove("guard.star");
    paying.write("guard.star", &GUARD.replace("description = \"Lets one pass.\", ", ""));
    paying.sync();
    let mut paying = paying.refuses("only_one: there is no `description`");
    paying.remove("guard.star");
    let program = "#!/bin/sh\n# /// starling\n# guard = true\n# on = \"effect.requested\"\n# ///\n";
    paying.write("guard.sh", program);
    paying.sync();
    paying.refuses("it says that it is a behavior and cannot be run: chmod +x behaviors/guard.sh");
}

/// A branch that does not run yet begins with no file that is broken.
#[test]
fn a_run_that_would_begin_with_a_broken_guard_does_not_begin() {
    let folder = scripts(TOML, &[("pay.star", PAY), ("guard.star", BROKEN)]);
    let says = "behaviors/guard.star:2:1: Parse error";
    does_not_begin(&folder, says);
}

fn does_not_begin(folder: &TempDir, says: &str) {
    let path = folder.path().to_str().unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let line = ["starling", "run", path, "--trust"].map(Into::into);
    let code = runtime::cli::run(line, Box::new(std::io::empty()), &mut out, &mut err);
    let err = String::from_utf8(err).unwrap();
    assert!(code != 0 && err.contains(says), "a run says so: {err}");
    let store = folder.path().join(".starling/store.redb");
    let events = |path: &Path| {
        let store = log::Store::open(path, log::Missing::Refuse, "a test").unwrap();
        store.branches().unwrap().iter().map(|branch| branch.tip.head.count()).sum::<u64>()
    };
    assert!(!store.exists() || events(&store) == 0, "and nothing is written");
}

#[test]
fn a_guard_that_the_flock_names_denies_everything_while_it_is_away() {
    let says = "the guard `only_one` that flock.toml names is not loaded";
    let mut paying = Paying::new("guards = [\"only_one\"]\n", &[]).refuses(says);
    paying.write("guard.star", GUARD);
    paying.sync();
    paying.judges();
    paying.remove("guard.star");
    paying.sync();
    let mut paying = paying.refuses(says);
    paying.write("guard.star", &GUARD.replace("guard = True, ", ""));
    paying.sync();
    // One of that name that is no guard is not the guard.
    let mut paying = paying.refuses(says);
    paying.write("guard.star", GUARD);
    paying.sync();
    paying.judges();
    let id = log::Derivation::new().text("off").finish();
    let mut draft = log::Draft::new(id, "behavior.disabled", "user:ann");
    draft.payload.insert("name".to_owned(), Value::from("only_one"));
    paying.world.running.engine.people_say(draft).unwrap();
    paying.refuses(says);
}

#[test]
fn a_used_folder_of_guards_that_is_missing_or_broken_lets_nothing_leave() {
    let shared = tempfile::tempdir().unwrap();
    let guards = shared.path().join("guards");
    let toml = format!("use = [{guards:?}]\n");
    let folder = scripts(&format!("{toml}{TOML}"), &[("pay.star", PAY)]);
    let missing = Flock::read(folder.path(), &Overrides::default()).unwrap_err().to_string();
    let says = format!("use: {} is no folder", guards.display());
    assert!(missing.contains(&says) && missing.contains("flock.toml"), "{missing}");
    does_not_begin(&folder, &says);

    fs::create_dir(&guards).unwrap();
    let mut paying = Paying::of(folder);
    fs::write(guards.join("guard.star"), BROKEN).unwrap();
    paying.sync();
    let mut paying = paying.refuses("guard.star may hold a guard and is broken");
    fs::write(guards.join("guard.star"), GUARD).unwrap();
    paying.sync();
    paying.judges();
    // What is gone while the flock runs cannot be read, so what judged before judges on.
    fs::remove_dir_all(&guards).unwrap();
    assert!(Flock::read(paying.folder.path(), &Overrides::default()).is_err());
    paying.judges();
}
