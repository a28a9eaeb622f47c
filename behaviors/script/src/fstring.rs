//! f-strings with any expression in them, which Starlark itself knows only with plain names.
//!
//! `f"pay:{trip.id}"` becomes `"pay:{}".format((trip.id))`; what was copied from where is kept.

/// A text with its f-strings rewritten.
#[derive(Debug, Default)]
pub(crate) struct Rewritten {
    pub(crate) text: String,
    /// (place in the rewritten text, place in the original): from here on they run in step.
    steps: Vec<(usize, usize)>,
}

impl Rewritten {
    /// Where a byte of the rewritten text stands in the original.
    pub(crate) fn original_offset(&self, offset: usize) -> usize {
        let after = self.steps.partition_point(|(new, _)| *new <= offset);
        let Some((new, old)) = after.checked_sub(1).map(|last| self.steps[last]) else {
            return offset;
        };
        // What was put in between belongs to where it was put.
        let next = self.steps.get(after).map_or(usize::MAX, |(_, next)| *next);
        let at = old + (offset - new);
        if next > old { at.min(next) } else { at }
    }
}

/// Rewrites the f-strings of a script.
///
/// An error is its place and what is wrong.
pub(crate) fn rewrite(text: &str) -> Result<Rewritten, (usize, String)> {
    let mut writer = Writer { source: text, out: Rewritten::default() };
    writer.code(0, text.len())?;
    Ok(writer.out)
}

struct Writer<'a> {
    source: &'a str,
    out: Rewritten,
}

/// An expression, its conversion such as `!r`, and where it ends.
type Filled = (Hole, (usize, usize), usize);
/// Where something is wrong, and what.
type Misplaced = (usize, String);

/// A `{…}` of an f-string: where its expression is, and how its value is shown.
struct Hole {
    start: usize,
    end: usize,
}

