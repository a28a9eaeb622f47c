//! `new`: a flock to begin with, or a behavior.

mod behavior;

use std::fs;
use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling new flock hello      makes ./hello, which runs at once
  starling run hello
  starling new behavior greet_guest --form star   a script in the flock around this folder
  starling new behavior count_words --form exec   an executable, with its test beside it";

const FLOCK: &str = r#"# What runs together: settings here, behaviors in behaviors/*.star.
name = "NAME"

[run]
schedule = "fifo"               # fifo | rounds | random
seed = 0
start = "2026-01-05T09:00:00Z"  # the time of the start events

[settings]                      # settings.greeting in scripts, $greeting in patterns
greeting = "hello"

[[report]]                      # shown when a run ends
title = "greetings"
match = "(g:Greeting)"
show = ["g.text"]

[[start]]                       # appended once, on a new branch
kind = "guest.arrived"
actor = "user:you"
payload = { name = "world" }
changes = [{ create = "guest:world", type = "Guest", properties = { name = "world" } }]
"#;

const GREET: &str = r#"# Saved = live, deleted = gone.
behavior(
    name = "greet_guest",
    description = "Greets every guest, once.",
    match = "(guest:Guest)",                        # fires when it becomes true
    writes = ["Greeting", "FOR"],
    emits = ["guest.greeted"],
)
def greet_guest(guest, settings):
    greeting = create("Greeting", text = f"{settings.greeting}, {guest.name}")
    emit("guest.greeted", {"guest": guest.id}, greeting, link(greeting, "FOR", guest))
"#;

/// Makes something to begin with
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// A folder with a flock.toml and one behavior, which runs at once
    Flock {
        /// The folder; its last part is the name
        name: PathBuf,
    },
    /// A file in the folder behaviors of the flock around this folder, which runs at once
    Behavior {
        /// Its name: a verb phrase such as greet_guest
        name: String,
        /// How it is written
        #[arg(long, value_enum, default_value = "star")]
        form: behavior::Form,
    },
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let folder = match args.what {
        What::Flock { name } => name,
        What::Behavior { name, form } => return behavior::make(&name, form, shell),
    };
    if folder.exists() {
        let what = format!("{} exists already; choose another name", folder.display());
        return Err(Failure::Conflict(what));
    }
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.ok_or_else(|| Failure::Usage("name the folder of the new flock".to_owned()))?;
    let name = name.replace(['"', '\\'], "_");
    let write = |path: &Path, text: &str| {
        let failed = |error| Failure::Failed(format!("{}: {error}", path.display()));
        fs::write(path, text).map_err(failed)
    };
    let behaviors = folder.join("behaviors");
    let failed = |error| Failure::Failed(format!("{}: {error}", behaviors.display()));
    fs::create_dir_all(&behaviors).map_err(failed)?;
    write(&folder.join("flock.toml"), &FLOCK.replace("NAME", &name))?;
    write(&behaviors.join("greet_guest.star"), GREET)?;
    shell.line(folder.display())?;
    shell.say(format_args!("next: starling run {}", folder.display()));
    Ok(())
}
