//! A script's text: as it was written, as Starlark reads it, and where each part of the one is in the
//! other, so that every error names a place in the file that its author sees.

use behaviors::ReactError;
use starlark::codemap::FileSpan;

use crate::fstring;

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

    /// An error of Starlark, at its place.
    pub(crate) fn error(&self, error: &starlark::Error) -> ReactError {
        let message = error.without_diagnostic().to_string();
        let message = message
            .strip_prefix("fail:")
            .map_or(message.clone(), |told| format!("fail: {}", told.trim_start()));
        let frames = error.call_stack().frames.iter().rev();
        let of_stack = frames.filter_map(|frame| frame.location.as_ref());
        let mut places = error.span().into_iter().chain(of_stack);
        match places.find(|place| place.filename() == self.path) {
            Some(span) => self.error_in(span, message),
            None => ReactError { file: Some(self.path.clone()), ..ReactError::new(message) },
        }
    }

    /// An error at a place that Starlark tells.
    pub(crate) fn error_in(&self, span: &FileSpan, message: String) -> ReactError {
        let offset = span.span.begin().get() as usize;
        self.error_at(self.rewritten.original_offset(offset), message)
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
        }
    }
}
