//! The life of a behavior file: saved, it is live; deleted, it is gone; neither hurts what runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use log::{Event, Time};
use runtime::{Flock, Follow, Looks, Overrides, Step, Synced, refire, sync_live};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::flock::{Running, scripts, start_folder};

/// A flock that runs and follows its files.
struct Living {
    folder: TempDir,
    running: Running,
    follow: Follow,
}

const TOML: &str = "name = \"living\"\n[settings]\nword = \"hello\"\n";

/// A behavior that answers `KIND.asked` with its version.
fn answer(name: &str, kind: &str, version: u32) -> String {
    format!(
        "behavior(name = '{name}', description = 'Answers.', on = '{kind}.asked',\n    \
         emits = ['{kind}.answered'], writes = [])\ndef {name}():\n    \
         emit('{kind}.answered', {{'version': {version}}})\n"
    )
}

/// A behavior that greets every guest with its version.
fn greet(version: u32, body: &str) -> String {
    format!(
        "behavior(name = 'greet', description = 'Greets.', match = '(g:Guest)',\n    \
         emits = ['guest.greeted'], writes = ['Greeting', 'Guest.greeted'])\ndef greet(g):\n    \
         {body}\n    emit('guest.greeted', {{'guest': g.id, 'version': {version}}})\n"
    )
}

impl Living {
    fn new(files: &[(&str, &str)]) -> Living {
        Living::of(scripts(TOML, files), Looks::WhenTold)
    }

    fn of(folder: TempDir, looks: Looks) -> Living {
        let overrides = Overrides::default();
        let mut running = start_folder(folder.path(), &overrides);
        running.rest();
        let flock = Flock::read(folder.path(), &overrides).unwrap();
        let follow = Follow::start(folder.path(), &overrides, &flock, looks).unwrap();
        Living { folder, running, follow }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("behaviors").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// As editors save: another file takes the place of the old one.
    fn rename_over(&self, name: &str, text: &str) {
        let aside = self.path(&format!(".{name}.swp"));
        fs::write(&aside, text).unwrap();
        fs::rename(aside, self.path(name)).unwrap();
    }

    /// Waits for what was saved, and makes it live.
    fn live(&mut self) -> Synced {
        assert!(self.news_within(10_000), "what was saved is noticed");
        let flock = self.follow.take().unwrap().unwrap();
        let synced = sync_live(&mut self.running.engine, &flock, Time::default()).unwrap();
        self.running.rest();
        synced
    }

    /// Makes live what was saved, look after look, until there is something of one kind: several
    /// saves may be one look or more, as the machine has time.
    fn live_when<T>(&mut self, of: impl Fn(Synced) -> Vec<T>) -> Vec<T> {
        loop {
            let found = of(self.live());
            if !found.is_empty() {
                return found;
            }
        }
    }

    fn news_within(&self, ms: u64) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let changed = async {
            tokio::time::timeout(Duration::from_millis(ms), self.follow.changed()).await.is_ok()
        };
        runtime.block_on(changed)
    }

    fn ask(&mut self, name: &str, kind: &str) {
        self.running.say(name, kind, json!({}), &json!([]));
        self.running.rest();
    }

    fn guest(&mut self, name: &str) {
        let change = json!([{"create": format!("guest:{name}"), "type": "Guest"}]);
        self.running.say(name, "guest.came", json!({}), &change);
    }

    fn payloads(&self, kind: &str) -> Vec<Value> {
        let events = self.running.of_kind(kind).into_iter();
        events.map(|event| Value::Object(event.payload().to_json())).collect()
    }

    fn versions(&self, kind: &str) -> Vec<i64> {
        self.payloads(kind).iter().map(|payload| payload["version"].as_i64().unwrap()).collect()
    }
}

