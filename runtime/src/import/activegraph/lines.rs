//! Its JSON lines: the trace of one run, or what a sink wrote of several.

use serde_json::Value;

use super::{Bad, Row, Run};

/// Reads all lines. The framing is that of bytes: a line ends at a newline and nowhere else.
pub(super) fn read(bytes: &[u8]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let place = format!("line {}", number + 1);
        let (run, row) = match read_line(place, line) {
            Ok((run, row)) => (run, Ok(row)),
            Err(bad) => (runs.last().map(|run| run.id.clone()).unwrap_or_default(), Err(bad)),
        };
        if !runs.iter().any(|known| known.id == run) {
            runs.push(Run { id: run.clone(), ..Run::default() });
        }
        let known = runs.iter_mut().find(|known| known.id == run);
        let known = known.expect("the run was just added");
        match row {
            Ok(row) => known.rows.push(row),
            Err(bad) => known.bad.push(bad),
        }
    }
    // A line that cannot be read says of no run of its own.
    if runs.len() > 1 && runs[0].rows.is_empty() {
        let first = runs.remove(0);
        runs[0].bad.splice(0..0, first.bad);
    }
    runs
}

/// The run that a line is of, and its event.
fn read_line(place: String, line: &[u8]) -> Result<(String, Row), Bad> {
    let bad = |what: String| Bad { place: place.clone(), what };
    let text = std::str::from_utf8(line).map_err(|error| {
        bad(format!("it is not UTF-8 from byte {} on", error.valid_up_to() + 1))
    })?;
    let mut json: Value = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    // What a sink writes says around the event where it was.
    let run = json["context"]["run_id"].as_str().map(str::to_owned);
    match json.get_mut("event").filter(|_| run.is_some()) {
        Some(event) => {
            let event = event.take();
            Ok((run.unwrap_or_default(), Row::of_json(place, event)?))
        }
        None => Ok((String::new(), Row::of_json(place, json)?)),
    }
}
