//! Trust: what a flock would run and want is confirmed by the person who runs it, once for each
//! content of the flock. No file of the flock can say it for them.
#![allow(missing_docs, reason = "the fields of errors are facts named by the message")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use effect::Sandbox;
use effect::tools::{Listed, Listing};

use super::FlockError;

/// Why a flock was not trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    #[error(
        "this flock runs programs or wants grants, and nobody has confirmed them yet:\n{listing}\n\
             read them, then run it from a terminal, or with --trust"
    )]
    NobodyToAsk { listing: String },
    #[error("it was not confirmed; nothing was run")]
    Refused,
    #[error("the confirmation cannot be kept in {path}: {source}", path = path.display())]
    Kept { path: PathBuf, source: io::Error },
}

/// An executable that is a behavior: its path, its effect and what it does.
type Program = (String, String, String);

/// What a person is asked before a flock runs.
#[derive(Debug)]
pub struct Question {
    listing: String,
    kept: PathBuf,
}

/// How the person can answer.
pub enum Consent<'a> {
    /// They said `--trust`.
    Given,
    /// They sit at a terminal: shows the question and gives the line they type.
    Ask(&'a mut dyn FnMut(&str) -> io::Result<String>),
    /// Nobody is there.
    Nobody,
}

impl Question {
    /// What is to be confirmed about a flock; nothing if it runs no programs and wants no grants.
    ///
    /// # Errors
    /// A tool file cannot be used.
    pub(super) fn about(
        flock: &Path,
        uses: &[PathBuf],
        programs: &[Program],
        grants: &[String],
        sandbox: Sandbox,
    ) -> Result<Option<Self>, FlockError> {
        let listing = effect::tools::list(flock, uses)?;
        if listing.tools.is_empty() && programs.is_empty() && grants.is_empty() {
            return Ok(None);
        }
        // Without the sandbox the same flock is another thing to trust.
        let ending = if sandbox == Sandbox::Off { "-no-sandbox" } else { "" };
        let kept = state_folder().join(format!("{}{ending}", listing.hash));
        Ok(Some(Question { listing: text(&listing, programs, grants, sandbox), kept }))
    }

    /// What the person reads.
    #[must_use]
    pub fn listing(&self) -> &str {
        &self.listing
    }

    /// Confirms it, if it was not confirmed before.
    ///
    /// # Errors
    /// The person said no, or nobody is there to ask.
    pub fn confirm(&self, consent: Consent<'_>) -> Result<(), TrustError> {
        let kept = |source| TrustError::Kept { path: self.kept.clone(), source };
        if self.kept.is_file() {
            return Ok(());
        }
        match consent {
            Consent::Given => {}
            Consent::Nobody => {
                return Err(TrustError::NobodyToAsk { listing: self.listing.clone() });
            }
            Consent::Ask(ask) => {
                let question = format!("{}\nrun it? yes or no: ", self.listing);
                let said = ask(&question).map_err(kept)?;
                if said.trim() != "yes" {
                    return Err(TrustError::Refused);
                }
            }
        }
        if let Some(folder) = self.kept.parent() {
            fs::create_dir_all(folder).map_err(kept)?;
        }
        // What was confirmed is kept as it was read, for whoever asks later.
        fs::write(&self.kept, &self.listing).map_err(kept)
    }
}

/// Where confirmations are kept: with the person, not with the flock.
fn state_folder() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = variable("XDG_STATE_HOME");
    let state = state.or_else(|| Some(variable("HOME")?.join(".local/state")));
    state.unwrap_or_else(|| PathBuf::from("/var/lib")).join("starling/trusted")
}

fn text(listing: &Listing, programs: &[Program], grants: &[String], sandbox: Sandbox) -> String {
    let mut lines = Vec::new();
    for (path, effect, description) in programs {
        lines.push(format!("{effect} (a behavior): {}", shown(description)));
        lines.push(format!("    runs {}", shown(path)));
    }
    for tool in &listing.tools {
        lines.extend(tool_lines(tool));
    }
    if !grants.is_empty() {
        lines.push(format!("it may ask for: {}", shown(&grants.join(", "))));
    }
    if sandbox == Sandbox::Off && !(listing.tools.is_empty() && programs.is_empty()) {
        lines.push("WITHOUT a sandbox: its programs may do whatever you may do".to_owned());
    }
    lines.join("\n")
}

