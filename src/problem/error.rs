//! What is wrong with a problem file, shown at its place.

use std::fmt;
use std::ops::Range;

/// Bad input: what, where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemError {
    /// The file's name as the user gave it.
    pub file: String,
    /// The key concerned, as `table.key`.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
    place: Option<Box<Place>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    line: usize,
    column: usize,
    text: String,
    width: usize,
}

impl ProblemError {
    /// An error about a whole file or a flag.
    pub fn new(file: &str, message: impl Into<String>) -> Self {
        Self {
            file: file.to_string(),
            key: None,
            message: message.into(),
            help: None,
            place: None,
        }
    }

    /// Points at a range of bytes of the file's text.
    #[must_use]
    pub fn at(mut self, text: &str, span: Range<usize>) -> Self {
        let start = floor_boundary(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..]
            .find('\n')
            .map_or(text.len(), |newline| start + newline);
        let end = floor_boundary(text, span.end.clamp(start, line_end));
        self.place = Some(Box::new(Place {
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            text: text[line_start..line_end].trim_end().to_string(),
            width: text[start..end].chars().count().max(1),
        }));
        self
    }

    /// Names the key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Says what would be right.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Line and column of the place, from 1.
    pub fn line_and_column(&self) -> Option<(usize, usize)> {
        self.place.as_ref().map(|place| (place.line, place.column))
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for ProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(place) = &self.place {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        if let Some(key) = &self.key {
            write!(f, ": `{key}`")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(place) = &self.place {
            let number = place.line.to_string();
            let margin = " ".repeat(number.len());
            let before: String = place
                .text
                .chars()
                .take(place.column - 1)
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            write!(
                f,
                "\n {margin} |\n {number} | {}\n {margin} | {before}{}",
                place.text,
                "^".repeat(place.width)
            )?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ProblemError {}