impl Writer<'_> {
    /// Copies code from `start` to `end`, rewriting each f-string.
    fn code(&mut self, start: usize, end: usize) -> Result<(), (usize, String)> {
        let bytes = self.source.as_bytes();
        let (mut at, mut copied) = (start, start);
        while at < end {
            match bytes[at] {
                b'#' => at = self.source[at..end].find('\n').map_or(end, |length| at + length),
                b'"' | b'\'' => at = string_end(bytes, at, end),
                b if is_word(b) => {
                    let word = at;
                    while at < end && is_word(bytes[at]) {
                        at += 1;
                    }
                    let quoted = at < end && matches!(bytes[at], b'"' | b'\'');
                    let prefix = &self.source[word..at];
                    let formats = ["f", "F", "rf", "fr"].contains(&prefix);
                    if quoted && prefix.contains('r') && !formats {
                        at = raw_string_end(bytes, at, end);
                    } else if quoted && formats {
                        self.copy(copied, word);
                        at = self.format_string(at, end, prefix.contains('r'))?;
                        copied = at;
                    }
                }
                _ => at += 1,
            }
        }
        self.copy(copied, end);
        Ok(())
    }

    /// Rewrites the f-string whose quote is at `start`; returns where it ends.
    fn format_string(
        &mut self,
        start: usize,
        end: usize,
        is_raw: bool,
    ) -> Result<usize, (usize, String)> {
        let bytes = self.source.as_bytes();
        let quote = quote_at(bytes, start, end);
        let mut holes: Vec<Hole> = Vec::new();
        if is_raw {
            self.put("r");
        }
        let mut at = start + quote.len();
        let mut copied = start;
        loop {
            let Some(&byte) = bytes.get(at).filter(|_| at < end) else {
                return Err((start, "this f-string has no end".to_owned()));
            };
            match byte {
                b'\\' => at += 2,
                b'{' | b'}' if bytes.get(at + 1) == Some(&byte) => at += 2,
                b'}' => return Err((at, "a single } in an f-string; write }}".to_owned())),
                b'{' => {
                    let (hole, conversion, after) = self.hole(at, end)?;
                    self.copy(copied, at + 1);
                    self.put(&self.source[conversion.0..conversion.1]);
                    holes.push(hole);
                    (copied, at) = (after - 1, after);
                }
                _ if bytes[at..end].starts_with(quote) => break,
                _ => at += 1,
            }
        }
        at += quote.len();
        self.copy(copied, at);
        self.put(".format(");
        for hole in holes {
            self.put("(");
            self.code(hole.start, hole.end)?;
            self.put("), ");
        }
        self.put(")");
        Ok(at)
    }

    /// Reads a `{…}` that begins at `open`: its expression, its `!r` if it has one, its end.
    fn hole(&self, open: usize, end: usize) -> Result<Filled, Misplaced> {
        let bytes = self.source.as_bytes();
        let (mut at, mut depth) = (open + 1, 0usize);
        while at < end {
            match bytes[at] {
                b'"' | b'\'' => {
                    at = string_end(bytes, at, end);
                    continue;
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' => depth = depth.saturating_sub(1),
                b'}' if depth > 0 => depth -= 1,
                b'}' => {
                    let hole = Hole { start: open + 1, end: at };
                    return self.filled(hole, (at, at), at + 1);
                }
                b'!' if depth == 0 && bytes.get(at + 1) != Some(&b'=') => {
                    if matches!(bytes.get(at + 1), Some(b'r' | b's'))
                        && bytes.get(at + 2) == Some(&b'}')
                    {
                        let hole = Hole { start: open + 1, end: at };
                        return self.filled(hole, (at, at + 2), at + 3);
                    }
                    return Err((at, "only !r and !s can follow an expression here".to_owned()));
                }
                b':' if depth == 0 => {
                    let what = "a format such as {x:.2f} is not supported; write {round(x, 2)} or \
                                \"%.2f\" % x";
                    return Err((at, what.to_owned()));
                }
                _ => {}
            }
            at += 1;
        }
        Err((open, "this { of an f-string has no }".to_owned()))
    }

    fn filled(
        &self,
        hole: Hole,
        conversion: (usize, usize),
        after: usize,
    ) -> Result<Filled, Misplaced> {
        if self.source[hole.start..hole.end].trim().is_empty() {
            return Err((hole.start - 1, "an empty {} in an f-string".to_owned()));
        }
        Ok((hole, conversion, after))
    }

    fn copy(&mut self, start: usize, end: usize) {
        if start < end {
            self.out.steps.push((self.out.text.len(), start));
            self.out.text.push_str(&self.source[start..end]);
        }
    }

    fn put(&mut self, text: &str) {
        self.out.text.push_str(text);
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The quote at `at`: one character or three.
fn quote_at(bytes: &[u8], at: usize, end: usize) -> &[u8] {
    let three = at + 3 <= end && bytes[at..at + 3].iter().all(|b| *b == bytes[at]);
    if three { &bytes[at..at + 3] } else { &bytes[at..=at] }
}

/// Where the string whose quote is at `at` ends.
fn string_end(bytes: &[u8], at: usize, end: usize) -> usize {
    let quote = quote_at(bytes, at, end);
    let mut place = at + quote.len();
    while place < end && !bytes[place..end].starts_with(quote) {
        place += if bytes[place] == b'\\' { 2 } else { 1 };
    }
    (place + quote.len()).min(end)
}

/// Where the raw string whose quote is at `at` ends; a backslash keeps a quote inside it, too.
fn raw_string_end(bytes: &[u8], at: usize, end: usize) -> usize {
    string_end(bytes, at, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expected: &str) {
        let rewritten = rewrite(script).expect("an f-string");
        assert_eq!(rewritten.text, expected);
        assert_eq!(
            rewritten.text.matches('\n').count(),
            script.matches('\n').count(),
            "no line is added or lost"
        );
    }

    #[test]
    fn any_expression_can_stand_in_an_f_string() {
        check(r#"x = f"pay:{trip.id}""#, r#"x = "pay:{}".format((trip.id), )"#);
        check(r#"f"{a} > {over[0].n}!" "#, r#""{} > {}!".format((a), (over[0].n), ) "#);
        check(r#"f'{x["id"]}{{y}}'"#, r#"'{}{{y}}'.format((x["id"]), )"#);
        check(r#"f"{x!r}""#, r#""{!r}".format((x), )"#);
        check(r#"f"{x != y}""#, r#""{}".format((x != y), )"#);
        check(r#"f"{ {'a': 1}['a'] }""#, r#""{}".format(( {'a': 1}['a'] ), )"#);
        check(r#"f"{f'{x}'}""#, r#""{}".format(('{}'.format((x), )), )"#);
        check("f'''a\n{x}\n'''", "'''a\n{}\n'''.format((x), )");
        check(r#"rf"\d{x}""#, r#"r"\d{}".format((x), )"#);
    }

    #[test]
    fn other_text_stays_as_it_is() {
        for script in [
            r#""f" + 'a{b}'  # f"{x""#,
            r#"r"\" f'{x'"#,
            r#"if"x" in y: pass"#,
            "\"\"\"f'{x'\"\"\"",
            r#""\"f'{""#,
        ] {
            check(script, script);
        }
    }

    #[test]
    fn places_lead_back_to_the_original() {
        let script = "a = f\"{x.y} {z}\" + w\nb";
        let rewritten = rewrite(script).expect("an f-string");
        for word in ["a =", "x.y", "z", "+ w", "b"] {
            let new = rewritten.text.find(word).expect("it was copied");
            let old = script.find(word).expect("it is there");
            assert_eq!(rewritten.original_offset(new), old, "{word} in {}", rewritten.text);
        }
    }

    #[test]
    fn what_is_wrong_in_an_f_string_is_told_with_its_place() {
        let error = |script: &str| rewrite(script).expect_err("an error");
        assert_eq!(error("x = f\"{a").0, 6);
        assert_eq!(error("f\"{}\"").1, "an empty {} in an f-string");
        assert_eq!(error("f\"a}\"").1, "a single } in an f-string; write }}");
        assert_eq!(error("f\"abc").1, "this f-string has no end");
        assert!(error("f\"{x:.2f}\"").1.starts_with("a format such as {x:.2f} is not supported"));
    }
}
