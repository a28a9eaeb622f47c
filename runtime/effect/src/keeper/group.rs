//! A control group for one command, so that it cannot fill the machine with processes.
//!
//! A user's limit of processes does not bind root. The kernel's controller `pids` does, where a
//! group can be made: in either layout of control groups, below or beside that of this process.

use std::fs;
use std::path::{Path, PathBuf};

/// How many processes and threads one command may have at once.
const PROCESSES_MAX: &str = "1024";

const NAME: &str = "starling-";

/// The group of one command.
#[derive(Debug)]
pub(super) struct Group {
    /// The group that the command is in.
    own: PathBuf,
    /// The group of this process.
    home: PathBuf,
}

impl Group {
    /// Makes a group for a command of this process, where that is possible.
    pub(super) fn make() -> Option<Group> {
        let home = home()?;
        let name = format!("{NAME}{}", std::process::id());
        let places = [Some(home.as_path()), home.parent()];
        places.into_iter().flatten().find_map(|place| {
            remove_leftovers(place);
            let own = place.join(&name);
            fs::create_dir(&own).ok()?;
            let group = Group { own, home: home.clone() };
            let limited = fs::write(group.own.join("pids.max"), PROCESSES_MAX).is_ok();
            // Whether it can be entered is only known by entering it.
            let usable = limited && group.enter() && group.leave();
            if !usable {
                group.remove();
            }
            usable.then_some(group)
        })
    }

    /// This process goes in: what it starts from now on is in the group.
    pub(super) fn enter(&self) -> bool {
        join(&self.own)
    }

    /// This process goes back: it must be able to watch when the group is full.
    pub(super) fn leave(&self) -> bool {
        join(&self.home)
    }

    /// Removes the group once nobody is in it.
    pub(super) fn remove(&self) {
        // A group that is not empty stays; the next command of this machine removes it.
        drop(fs::remove_dir(&self.own));
    }
}

fn join(group: &Path) -> bool {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string()).is_ok()
}

/// The group of this process as far as the controller `pids` is concerned.
fn home() -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.splitn(3, ':').collect()).collect();
    let of = |wanted: fn(&str) -> bool| {
        let line = lines.iter().find(|line| line.len() == 3 && wanted(line[1]))?;
        Some(line[2].trim_start_matches('/').to_owned())
    };
    let root = Path::new("/sys/fs/cgroup");
    let old = || Some(root.join("pids").join(of(|names| names.split(',').any(|n| n == "pids"))?));
    let new = || Some(root.join(of(str::is_empty)?));
    old().filter(|path| path.is_dir()).or_else(|| new().filter(|path| path.is_dir()))
}

/// Removes the groups of keepers that were killed.
fn remove_leftovers(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(NAME)).map(str::to_owned);
        if number.is_some_and(|number| !Path::new("/proc").join(number).exists()) {
            drop(fs::remove_dir(entry.path()));
        }
    }
}
