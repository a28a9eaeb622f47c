//! What a command wrote, up to a bound: its beginning, its end, and from what was left out between
//! them the lines that say what went wrong.

use std::collections::VecDeque;

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
    /// So many of the next lines belong to the finding before them: where it is.
    spans: u8,
}

impl Capture {
    /// Keeps at most about `bytes`.
    pub(crate) fn new(bytes: usize) -> Self {
        let (head, tail) = (Vec::new(), VecDeque::new());
        let (line, findings) = (Vec::new(), Vec::new());
        Capture { half: bytes / 2, head, tail, total: 0, line, findings, spans: 0 }
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
        if self.findings.len() >= FINDINGS_MAX {
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
        self.findings.push(line);
    }
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
    fn a_short_output_is_whole() {
        let mut capture = Capture::new(64);
        capture.push(b"all of ");
        capture.push(b"it");
        capture.finish();
        assert_eq!(capture.whole().as_deref(), Some(&b"all of it"[..]));
        assert_eq!(capture.text(), "all of it");
    }
}
