//! An executable as a behavior: it asks `exec:NAME`, and proposes what the program printed.

use std::sync::Arc;

use behaviors::{
    Behavior, Firing, KindPattern, Loaded, Metadata, Proposals, ReactError, duration_ms,
};
use log::Hash;
use serde_json::{Map, Value, json};

use crate::block;
use crate::file::Said;

/// An executable, as its block of metadata tells it.
#[derive(Clone, Debug)]
pub struct ProgramFile {
    /// What it says about itself.
    pub metadata: Metadata,
    /// The effect that runs it: `exec:NAME`.
    pub effect: String,
    /// How much one run of it may take.
    pub bounds: Bounds,
    path: String,
    hash: Hash,
}

/// How much one run of a program may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Milliseconds.
    pub timeout_ms: u64,
    /// Bytes of its standard output.
    pub output_bytes: usize,
    /// Bytes of memory, if they are bounded.
    pub memory_bytes: Option<u64>,
}

const FORM: &str = "exec";
const FIELDS: [&str; 3] = ["timeout", "output_bytes", "memory_bytes"];

impl ProgramFile {
    /// Reads the block of metadata of an executable; `path` is relative to the flock.
    ///
    /// # Errors
    /// The block is missing or cannot be used, with file, line and column.
    pub fn read(path: &str, text: &str) -> Result<ProgramFile, ReactError> {
        let mut said = block::read(path, text)?;
        let (mut metadata, own) = said.metadata(&[FORM])?;
        let bounds = bounds(own.get(FORM), &said)?;
        let effect = format!("{FORM}:{}", metadata.name);
        // That it may ask to be run goes without saying.
        metadata.effects.push(KindPattern::parse(&effect).expect("a name is no glob"));
        let (path, hash) = (path.to_owned(), Hash::of(text.as_bytes()));
        Ok(ProgramFile { metadata, effect, bounds, path, hash })
    }

    /// The behavior, made of this text.
    #[must_use]
    pub fn loaded(self, text: &str) -> Loaded {
        Loaded::new(Arc::new(self), text)
    }

    fn propose(
        &self,
        answer: &Map<String, Value>,
        out: &mut Proposals<'_>,
    ) -> Result<(), ReactError> {
        let result = result_of(answer).map_err(|what| self.error(&what))?;
        let log = result["log"].as_str().unwrap_or_default();
        log.lines().for_each(|line| out.print(line));
        if let Some(reason) = result.get("veto") {
            let reason = reason.as_str().unwrap_or_default();
            if self.metadata.guard {
                out.deny(reason);
                return Ok(());
            }
            return Err(self.error(&format!("it vetoes: {reason}")));
        }
        let lines = result["proposals"].as_array();
        let lines = lines.ok_or_else(|| self.error("its answer has no list of `proposals`"))?;
        for (nth, line) in lines.iter().enumerate() {
            let at = format!("{}, proposal {}", self.path, nth + 1);
            if line["request"] == json!(self.effect) {
                let what = "it asks for itself to be run; what wakes it is its trigger";
                return Err(ReactError::new(format!("{at}: {what}")));
            }
            out.say_json(line, &at)?;
        }
        Ok(())
    }

    fn error(&self, what: &str) -> ReactError {
        ReactError::new(format!("{}: {what}", self.path))
    }
}

/// What an answer holds, if it was one.
pub(crate) fn result_of(answer: &Map<String, Value>) -> Result<&Value, String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let status = answer.get("status").and_then(Value::as_str).unwrap_or("unknown");
    if status == "succeeded" {
        return answer.get("result").ok_or_else(|| "its answer is empty".to_owned());
    }
    let error = answer.get("error").and_then(|error| text(&error["message"]));
    Err(format!("it was not answered ({status}): {}", error.unwrap_or_default()))
}

fn bounds(said: Option<&Value>, file: &Said<'_>) -> Result<Bounds, ReactError> {
    let mut bounds = Bounds { timeout_ms: 10_000, output_bytes: 256 << 10, memory_bytes: None };
    let Some(said) = said else { return Ok(bounds) };
    let Some(map) = said.as_object() else {
        return Err(file.refuse(FORM, "exec: expected a table such as [exec]"));
    };
    for (name, value) in map {
        let field = format!("{FORM}.{name}");
        let wrong = |what: String| file.refuse(&field, format!("{field}: {what}"));
        let count = || {
            let count = value.as_u64().filter(|count| *count > 0);
            count.ok_or_else(|| wrong(format!("expected a number of bytes, found {value}")))
        };
        match name.as_str() {
            "timeout" => {
                let text = value.as_str().and_then(duration_ms).filter(|ms| *ms > 0);
                bounds.timeout_ms = text.ok_or_else(|| {
                    wrong(format!("{value} is no duration; write \"500ms\", \"10s\" or \"2m\""))
                })?;
            }
            "output_bytes" => bounds.output_bytes = usize::try_from(count()?).unwrap_or(usize::MAX),
            "memory_bytes" => bounds.memory_bytes = Some(count()?),
            other => {
                let hint = behaviors::did_you_mean(other, FIELDS);
                return Err(wrong(format!(
                    "there is no such field{hint}; it has {}",
                    FIELDS.join(", ")
                )));
            }
        }
    }
    Ok(bounds)
}

