//! The forms of a behavior's file: a script, a prompt, an executable in any language.

use std::ffi::OsStr;
use std::fmt;

use super::folders::is_temporary;

/// What a file of the folder `behaviors` is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `NAME.star`
    Script,
    /// `NAME.md`
    Prompt,
    /// Any other file that may be run.
    Program,
}

impl Form {
    /// The form of a file, by its name; none if it is surely no behavior.
    pub(crate) fn of_name(name: &str) -> Option<Form> {
        let beside = [".toml", ".jsonl"].iter().any(|ending| name.ends_with(ending));
        let readme = name.eq_ignore_ascii_case("readme.md");
        if is_temporary(OsStr::new(name)) || beside || readme {
            return None;
        }
        Some(Form::of_path(name))
    }

    /// The form of a file that is a behavior, by its path.
    pub(crate) fn of_path(path: &str) -> Form {
        match path.rsplit_once('.').map(|(_, ending)| ending) {
            Some("star") => Form::Script,
            Some("md") => Form::Prompt,
            _ => Form::Program,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Script => "star",
            Form::Prompt => "md",
            Form::Program => "exec",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_editors_leave_and_what_stands_beside_is_no_behavior() {
        for name in [".x.star", "x.star~", "#x.star#", "x.test.toml", "README.md", "x.py.swp"] {
            assert_eq!(Form::of_name(name), None, "{name}");
        }
        assert_eq!(Form::of_name("x.star"), Some(Form::Script));
        assert_eq!(Form::of_name("x.md"), Some(Form::Prompt));
        assert_eq!(Form::of_name("x.py"), Some(Form::Program));
        assert_eq!(Form::of_name("x"), Some(Form::Program));
    }
}