#[test]
fn a_saved_file_is_live_a_saved_again_replaced_and_a_deleted_one_gone() {
    for looks in [Looks::WhenTold, Looks::Always] {
        let mut living = Living::of(scripts(TOML, &[]), looks);
        living.ask("a", "x.asked");
        living.write("x.star", &answer("say", "x", 1));
        assert_eq!(living.live_when(|synced| synced.added), ["say"], "{looks:?}");
        living.ask("b", "x.asked");
        living.rename_over("x.star", &answer("say", "x", 2));
        assert_eq!(living.live_when(|synced| synced.replaced), ["say"]);
        living.ask("c", "x.asked");
        fs::remove_file(living.path("x.star")).unwrap();
        assert_eq!(living.live_when(|synced| synced.removed), ["say"]);
        living.ask("d", "x.asked");
        assert_eq!(living.versions("x.answered"), [1, 2]);
        let loaded = &living.payloads("behavior.loaded")[1];
        let hash = log::Hash::of(answer("say", "x", 2).as_bytes()).to_string();
        assert_eq!((&loaded["path"], &loaded["hash"]), (&json!("behaviors/x.star"), &json!(hash)));
        let blob = living.running.log.blob(&hash.parse().unwrap()).unwrap().unwrap();
        assert_eq!(blob, answer("say", "x", 2), "the source is stored by its hash");
        fs::remove_dir_all(living.folder.path()).unwrap();
        let Running { log, branch, .. } = &living.running;
        let elsewhere = scripts(TOML, &[("x.star", &answer("say", "x", 9))]);
        let flock = Flock::read(elsewhere.path(), &Overrides::default()).unwrap();
        let refired = refire(&**log, *branch, flock.library(log)).unwrap();
        assert_eq!((refired.firings, refired.divergences), (2, vec![]), "whatever lies on disk");
    }
}

/// What editors write beside a file, and files that are no behaviors, are no news.
#[test]
fn what_editors_leave_beside_a_file_is_not_loaded() {
    let mut living = Living::new(&[("x.star", &answer("say", "x", 1))]);
    for name in ["4913", ".x.star.swp", "x.star~", "#x.star#", "x.star.tmp", "notes.txt"] {
        living.write(name, &answer("other", "y", 1));
    }
    symlink("nobody@nowhere.1:2", living.path(".#x.star")).unwrap();
    fs::remove_file(living.path("4913")).unwrap();
    assert!(!living.news_within(300), "none of them is news");
    living.rename_over("x.star", &answer("say", "x", 2));
    let synced = living.live();
    let expected = Synced { replaced: vec!["say".to_owned()], ..Synced::default() };
    assert_eq!(synced, expected);
}

#[test]
fn files_that_are_saved_together_are_loaded_together() {
    let mut living = Living::new(&[("gone.star", &answer("gone", "z", 1))]);
    let before = living.running.tip().0;
    for n in 0..20 {
        living.write(&format!("f{n:02}.star"), &answer(&format!("say_{n:02}"), "x", n));
    }
    fs::remove_file(living.path("gone.star")).unwrap();
    // On a machine with much else to do the last of them may come later than the first.
    let (mut looks, mut done) = (0, 0);
    while done < 21 {
        let synced = living.live();
        looks += 1;
        done += synced.added.len() + synced.removed.len();
    }
    let after = living.running.tip().0;
    assert_eq!(after.count() - before.count(), 21);
    let blocks = living.running.log.blocks(living.running.branch, before.next(), 1 << 20).unwrap();
    assert_eq!(blocks.len(), looks, "all of a look is in the log, or none");
    assert!(looks < 5, "{looks} looks");
}

