//! Standard output: text for people, or JSON for programs.

use crate::failure::Result;
use crate::terminal::is_quiet;
use crate::text::{indented_json, json};
use serde::Serialize;
use std::io::{self, BufWriter, StdoutLock, Write};

/// Buffered standard output. Call [`finish`](Out::finish): a write that fails late is a failure, too.
pub struct Out(BufWriter<StdoutLock<'static>>);

impl Out {
    /// Standard output.
    pub fn new() -> Self {
        Out(BufWriter::with_capacity(1 << 16, io::stdout().lock()))
    }

    /// One line.
    pub fn line(&mut self, text: &str) -> Result {
        Ok(writeln!(self.0, "{text}")?)
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result {
        Ok(self.0.write_all(bytes)?)
    }

    /// Names and values, the values aligned.
    pub fn fields(&mut self, fields: &[(&str, String)]) -> Result {
        let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, value) in fields {
            writeln!(self.0, "{name:<width$}  {value}")?;
        }
        Ok(())
    }

    /// Lines of cells, which are aligned: to the right in columns that have numbers.
    pub fn table(&mut self, lines: &[Vec<String>], numbers: &[bool]) -> Result {
        let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..numbers.len()).map(width).collect();
        for line in lines {
            let cell = |((text, number), width): ((&String, &bool), &usize)| match number {
                true => format!("{text:>width$}"),
                false => format!("{text:<width$}"),
            };
            let cells: Vec<_> = line.iter().zip(numbers).zip(&widths).map(cell).collect();
            self.line(cells.join("  ").trim_end())?;
        }
        Ok(())
    }

    /// One value as indented JSON.
    pub fn json(&mut self, value: &impl Serialize) -> Result {
        self.line(&indented_json(value)?)
    }

    /// A JSON array, one element a line, written as they come.
    pub fn array<T: Serialize>(&mut self, values: impl IntoIterator<Item = T>) -> Result {
        let mut before = "[\n";
        for value in values {
            write!(self.0, "{before}{}", json(&value)?)?;
            before = ",\n";
        }
        self.line(if before == "[\n" { "[]" } else { "\n]" })
    }

    /// Writes what is buffered.
    pub fn finish(mut self) -> Result {
        Ok(self.0.flush()?)
    }

    /// Writes what is buffered, now.
    pub fn flush(&mut self) -> Result {
        Ok(self.0.flush()?)
    }
}

/// As [`show`], for a command that does something: `--quiet` keeps the text away.
pub fn confirm<T: Serialize>(json: bool, value: &T, text: impl FnOnce(&T, &mut Out) -> Result) -> Result {
    if json || !is_quiet() { show(json, value, text) } else { Ok(()) }
}

/// Prints one value: as JSON, or as `text` has it.
pub fn show<T: Serialize>(json: bool, value: &T, text: impl FnOnce(&T, &mut Out) -> Result) -> Result {
    let mut out = Out::new();
    if json {
        out.json(value)?
    } else {
        text(value, &mut out)?
    }
    out.finish()
}
