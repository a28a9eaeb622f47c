//! `shell` and git: programs in the workspace, and what becomes of a line that wants to be two.

use std::fs;
use std::process::Command;

use effect::builtin::worktree;
use effect::{Answer, Sandbox, Seen};
use serde_json::{Value, json};

use crate::files::built_in;
use crate::support::{BOTH, Flock, act, block_on, failed, result};

fn shell(flock: &Flock, sandbox: Sandbox, argv: Value) -> Answer {
    let shell = built_in(flock, "shell", sandbox);
    block_on(act(&*shell, flock.call("shell", json!({"argv": argv}))))
}

#[test]
fn a_program_runs_in_the_workspace_and_its_failure_says_why() {
    for sandbox in BOTH {
        let flock = Flock::new();
        let done = result(shell(&flock, sandbox, json!(["sh", "-c", "echo made > it; pwd"])));
        assert_eq!(done["stdout"], json!(format!("{}\n", flock.work().display())));
        assert!(flock.work().join("it").exists());
        let script = "echo compiling; echo 'error[E0425]: no such thing' >&2; echo ' --> a.rs:7:9' >&2; exit 101";
        let error = failed(shell(&flock, sandbox, json!(["sh", "-c", script])));
        assert!(error.message.contains("error[E0425]: no such thing\n --> a.rs:7:9"), "{error}");
        assert_eq!(error.signature, "process.exit: exit code #: error[E0425]: no such thing");
    }
}

/// Arguments are arguments: nothing takes them apart.
#[test]
fn no_argument_becomes_a_command() {
    let flock = Flock::new();
    let starts = [
        "", "-", "--", "\n", "\t", "\r\n", ";", "|", "||", "&", "&&", "`", "$(", "${IFS}", "x\n",
        "'", "\"", "\\", "*", "~",
    ];
    let bodies = [
        "touch canary",
        "$(touch canary)",
        "`touch canary`",
        "; touch canary ;",
        "| touch canary",
        "&& touch canary",
        "\ntouch canary\n",
        "${x:=`touch canary`}",
        "export PATH=.; touch canary",
        "typeset -i x[$(touch canary)]",
        "declare a=$(touch canary)",
        ">canary",
        "<(touch canary)",
        "eval touch canary",
        "exec touch canary",
    ];
    let shell = built_in(&flock, "shell", Sandbox::Off);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let mut tried = 0;
    for start in starts {
        for body in bodies {
            let args = json!({"argv": ["printf", "%s", format!("{start}{body}")]});
            let answer = runtime.block_on(act(&*shell, flock.call("shell", args)));
            assert_eq!(result(answer)["stdout"], json!(format!("{start}{body}")));
            tried += 1;
        }
    }
    assert!(tried >= 300, "{tried} were tried");
    assert!(!flock.work().join("canary").exists(), "nothing was run");
    let nul = json!({"argv": ["printf", "a\0b"]});
    assert_eq!(shell.check(&nul).expect_err("refused").kind, "arguments.argv");
}

fn git(flock: &Flock, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(args).current_dir(flock.work()).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("a text").trim().to_owned()
}

#[test]
fn a_commit_is_made_once_and_found_by_its_action() {
    for sandbox in BOTH {
        let flock = Flock::new();
        git(&flock, &["init", "-q", "-b", "main"]);
        fs::write(flock.work().join("a b.txt"), "one\n").expect("written");
        fs::write(flock.work().join("other.txt"), "not asked for\n").expect("written");
        // A hook that the workspace brings along is not run.
        let hook = flock.work().join(".git/hooks/pre-commit");
        fs::create_dir_all(hook.parent().expect("a folder")).expect("made");
        fs::write(&hook, "#!/bin/sh\ntouch hooked\n").expect("written");
        Command::new("chmod").arg("+x").arg(&hook).status().expect("done");

        let status = built_in(&flock, "git.status", sandbox);
        let seen = result(block_on(act(&*status, flock.call("git.status", json!({})))));
        let files =
            json!([{"state": "??", "path": "a b.txt"}, {"state": "??", "path": "other.txt"}]);
        assert_eq!(seen["files"], files);

        let commit = built_in(&flock, "git.commit", sandbox);
        let args = json!({"message": "the first", "paths": ["a b.txt"]});
        let call = flock.call("git.commit", commit.check(&args).expect("it fits"));
        assert_eq!(block_on(commit.look(&call, &json!(null))), Seen::Absent);
        let made = result(block_on(commit.run(&call)));
        assert_eq!(made["commit"], json!(git(&flock, &["rev-parse", "HEAD"])));
        assert_eq!(block_on(commit.look(&call, &json!(null))), Seen::Found(made));
        assert_eq!(git(&flock, &["show", "--name-only", "--format=", "HEAD"]), "a b.txt");
        assert!(!flock.work().join("hooked").exists(), "the hook is not run");

        fs::write(flock.work().join("a b.txt"), "two\n").expect("written");
        let diff = built_in(&flock, "git.diff", sandbox);
        let text = result(block_on(act(&*diff, flock.call("git.diff", json!({})))));
        assert!(text["diff"].as_str().is_some_and(|text| text.contains("-one\n+two\n")), "{text}");
    }
}

