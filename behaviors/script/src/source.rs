//! A script's text: as it was written, as Starlark reads it, and where each part of the one is in
//! the other, so that every error names a place in the file that its author sees.

use behaviors::ReactError;
use starlark::codemap::FileSpan;

use crate::fstring;
use crate::host::Limits;

/// The text of a script.
#[derive(Debug)]
pub(crate) struct Source {
    path: String,
    text: String,
    rewritten: fstring::Rewritten,
}

impl Source {
    /// A script, with its f-strings rewritten.
    pub(crate) fn new(path: &str, text: &str) -> Result<Self, ReactError> {
        let mut source =
            Source { path: path.to_owned(), text: text.to_owned(), rewritten: Default::default() };
        match fstring::rewrite(text) {
            Ok(rewritten) => source.rewritten = rewritten,
            Err((offset, what)) => return Err(source.error_at(offset, what)),
        }
        Ok(source)
    }

    /// The path of the file, relative to the flock.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The text that Starlark reads.
    pub(crate) fn rewritten(&self) -> &str {
        &self.rewritten.text
    }

    /// An error of Starlark, at its place; if it has none, at the function `name`.
    pub(crate) fn error(&self, error: &starlark::Error, limits: Limits, name: &str) -> ReactError {
        let message = plain(&error.without_diagnostic().to_string(), limits);
        let frames = error.call_stack().frames.iter().rev();
        let of_stack = frames.filter_map(|frame| frame.location.as_ref());
        let mut places = error.span().into_iter().chain(of_stack);
        match places.find(|place| place.filename() == self.path) {
            Some(span) => self.error_in(span, message),
            None => self.error_of(name, message),
        }
    }

    /// An error of the whole function `name`.
    pub(crate) fn error_of(&self, name: &str, message: String) -> ReactError {
        let definition = format!("def {name}(");
        let starts = self.text.match_indices(&definition).map(|(offset, _)| offset);
        let mut tops = starts.filter(|at| *at == 0 || self.text.as_bytes()[at - 1] == b'\n');
        match tops.next() {
            Some(offset) => self.error_at(offset, message),
            None => ReactError { file: Some(self.path.clone()), ..ReactError::new(message) },
        }
    }

    /// An error at a place that Starlark tells.
    pub(crate) fn error_in(&self, span: &FileSpan, message: String) -> ReactError {
        let offset = span.span.begin().get() as usize;
        self.error_at(self.rewritten.original_offset(offset), message)
    }

    /// An error about a field of a declaration that is written over several lines, at the line of
    /// the field; where that is not found it stays at the declaration.
    pub(crate) fn at_field(&self, error: ReactError, field: &str) -> ReactError {
        let (first, last) = (field.split('.').next(), field.rsplit('.').next());
        let (Some(line), Some(first), Some(last)) = (error.line, first, last) else {
            return error;
        };
        let quoted = [format!("\"{last}\""), format!("'{last}'")];
        let is_key = |text: &str| {
            quoted.iter().any(|key| {
                text.split_once(key.as_str())
                    .is_some_and(|(_, rest)| rest.trim_start().starts_with(':'))
            })
        };
        let is_field = |text: &str| {
            let rest = text.strip_prefix(first).map(str::trim_start);
            rest.is_some_and(|rest| rest.starts_with('=') && !rest.starts_with("=="))
        };
        let after: Vec<(usize, &str)> = self.text.lines().enumerate().skip(line as usize).collect();
        let ends = after.iter().position(|(_, text)| text.starts_with("def "));
        let within = &after[..ends.unwrap_or(after.len())];
        let key = within.iter().find(|(_, text)| first != last && is_key(text));
        let Some((at, text)) =
            key.or_else(|| within.iter().find(|(_, t)| is_field(t.trim_start())))
        else {
            return error;
        };
        let indent = text.chars().take_while(|c| c.is_whitespace()).count();
        let number = |count: usize| u32::try_from(count + 1).ok();
        ReactError {
            line: number(*at),
            column: number(indent),
            line_text: Some((*text).to_owned()),
            ..error
        }
    }

    /// An error at a byte of the text as it was written.
    fn error_at(&self, offset: usize, message: String) -> ReactError {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let start = self.text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.text[start..].lines().next().unwrap_or("");
        let number = |count: usize| Some(u32::try_from(count + 1).unwrap_or(u32::MAX));
        ReactError {
            message,
            file: Some(self.path.clone()),
            line: number(self.text[..start].matches('\n').count()),
            column: number(self.text[start..offset].chars().count()),
            line_text: Some(line.to_owned()),
            stopped: false,
        }
    }
}

/// A message of Starlark in the words of this project.
fn plain(message: &str, limits: Limits) -> String {
    let Limits { steps, calls, heap_bytes } = limits;
    if let Some(told) = message.strip_prefix("fail:") {
        return format!("fail: {}", told.trim_start());
    }
    if message.starts_with("Execution duration limit of") {
        return format!("it took more than {steps} steps, calls and turns of loops together");
    }
    if message.starts_with("Heap memory limit of") {
        return format!("it took more than {heap_bytes} bytes of memory");
    }
    if message == "Starlark call stack overflow" {
        return format!("calls are nested more than {calls} deep");
    }
    if message == "Immutable" {
        return "this cannot be changed: it is part of what the reaction sees, or was made when the \
                file was loaded; change a copy, such as list(x)"
            .to_owned();
    }
    if message.starts_with("`load` is not allowed") {
        return "`load` is not allowed: a script stands alone".to_owned();
    }
    message.to_owned()
}
