//! Asks the person who runs a flock whether it may run what it would.

use std::io::{self, BufRead, IsTerminal};

use crate::cli::failure::Failure;
use crate::cli::shell::Shell;
use crate::flock::{Consent, Flock};

/// Confirms what a flock would run and want, once for each content of it.
pub(super) fn confirm(flock: &Flock, given: bool, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let Some(question) = flock.question()? else { return Ok(()) };
    let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    let mut ask = |text: &str| -> io::Result<String> {
        shell.say(text);
        let mut line = String::new();
        shell.take_input().read_line(&mut line)?;
        Ok(line)
    };
    let consent = match (given, terminal) {
        (true, _) => Consent::Given,
        (false, true) => Consent::Ask(&mut ask),
        (false, false) => Consent::Nobody,
    };
    question.confirm(consent).map_err(|error| Failure::Usage(error.to_string()))
}