/// What a settings file of the repository names is a program too.
#[test]
fn a_repository_does_not_choose_what_runs_outside_the_sandbox() {
    let flock = Flock::new();
    git(&flock, &["init", "-q", "-b", "main"]);
    let outside = tempfile::tempdir().expect("a folder");
    let canary = outside.path().join("canary");
    let line = format!("touch {}", canary.display());
    for key in ["core.fsmonitor", "diff.external", "core.pager", "core.editor", "core.sshCommand"] {
        git(&flock, &["config", key, &line]);
    }
    git(&flock, &["config", "filter.evil.clean", &line]);
    fs::write(flock.work().join(".gitattributes"), "* filter=evil\n").expect("written");
    fs::write(flock.work().join("a.txt"), "one\n").expect("written");
    for (name, args) in [
        ("git.status", json!({})),
        ("git.diff", json!({})),
        ("git.commit", json!({"message": "it", "paths": ["a.txt"]})),
    ] {
        let executor = built_in(&flock, name, Sandbox::Required);
        drop(block_on(act(&*executor, flock.call(name, args))));
    }
    assert!(!canary.exists(), "nothing ran outside");
}

/// A fork's working tree: what it commits is on no branch of the repository, what it writes is not
/// in the workspace of its parent, and a commit that was never made leaves nothing.
#[test]
fn a_second_working_tree_commits_for_itself() {
    for sandbox in BOTH {
        let flock = Flock::new();
        git(&flock, &["init", "-q", "-b", "main"]);
        fs::write(flock.work().join("it"), "one\n").expect("written");
        let who = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        git(&flock, &["add", "it"]);
        git(&flock, &[&who[..], &["commit", "-q", "-m", "one"]].concat());
        let first = git(&flock, &["rev-parse", "HEAD"]);
        fs::write(flock.work().join("it"), "not committed\n").expect("written");
        // What a repository checks out may start programs that it names itself.
        let planted = flock.path().join("planted");
        let filter = format!("sh -c 'touch {}; cat'", planted.display());
        git(&flock, &["config", "filter.x.smudge", &filter]);
        fs::write(flock.work().join(".git/info/attributes"), "it filter=x\n").expect("written");
        let trees = flock.path().join(".starling/workspaces");
        let add = |name: &str, commit: &str| {
            worktree::add(sandbox, &flock.work(), &trees.join(name), commit)
        };
        add("fork", &first).expect("it is made");
        assert_eq!(planted.exists(), sandbox == Sandbox::Off, "git is confined, too");
        assert_eq!(fs::read_to_string(trees.join("fork/it")).expect("it is there"), "one\n");
        let error = add("never", &"0".repeat(40)).expect_err("there is no such commit");
        assert_eq!(error.kind, "workspace.worktree", "{error}");
        assert!(!trees.join("never").exists());
        let within = |effect: &str, args: Value| {
            let tool = built_in(&flock, effect, sandbox);
            let mut call = flock.call(effect, args);
            call.workspace = Some(trees.join("fork"));
            block_on(act(&*tool, call))
        };
        result(within("shell", json!({"argv": ["sh", "-c", "echo two > it"]})));
        let args = json!({"message": "two", "paths": ["it"]});
        let made = result(within("git.commit", args))["commit"].clone();
        assert_ne!(made, json!(first));
        assert_eq!(git(&flock, &["rev-parse", "main"]), first, "no branch moved");
        assert_eq!(git(&flock, &["cat-file", "-t", made.as_str().expect("a text")]), "commit");
        let own = fs::read_to_string(flock.work().join("it")).expect("it is there");
        assert_eq!(own, "not committed\n");
    }
}

/// A workspace that names the working tree of another repository as its own is not believed.
#[test]
fn a_workspace_does_not_choose_its_repository() {
    let flock = Flock::new();
    let (other, tree) = (flock.path().join("other"), flock.path().join("tree"));
    let (other, tree) = (other.display().to_string(), tree.display().to_string());
    git(&flock, &["init", "-q", "-b", "main", &other]);
    let who = ["-C", &other, "-c", "user.name=A", "-c", "user.email=a@example.org"];
    git(&flock, &[&who[..], &["commit", "-q", "--allow-empty", "-m", "one"]].concat());
    git(&flock, &["-C", &other, "worktree", "add", "-q", "--detach", &tree]);
    let named = format!("gitdir: {other}/.git/worktrees/tree");
    fs::write(flock.work().join(".git"), named).expect("written");
    fs::write(flock.work().join("it"), "one").expect("written");
    let count = || git(&flock, &["-C", &other, "count-objects"]);
    let before = count();
    let tool = built_in(&flock, "git.commit", Sandbox::Required);
    let args = json!({"message": "m", "paths": ["it"]});
    let error = failed(block_on(act(&*tool, flock.call("git.commit", args))));
    assert_eq!(error.kind, "process.exit", "{error}");
    assert_eq!(count(), before, "the other repository has nothing new");
}
