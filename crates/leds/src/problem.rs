//! Reasons why a source cannot be lowered.

use std::fmt;
use std::path::PathBuf;

/// A reason, with its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The source.
    pub file: PathBuf,
    /// From 1; 0 for the whole source.
    pub line: u32,
    /// From 1.
    pub column: u32,
    /// The reason, and the remedy.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file.display(), self.text),
            line => write!(f, "{}:{line}:{}: {}", self.file.display(), self.column, self.text),
        }
    }
}

pub(crate) fn position(source: &str, offset: usize) -> (u32, u32) {
    let before = &source.as_bytes()[..offset.min(source.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    (line as u32, column as u32)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) file: usize,
    pub(crate) offset: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) at: Place,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(at: Place, text: impl Into<String>) -> Refusal {
        Refusal { at, text: text.into() }
    }
}
