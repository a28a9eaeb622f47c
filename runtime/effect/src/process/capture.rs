//! What a command wrote, up to a bound: its beginning, its end, and from what was left out between
//! them the lines that say what went wrong. The same of a text that is whole: its excerpt.

use std::collections::VecDeque;

/// How much of an output is kept whole, for the log. Of a longer one half from each end is kept.
pub(crate) const KEPT_BYTES: usize = 16 << 20;

/// The longest excerpt, in bytes: it stays in its event.
const EXCERPT_BYTES_MAX: usize = 4096;

/// How much of a text an excerpt has from each end, and of the lines between that tell of errors.
const EXCERPT_END: usize = 1000;
const EXCERPT_FINDINGS: usize = 1400;

/// The most lines kept from what was left out.
const FINDINGS_MAX: usize = 24;

/// The longest line that is looked at or kept.
const LINE_BYTES_MAX: usize = 2048;

/// Words that a line with an error has, in small letters.
const SIGNS: [&str; 8] = [
    "error",
    "fatal",
    "panicked",
    "failed",
    "exception",
    "traceback",
    "undefined reference",
    "denied",
];

/// A bounded copy of an output.
#[derive(Debug)]
pub(crate) struct Capture {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// How many bytes came in all.
    total: u64,
    line: Vec<u8>,
    findings: Vec<String>,
    /// How many bytes of findings there may still be.
    findings_left: usize,
    /// So many of the next lines belong to the finding before them: where it is.
    spans: u8,
}

impl Capture {
    /// Keeps at most about `bytes`.
    pub(crate) fn new(bytes: usize) -> Self {
        let (head, tail) = (Vec::new(), VecDeque::new());
        let (line, findings) = (Vec::new(), Vec::new());
        let findings_left = FINDINGS_MAX * LINE_BYTES_MAX;
        Capture { half: bytes / 2, head, tail, total: 0, line, findings, findings_left, spans: 0 }
    }

    /// Takes what came next.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.half.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        for byte in rest {
            if self.tail.len() >= self.half
                && let Some(left_out) = self.tail.pop_front()
            {
                self.look_at(left_out);
            }
            self.tail.push_back(*byte);
        }
    }

    /// Nothing comes any more.
    pub(crate) fn finish(&mut self) {
        self.end_of_line();
    }

    /// How many bytes came in all.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Whether something was left out.
    pub(crate) fn is_cut(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    /// All of it, if nothing was left out.
    pub(crate) fn whole(&self) -> Option<Vec<u8>> {
        let whole = || self.head.iter().chain(&self.tail).copied().collect();
        (!self.is_cut()).then(whole)
    }

    /// It as a text, with what was left out said in its place.
    pub(crate) fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if !self.is_cut() {
            return String::from_utf8_lossy(&[&self.head[..], &tail].concat()).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        let left_out = self.total - (self.head.len() + self.tail.len()) as u64;
        let mut text = format!("{head}\n[{left_out} bytes are left out here");
        if !self.findings.is_empty() {
            text.push_str("; of them the first lines that tell of errors:");
            for line in &self.findings {
                text.push('\n');
                text.push_str(line);
            }
            text.push('\n');
        }
        text.push_str("]\n");
        text.push_str(&tail);
        text
    }

    fn look_at(&mut self, byte: u8) {
        if byte == b'\n' {
            self.end_of_line();
        } else if self.line.len() < LINE_BYTES_MAX {
            self.line.push(byte);
        }
    }

    fn end_of_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        if self.findings.len() >= FINDINGS_MAX || line.len() > self.findings_left {
            return;
        }
        let small = line.to_lowercase();
        let is_span = self.spans > 0 && !line.trim().is_empty();
        if SIGNS.iter().any(|sign| small.contains(sign)) {
            self.spans = 4;
        } else if is_span {
            self.spans -= 1;
        } else {
            self.spans = 0;
            return;
        }
        self.findings_left -= line.len();
        self.findings.push(line);
    }
}

/// Whether a text is so long that an excerpt stands for it.
pub(crate) fn is_long(text: &str) -> bool {
    text.len() > EXCERPT_BYTES_MAX
}

/// What stands for a text where it is too long: its beginning, its end, and the first lines between
/// them that tell of errors, at most 4 KiB. Nothing for a text that is no longer than that.
#[must_use]
pub fn excerpt(text: &str) -> Option<String> {
    if !is_long(text) {
        return None;
    }
    let mut capture = Capture::new(2 * EXCERPT_END);
    capture.findings_left = EXCERPT_FINDINGS;
    capture.push(text.as_bytes());
    capture.finish();
    let short = capture.text();
    assert!(short.len() <= EXCERPT_BYTES_MAX, "the parts of an excerpt are bounded");
    Some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_and_its_place_survive_five_thousand_lines() {
        let mut capture = Capture::new(8 * 1024);
        for number in 0..5000 {
            let line = match number {
                2400 => "error[E0308]: mismatched types\n --> src/main.rs:17:9\n".to_owned(),
                _ => format!("   Compiling part {number} of many, nothing to see here\n"),
            };
            capture.push(line.as_bytes());
        }
        capture.finish();
        let text = capture.text();
        assert!(capture.is_cut() && text.len() < 16 * 1024);
        assert!(text.contains("error[E0308]: mismatched types\n --> src/main.rs:17:9"), "{text}");
        assert!(text.starts_with("   Compiling part 0 "), "the beginning is kept");
        assert!(text.ends_with("part 4999 of many, nothing to see here\n"), "so is the end");
    }

    #[test]
    fn an_excerpt_has_both_ends_and_the_error_between_and_stays_inline() {
        assert_eq!(excerpt(&"x".repeat(4096)), None);
        for filler in ["plain words ", "é", "error: many of them in one line, for ever "] {
            let text = format!(
                "begins here\n{}\nerror[E0308]: mismatched types\n{}\nends here",
                filler.repeat(4000),
                filler.repeat(4000)
            );
            let short = excerpt(&text).expect("it is long");
            assert!(short.len() <= 4096, "{}", short.len());
            assert!(short.starts_with("begins here") && short.ends_with("ends here"));
            assert!(short.contains("\nerror[E0308]: mismatched types\n"), "{short}");
        }
    }

    #[test]
    fn a_short_output_is_whole() {
        let mut capture = Capture::new(64);
        capture.push(b"all of ");
        capture.push(b"it");
        capture.finish();
        assert_eq!(capture.whole().as_deref(), Some(&b"all of it"[..]));
        assert_eq!(capture.text(), "all of it");
    }
}