impl Behavior for ProgramFile {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn asks(&self) -> Option<&str> {
        Some(&self.effect)
    }

    fn react(&self, firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
        if let Some(answer) = firing.answer {
            let Value::Object(answer) = firing.texts.whole(Value::Object(answer.to_json())) else {
                return Err(self.error("its answer is no object"));
            };
            return self.propose(&answer, out);
        }
        let mut args = firing.to_json();
        args.insert("program".to_owned(), json!(self.path));
        // A recorded answer belongs to the code that gave it.
        args.insert("hash".to_owned(), json!(self.hash.to_string()));
        out.request(&self.effect, Value::Object(args), None);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use behaviors::testing::{Scene, react, reply_text};

    use super::*;

    const COUNT: &str = "#!/bin/sh\n# /// starling\n# description = \"Counts words.\"\n\
        # on = \"note.added\"\n# emits = [\"note.counted\"]\n#\n# [exec]\n# timeout = \"2s\"\n# ///\necho\n";

    fn error(text: &str) -> String {
        ProgramFile::read("behaviors/count_words.sh", text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn an_executable_is_named_by_its_file_and_told_by_its_comment() {
        let file = ProgramFile::read("behaviors/count_words.sh", COUNT).expect("it is whole");
        assert_eq!(file.metadata.name, "count_words");
        assert_eq!((file.effect.as_str(), file.bounds.timeout_ms), ("exec:count_words", 2000));
        let slashes = COUNT.replace("# ", "// ").replace("#\n", "//\n").replace("#!", "//");
        assert!(ProgramFile::read("behaviors/x.js", &slashes).is_ok());
    }

    #[test]
    fn what_is_wrong_is_said_at_its_line() {
        let said = error(&COUNT.replace("emits", "emit"));
        assert_eq!(
            said,
            "behaviors/count_words.sh:5:3: emit: there is no such field; did you mean `emits`?\n\
             5 | # emit = [\"note.counted\"]\n  |   ^"
        );
        let said = error(&COUNT.replace("\"note.added\"", "note"));
        assert!(said.starts_with("behaviors/count_words.sh:4:8: "), "{said}");
        let said = error(&COUNT.replace("# description = \"Counts words.\"\n", ""));
        assert!(said.starts_with("behaviors/count_words.sh:2:1: description: "), "{said}");
        let said = error(&COUNT.replace("timeout = \"2s\"", "timeout = 2"));
        assert!(said.starts_with("behaviors/count_words.sh:8:3: exec.timeout: 2 is no"), "{said}");
        let said = error(&COUNT.replace("# ///\n", ""));
        assert!(said.contains("is not closed; write a line `# ///`"), "{said}");
        assert!(error("#!/bin/sh\necho\n").contains("a line `# /// starling`"));
    }

    fn answered(result: Value) -> String {
        let file = ProgramFile::read("behaviors/count_words.sh", COUNT).expect("it is whole");
        let answer = json!({"status": "succeeded", "result": result});
        reply_text(&react(&file, &Scene::new(json!({"answer": answer}))))
    }

    #[test]
    fn it_asks_first_and_proposes_what_was_answered() {
        let file = ProgramFile::read("behaviors/count_words.sh", COUNT).expect("it is whole");
        let asked = react(&file, &Scene::new(json!({}))).expect("it asks");
        assert_eq!(asked.proposals.len(), 1);
        assert_eq!(asked.proposals[0].kind, "exec:count_words");
        assert_eq!(
            asked.proposals[0].payload["hash"],
            json!(Hash::of(COUNT.as_bytes()).to_string())
        );
        let found = answered(
            json!({"proposals": [{"emit": "note.counted", "payload": {"n": 2}}], "log": "hm"}),
        );
        assert_eq!(found, "print: hm\nnote.counted {\"n\":2}\n");
    }

    #[test]
    fn an_answer_is_held_to_what_is_declared_and_applied_whole_or_not() {
        let found = answered(json!({"proposals": [{"emit": "note.counted"}, {"emit": "x.y"}]}));
        let says = "error: behaviors/count_words.sh, proposal 2: count_words does not declare that it \
                    emits `x.y`; add \"x.y\" to its `emits`\n";
        assert_eq!(found, says);
        let found = answered(json!({"veto": "not today"}));
        assert_eq!(found, "error: behaviors/count_words.sh: it vetoes: not today\n");
        let found = answered(json!({"proposals": [{"request": "exec:count_words"}]}));
        assert!(found.contains("it asks for itself"), "{found}");
    }
}
