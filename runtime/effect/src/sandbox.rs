//! The sandbox of a command: bubblewrap around it, a filter of system calls inside.
//!
//! 1. It sees the machine's files read-only, and not those of its users, its services or the log;
//!    it writes in the workspace if it declared so, and in a `/tmp` of its own.
//! 2. It has no network unless it declared so, no other process in sight, no privilege.
//! 3. Where that cannot be had it does not run, unless the person who runs the flock said
//!    `--no-sandbox`. A command is never run with less than was asked for.

pub(crate) mod filter;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::error::{Blame, EffectError};

/// Whether commands of tools are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// They are, or they do not run.
    Required,
    /// The person who runs the flock said that they are not.
    Off,
}

/// Stands in an argument list where the number of the filter's descriptor belongs.
pub(crate) const FILTER_FD: &str = "{filter}";

/// The largest `/tmp`, in bytes.
const TMP_BYTES: &str = "268435456";

/// What one command may see and change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Confines {
    /// The folder of the flock: seen, never changed, its store hidden.
    pub(crate) flock: Option<PathBuf>,
    /// Where it works.
    pub(crate) workspace: Option<PathBuf>,
    /// Whether it may change the workspace.
    pub(crate) writes: bool,
    /// Whether it has the machine's network.
    pub(crate) network: bool,
    /// Paths below what is hidden that it may read all the same.
    pub(crate) reads: Vec<PathBuf>,
    /// Folders besides the workspace that it may change.
    pub(crate) also_writes: Vec<PathBuf>,
}

impl Sandbox {
    /// Whether commands can run as this asks, on this machine.
    ///
    /// # Errors
    /// They cannot; the error says what is missing and how to get it.
    pub fn check(self) -> Result<(), EffectError> {
        static TRIED: OnceLock<Result<(), String>> = OnceLock::new();
        if self == Sandbox::Off {
            return Ok(());
        }
        TRIED.get_or_init(try_once).clone().map_err(|why| {
            EffectError::new(
                "sandbox.unavailable",
                Blame::Machine,
                why,
                "install bubblewrap (`apt-get install bubblewrap`) and allow user namespaces, or run \
                 with --no-sandbox if you trust every tool of the flock",
            )
        })
    }

    /// The command that runs `argv` within these confines.
    pub(crate) fn wrap(self, argv: &[String], confines: &Confines) -> Vec<String> {
        match self {
            Sandbox::Off => argv.to_vec(),
            Sandbox::Required => {
                let mut wrapped = arguments(argv, confines);
                wrapped.push("--".to_owned());
                wrapped.extend(argv.iter().cloned());
                wrapped
            }
        }
    }
}

fn try_once() -> Result<(), String> {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--", "true"]);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("there is no sandbox: `bwrap`: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("the sandbox does not work here: {}", said.trim()))
}

/// Folders whose content is somebody's own: homes, sockets of services, files of other programs.
const HIDDEN: [&str; 8] =
    ["/home", "/root", "/run", "/tmp", "/var/tmp", "/var/spool", "/etc/ssh", "/sys/fs/cgroup"];

/// Single files that only the system reads, and root could.
const SECRET: [&str; 4] = ["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-"];

/// What of a flock decides how it runs. A tool that could write it would change its own rules.
const RULES: [&str; 4] = ["flock.toml", "behaviors", "tools", "answers.jsonl"];

fn arguments(argv: &[String], confines: &Confines) -> Vec<String> {
    let mut line = words(&[
        "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
        "--hostname",
        "starling",
        "--seccomp",
        FILTER_FD,
    ]);
    if confines.network {
        line.push("--share-net".to_owned());
    }
    line.extend(words(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]));
    // Who is root outside could set the kernel's settings even without any privilege.
    for path in ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"] {
        line.extend(words(&["--ro-bind-try", path, path]));
    }
    let home = std::env::var("HOME").ok().filter(|home| home.len() > 1);
    let hidden = HIDDEN.iter().map(|path| (*path).to_owned()).chain(home);
    for path in hidden.filter(|path| real_folder(path)) {
        line.extend(words(&["--size", TMP_BYTES, "--tmpfs", &path]));
    }
    for path in SECRET.iter().filter(|path| Path::new(path).exists()) {
        line.extend(words(&["--ro-bind", "/dev/null", path]));
    }
    if confines.network {
        line.extend(words(&["--ro-bind-try", RESOLVER, RESOLVER]));
    }
    // The program itself may lie in a home, and so may what the tool declared that it reads.
    let program = argv.first().map(PathBuf::from).filter(|program| program.is_absolute());
    for path in program.iter().chain(&confines.reads) {
        line.extend(bind("--ro-bind", path));
    }
    folders(confines, &mut line);
    line
}

/// Where a machine with systemd keeps the names of its resolvers.
const RESOLVER: &str = "/run/systemd/resolve";

/// The flock, its store and the workspace, the outer one first, so that the inner one has its own
/// rule: the workspace of a fork lies in the folder of the store.
fn folders(confines: &Confines, line: &mut Vec<String>) {
    let flock = confines.flock.clone().map(|path| ("--ro-bind", path));
    let kind = if confines.writes { "--bind" } else { "--ro-bind" };
    let workspace = confines.workspace.clone().map(|path| (kind, path));
    let store = confines.flock.as_ref().map(|flock| flock.join(".starling"));
    let store = store.filter(|store| store.is_dir());
    let hidden = store.clone().map(|path| ("--tmpfs", path));
    let mut mounts: Vec<_> = flock.into_iter().chain(hidden).chain(workspace).collect();
    mounts.sort_by_key(|(_, path)| path.components().count());
    for (kind, path) in mounts {
        match kind {
            "--tmpfs" => line.extend(words(&[kind, &path.display().to_string()])),
            kind => line.extend(bind(kind, &path)),
        }
    }
    for path in &confines.also_writes {
        line.extend(bind("--bind", path));
    }
    if let Some(flock) = &confines.flock {
        for name in RULES.iter().filter(|name| flock.join(name).exists()) {
            line.extend(bind("--ro-bind", &flock.join(name)));
        }
    }
    if let Some(store) = store {
        line.extend(words(&["--remount-ro", &store.display().to_string()]));
    }
    if let Some(workspace) = &confines.workspace {
        line.extend(words(&["--chdir", &workspace.display().to_string()]));
    }
}

fn bind(kind: &str, path: &Path) -> Vec<String> {
    let path = path.display().to_string();
    words(&[kind, &path, &path])
}

fn real_folder(path: &str) -> bool {
    Path::new(path).symlink_metadata().is_ok_and(|data| data.is_dir())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