#[test]
fn a_broken_file_is_told_with_its_line_and_the_last_good_version_stays() {
    let mut living = Living::new(&[("x.star", &answer("say", "x", 1))]);
    let broken = answer("say", "x", 2).replace("emit(", "emit(,");
    living.write("x.star", &broken);
    let synced = living.live();
    assert_eq!(synced.rejected.len(), 1);
    living.ask("a", "x.asked");
    assert_eq!(living.versions("x.answered"), [1], "the last good version answers");
    let rejected = &living.payloads("behavior.rejected")[0];
    let error = rejected["error"].as_str().unwrap();
    assert!(error.starts_with("behaviors/x.star:4:"), "file, line and column: {error}");
    assert!(error.contains("emit(,'x.answered'"), "and the line itself: {error}");
    assert_eq!(rejected["hash"], log::Hash::of(broken.as_bytes()).to_string());

    let head = living.running.tip().0;
    living.rename_over("x.star", &broken);
    living.write("y.star", &answer("more", "y", 1));
    assert_eq!(living.live_when(|synced| synced.added), ["more"]);
    let written = living.running.tip().0.count() - head.count();
    assert_eq!(written, 1, "broken and unchanged, it writes nothing");

    living.write("x.star", &answer("say", "x", 1));
    assert_eq!(living.live_when(|synced| synced.mended), ["behaviors/x.star"], "as it was before");
    living.write("x.star", &broken);
    living.live();
    assert_eq!(living.payloads("behavior.rejected").len(), 2, "broken again, it is told again");
    fs::remove_file(living.path("x.star")).unwrap();
    let synced = living.live();
    assert_eq!((synced.mended.len(), synced.removed), (1, vec!["say".to_owned()]));
}

#[test]
fn a_second_file_with_a_name_is_refused_and_takes_over_when_the_first_is_gone() {
    let mut living = Living::new(&[("b.star", &answer("say", "x", 1))]);
    living.write("a.star", &answer("say", "x", 2));
    let rejected = living.live().rejected;
    assert_eq!(rejected.len(), 1);
    let (path, error) = &rejected[0];
    assert_eq!(path, "behaviors/a.star", "the one in place stays, whatever its path");
    for part in ["`say`", "behaviors/a.star", "behaviors/b.star", "rename one"] {
        assert!(error.contains(part), "{error}");
    }
    fs::remove_file(living.path("b.star")).unwrap();
    let synced = living.live();
    assert_eq!((synced.replaced, synced.mended.len()), (vec!["say".to_owned()], 1));
    living.ask("a", "x.asked");
    assert_eq!(living.versions("x.answered"), [2]);
}

#[test]
fn a_link_out_of_the_flock_is_refused_by_name_and_a_used_folder_is_not() {
    let shared = tempfile::tempdir().unwrap();
    fs::write(shared.path().join("x.star"), answer("say", "x", 1)).unwrap();
    let mut living = Living::new(&[]);
    symlink(shared.path().join("x.star"), living.path("x.star")).unwrap();
    let (path, error) = living.live().rejected.remove(0);
    assert_eq!(path, "behaviors/x.star");
    let end = shared.path().canonicalize().unwrap().join("x.star");
    assert!(error.contains(end.to_str().unwrap()) && error.contains("use = ["), "{error}");
    assert!(living.payloads("behavior.loaded").is_empty(), "nothing of it is loaded");

    fs::remove_file(living.path("x.star")).unwrap();
    let toml = format!("use = [{:?}]\n{TOML}", shared.path());
    fs::write(living.folder.path().join("flock.toml"), toml).unwrap();
    assert_eq!(living.live_when(|synced| synced.added), ["say"], "now flock.toml says so");
    let loaded = &living.payloads("behavior.loaded")[0]["path"];
    assert!(
        loaded.as_str().unwrap().starts_with("../"),
        "its path is told from the flock: {loaded}"
    );
    fs::write(shared.path().join("x.star"), answer("say", "x", 2)).unwrap();
    let replaced = living.live_when(|synced| synced.replaced);
    assert_eq!(replaced, ["say"], "and what is used is followed");
}