fn tool_lines(tool: &Listed) -> Vec<String> {
    let mut lines = vec![format!("{} ({})", tool.effect, tool.class)];
    if !tool.description.is_empty() {
        lines[0].push_str(&format!(": {}", shown(&tool.description)));
    }
    let runs = tool.commands.iter().map(|argv| format!("    runs {}", shown(&format!("{argv:?}"))));
    lines.extend(runs);
    if !tool.wants.is_empty() {
        lines.push(format!("    wants {}", shown(&tool.wants.join(", "))));
    }
    lines
}

/// A text with whatever is invisible, or turns the line around, shown as its number.
fn shown(text: &str) -> String {
    let strange = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}')
            || matches!(c, '\u{00ad}' | '\u{061c}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
            || matches!(c, '\u{e0000}'..='\u{e007f}')
    };
    let letter = |c: char| if strange(c) { c.escape_unicode().to_string() } else { c.to_string() };
    text.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flock() -> (tempfile::TempDir, Question) {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("tools")).expect("made");
        let tool = "command = [\"pay\"]\ndescription = \"Pays\u{202e}\"\neffects = [\"network\"]";
        fs::write(folder.path().join("tools/pay.toml"), tool).expect("written");
        let question = question(folder.path());
        (folder, question)
    }

    fn question(folder: &Path) -> Question {
        using(folder, &[])
    }

    fn using(folder: &Path, uses: &[PathBuf]) -> Question {
        let grants = ["tool:pay".to_owned()];
        let question =
            Question::about(folder, uses, &[], &grants, Sandbox::Required).expect("it lists");
        let mut question = question.expect("there is something to ask");
        // The tests confirm nothing for the person who runs them.
        let name = question.kept.file_name().expect("a name").to_owned();
        question.kept = folder.join("state").join(name);
        question
    }

    #[test]
    fn what_would_run_is_listed_with_nothing_hidden() {
        let (_folder, question) = flock();
        let expected = "tool:pay (opaque): Pays\\u{202e}\n    runs [\"pay\"]\n    wants the network\n\
                        it may ask for: tool:pay";
        assert_eq!(question.listing(), expected);
    }

    #[test]
    fn nobody_there_is_no_consent_and_another_content_is_asked_again() {
        let (folder, question) = flock();
        let refused = question.confirm(Consent::Nobody).expect_err("nobody said yes");
        assert!(refused.to_string().contains("--trust"), "{refused}");
        let mut no = |_: &str| -> io::Result<String> { Ok("y\n".to_owned()) };
        let said = question.confirm(Consent::Ask(&mut no));
        assert!(matches!(said, Err(TrustError::Refused)), "only yes is yes");
        let mut yes = |_: &str| -> io::Result<String> { Ok("yes\n".to_owned()) };
        question.confirm(Consent::Ask(&mut yes)).expect("yes");
        question.confirm(Consent::Nobody).expect("it was confirmed");
        fs::create_dir(folder.path().join("behaviors")).expect("made");
        fs::write(folder.path().join("behaviors/new.star"), "x = 1").expect("written");
        let changed = self::question(folder.path());
        assert!(changed.confirm(Consent::Nobody).is_err(), "a changed flock is another one");
        changed.confirm(Consent::Given).expect("--trust");
    }

    /// A guard in a folder that several flocks use could be taken out or hollowed, and what was
    /// confirmed with it in place ran on without asking.
    #[test]
    fn a_changed_file_of_a_folder_that_is_used_is_asked_about_again() {
        let (folder, _) = flock();
        let shared = folder.path().join("../").join(format!(
            "{}-shared",
            folder.path().file_name().expect("a name").to_string_lossy()
        ));
        fs::create_dir_all(shared.join("deeper")).expect("made");
        let uses = [shared.clone()];
        let guard = shared.join("guard.star");
        let asked = |uses: &[PathBuf]| {
            let question = using(folder.path(), uses);
            let confirmed = question.confirm(Consent::Nobody).is_ok();
            question.confirm(Consent::Given).expect("--trust");
            !confirmed
        };
        fs::write(&guard, "deny").expect("written");
        assert!(asked(&uses) && !asked(&uses), "once for each content");
        fs::write(&guard, "allow").expect("written");
        assert!(asked(&uses), "its text is another");
        fs::write(shared.join("deeper/helper.py"), "x").expect("written");
        assert!(asked(&uses), "what a program in it may load is another");
        fs::remove_file(&guard).expect("removed");
        assert!(asked(&uses), "a guard is gone");
        fs::create_dir(shared.join(".git")).expect("made");
        fs::write(shared.join(".git/HEAD"), "x").expect("written");
        assert!(!asked(&uses), "what a repository keeps of itself decides nothing");
        fs::remove_dir_all(&shared).expect("removed");
    }
}