#[test]
fn a_flock_file_that_cannot_be_used_changes_nothing_and_settings_are_followed() {
    let mut living = Living::new(&[]);
    let toml = living.folder.path().join("flock.toml");
    fs::write(&toml, "[settings\n").unwrap();
    assert!(living.news_within(10_000));
    let error = living.follow.take().unwrap().unwrap_err();
    assert!(error.to_string().contains("flock.toml"), "{error}");
    let changed = TOML.replace("hello", "hi")
        + "[budget]\nevents = 500\n[run]\nseed = 9\n\
                   [grants]\neffects = [\"*\"]\n";
    fs::write(&toml, changed).unwrap();
    let synced = living.live();
    assert_eq!(synced.settings, ["budget", "settings"]);
    assert_eq!(synced.later.len(), 2, "grants and seed are not taken while it runs: {synced:?}");
    let changed = living.payloads("flock.changed").remove(0);
    assert_eq!(changed, json!({"budget": {"events": 500}, "settings": {"word": "hi"}}));
}

/// Lands a guest without running, so that its greeting waits while a file changes.
fn with_a_waiting_guest(version: &str) -> Living {
    let mut living = Living::new(&[("greet.star", version)]);
    living.guest("ann");
    living
}

#[test]
fn a_replacement_with_the_same_trigger_answers_what_waits() {
    let mut living = with_a_waiting_guest(&greet(1, "pass"));
    living.write("greet.star", &greet(2, "pass"));
    living.live();
    assert_eq!(living.versions("guest.greeted"), [2], "once, by the new version");
}

#[test]
fn a_removed_behavior_does_nothing_more_and_one_that_comes_back_sees_what_stands() {
    let mut living = with_a_waiting_guest(&greet(1, "pass"));
    fs::remove_file(living.path("greet.star")).unwrap();
    living.live();
    assert_eq!(living.versions("guest.greeted"), [0; 0], "what waited is withdrawn");
    assert_eq!(living.running.engine.waiting(), 0);
    let removed = &living.payloads("behavior.removed")[0];
    assert_eq!(removed["name"], "greet");
    assert_eq!(removed["withdrawn"], 1, "and the event says so: {removed}");
    living.guest("bob");
    living.running.rest();
    living.write("greet.star", &greet(3, "pass"));
    living.live();
    assert_eq!(living.versions("guest.greeted"), [3, 3], "both, once each");
}

#[test]
fn a_replacement_within_one_breath_is_no_removal() {
    let mut living = Living::new(&[("greet.star", &greet(1, "pass"))]);
    living.guest("ann");
    living.running.rest();
    fs::remove_file(living.path("greet.star")).unwrap();
    living.write("greet.star", &greet(2, "pass"));
    assert_eq!(living.live_when(|synced| synced.replaced), ["greet"]);
    assert_eq!(living.versions("guest.greeted"), [1], "ann is not greeted again");
    assert!(living.payloads("behavior.removed").is_empty());
}

#[test]
fn with_another_trigger_what_waits_is_withdrawn_and_what_was_settled_stays_so() {
    let mut living = Living::new(&[("greet.star", &greet(1, "pass"))]);
    living.guest("ann");
    living.running.rest();
    living.guest("bob");
    let other = greet(2, "pass").replace("(g:Guest)", "(g:Guest) WHERE g.shy IS NULL");
    living.write("greet.star", &other);
    living.live();
    let greeted = living.payloads("guest.greeted");
    let told: Vec<_> = greeted.iter().map(|g| (&g["guest"], &g["version"])).collect();
    let (ann, bob) = (json!("guest:ann"), json!("guest:bob"));
    assert_eq!(told, [(&ann, &json!(1)), (&bob, &json!(2))]);
}

#[test]
fn after_a_fix_what_failed_fires_again_and_nothing_else() {
    let failing = "fail('not yet') if g.id == 'guest:bob' else None";
    let mut living = Living::new(&[("greet.star", &greet(1, failing))]);
    living.guest("ann");
    living.guest("bob");
    living.running.rest();
    assert_eq!(living.payloads("behavior.failed").len(), 1);
    living.write("greet.star", &greet(2, "pass"));
    living.live();
    assert_eq!(living.versions("guest.greeted"), [1, 2]);
    assert_eq!(living.payloads("guest.greeted")[1]["guest"], "guest:bob");
}

#[test]
fn a_behavior_is_switched_off_and_on_by_a_person() {
    let mut living = with_a_waiting_guest(&greet(1, "pass"));
    let switch = |living: &mut Living, kind: &str, nth: &str| {
        let id = log::Derivation::new().text(kind).text(nth).finish();
        let mut draft = log::Draft::new(id, kind, "user:ann");
        draft.payload.insert("name".to_owned(), json!("greet"));
        let said = living.running.engine.people_say(draft).map_err(|error| error.to_string());
        if said.is_ok() {
            living.running.rest();
        }
        said
    };
    let refused = switch(&mut living, "behavior.enabled", "0").unwrap_err();
    assert!(refused.contains("is not disabled"), "{refused}");
    switch(&mut living, "behavior.disabled", "1").unwrap();
    assert_eq!(living.running.engine.waiting(), 0, "what waited is withdrawn");
    living.write("greet.star", &greet(2, "pass"));
    let synced = living.live();
    assert_eq!((synced.replaced, synced.disabled), (vec!["greet".into()], vec!["greet".into()]));
    living.guest("bob");
    living.running.rest();
    assert_eq!(living.versions("guest.greeted"), [0; 0]);
    let refused = switch(&mut living, "behavior.disabled", "2").unwrap_err();
    assert!(refused.contains("is disabled already"), "{refused}");

    // Deleted and saved again it is still off, and after a crash as well.
    fs::remove_file(living.path("greet.star")).unwrap();
    living.live();
    living.write("greet.star", &greet(3, "pass"));
    living.live();
    living.running = living.running.crash();
    assert!(living.running.engine.is_disabled("greet"));
    switch(&mut living, "behavior.enabled", "3").unwrap();
    assert_eq!(living.versions("guest.greeted"), [3, 3], "it sees what stands");
    let library = Flock::read(living.folder.path(), &Overrides::default()).unwrap();
    let Running { log, branch, .. } = &living.running;
    let refired = refire(&**log, *branch, library.library(log)).unwrap();
    assert_eq!(refired.divergences, []);
}

#[test]
fn a_file_says_itself_that_it_is_off() {
    let mut living = Living::new(&[("x.star", &answer("say", "x", 1))]);
    let off = answer("say", "x", 1).replace("emits", "enabled = False, emits");
    living.write("x.star", &off);
    assert_eq!(living.live_when(|synced| synced.removed), ["say"]);
    living.write("x.star", &answer("say", "x", 1));
    assert_eq!(living.live_when(|synced| synced.added), ["say"]);
}

#[test]
fn a_wish_for_earlier_events_that_cannot_be_met_is_refused_by_name() {
    let wish = |rest: &str| {
        let text =
            answer("say", "x", 1).replace("emits", &format!("from_ = 'beginning', {rest}emits"));
        let folder = scripts(TOML, &[("x.star", &text)]);
        let flock = Flock::read(folder.path(), &Overrides::default()).unwrap();
        flock.sources[0].declared.as_ref().map(Vec::len).map_err(Clone::clone)
    };
    assert_eq!(wish(""), Ok(1));
    let error = wish("match = '(a:A)', each = True, ").unwrap_err();
    assert!(error.starts_with("behaviors/x.star: say: `from`"), "{error}");
    assert!(error.contains("drop `match`"), "{error}");
}

/// What a behavior without `emits` and `writes` comes to under these settings: failures, and what
/// is told.
fn undeclared(lint: &str) -> (Vec<Value>, Vec<Value>) {
    let toml = format!("{TOML}{lint}");
    let silent = "behavior(name = 'say', description = 'Says.', on = 'x.asked')\n\
                  def say():\n    emit('x.said', {}, create('Note'))\n";
    let folder = scripts(&toml, &[("x.star", silent)]);
    let mut running = start_folder(folder.path(), &Overrides::default());
    running.engine.note_undeclared();
    running.say("a", "x.asked", json!({}), &json!([]));
    assert_eq!(running.rest(), Step::Rest);
    let payload = |event: &Event| Value::Object(event.payload().to_json());
    let failed = running.of_kind("behavior.failed").iter().map(payload).collect();
    (failed, running.engine.undeclared().iter().map(runtime::Undeclared::to_json).collect())
}

#[test]
fn what_is_not_declared_is_told_or_refused_as_the_flock_says() {
    let (failed, told) = undeclared("");
    assert!(failed.is_empty());
    assert_eq!(told, [json!({"behavior": "say", "emits": ["x.said"], "writes": ["Note"]})]);
    let (failed, _) = undeclared("[lint]\nundeclared = \"error\"\n");
    let error = failed[0]["error"].as_str().unwrap();
    assert_eq!(error, "say does not declare that it emits `x.said`; add \"x.said\" to its `emits`");
    let bad = scripts(&format!("{TOML}[lint]\nundeclared = \"loud\"\n"), &[]);
    let error = Flock::read(bad.path(), &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("neither warn nor error"), "{error}");
}

/// What a reaction may see is what it named: anything else is refused where the file is read.
#[test]
fn a_behavior_sees_what_it_declares_to_read_and_nothing_else() {
    let read = |reads: &str, body: &str| {
        format!(
            "behavior(name = 'look', description = 'Looks.', match = '(a:A)', reads = {reads},\n    \
             emits = ['a.seen'], writes = [])\ndef look({body}\n"
        )
    };
    let folder = scripts(TOML, &[]);
    let file = folder.path().join("behaviors/x.star");
    let check = |text: &str| -> Vec<Value> {
        fs::write(&file, text).unwrap();
        let flock = Flock::read(folder.path(), &Overrides::default()).unwrap();
        if let Err(error) = &flock.sources[0].declared {
            return vec![json!(error)];
        }
        let mut running = start_folder(folder.path(), &Overrides::default());
        let chain = json!([
            {"create": "a", "type": "A"}, {"create": "b", "type": "B", "properties": {"n": 1}},
            {"create": "c", "type": "B", "properties": {"n": 2}}, {"create": "d", "type": "C"},
            {"link": "R", "from": "a", "to": "b"}, {"link": "R", "from": "b", "to": "c"},
            {"link": "S", "from": "a", "to": "d"},
        ]);
        running.say("all", "all.made", json!({}), &chain);
        running.rest();
        let seen = running.events().into_iter();
        let seen = seen.filter(|event| ["a.seen", "behavior.failed"].contains(&event.kind()));
        seen.map(|event| Value::Object(event.payload().to_json())).collect()
    };
    let near = "{'near': '(a)-[:R]->(near:B)'}";
    let ids = "emit('a.seen', {'ids': [x.id for x in near]})";
    let one = check(&read(near, &format!("near):\n    {ids}")));
    assert_eq!(one, [json!({"ids": ["b"]})], "this type, and so deep");
    let far = "{'near': '(a)-[:R*1..2]->(near:B)'}";
    assert_eq!(check(&read(far, &format!("near):\n    {ids}"))), [json!({"ids": ["b", "c"]})]);
    let unread = check(&read(near, &format!("near, other):\n    {ids}")));
    assert!(unread[0].as_str().unwrap().contains("other"), "{unread:?}");
    let around = check(&read(near, "near):\n    emit('a.seen', {'ids': near[0].neighbours})"));
    assert_eq!(around, [json!({"ids": null})], "an element has its own properties, no others");
}

#[test]
fn nobody_who_lets_go_of_a_flock_leaves_a_thread_that_holds_its_folder() {
    let living = Living::new(&[]);
    let Living { folder, running, follow } = living;
    drop(follow);
    drop(running);
    let path = folder.path().to_owned();
    drop(folder);
    assert!(!Path::new(&path).exists());
}
