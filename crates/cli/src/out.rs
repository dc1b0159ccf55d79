//! Standard output: text or JSON.

use crate::failure::Result;
use crate::terminal::is_quiet;
use crate::text::{indented_json, json};
use serde::Serialize;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::iter::repeat_n;

/// Buffered standard output. [`finish`](Out::finish) reports a late failure.
pub struct Out(BufWriter<StdoutLock<'static>>);

impl Out {
    pub fn new() -> Self {
        Out(BufWriter::with_capacity(1 << 16, io::stdout().lock()))
    }

    pub fn line(&mut self, text: &str) -> Result {
        Ok(writeln!(self.0, "{text}")?)
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> Result {
        Ok(self.0.write_all(bytes)?)
    }

    /// Names and aligned values.
    pub fn fields(&mut self, fields: &[(&str, String)]) -> Result {
        let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, value) in fields {
            writeln!(self.0, "{name:<width$}  {value}")?;
        }
        Ok(())
    }

    /// Aligned cells; numbers to the right.
    pub fn table(&mut self, lines: &[Vec<String>], numbers: &[bool]) -> Result {
        let mut widths = Widths::of(numbers);
        lines.iter().for_each(|line| widths.fit(line));
        lines.iter().try_for_each(|line| self.row(line, &widths))
    }

    /// As wide as the fitted lines.
    pub fn row<C: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = C>, widths: &Widths) -> Result {
        let (mut line, mut separator) = (String::new(), "");
        for (text, (number, width)) in cells.into_iter().zip(&widths.0) {
            let text = text.as_ref();
            line.push_str(separator);
            separator = "  ";
            let padding = width.saturating_sub(text.chars().count());
            let (before, behind) = if *number { (padding, 0) } else { (0, padding) };
            line.extend(repeat_n(' ', before));
            line.push_str(text);
            line.extend(repeat_n(' ', behind));
        }
        self.line(line.trim_end())
    }

    pub fn json(&mut self, value: &impl Serialize) -> Result {
        self.line(&indented_json(value)?)
    }

    /// A JSON array, an element a line.
    pub fn array<T: Serialize>(&mut self, values: impl IntoIterator<Item = T>) -> Result {
        let mut array = self.begin_array();
        values.into_iter().try_for_each(|value| array.push(&value))?;
        array.end()
    }

    /// Elements are written as they come, one a line.
    pub fn begin_array(&mut self) -> Array<'_> {
        Array { out: self, before: "[\n" }
    }

    pub fn finish(mut self) -> Result {
        Ok(self.0.flush()?)
    }

    pub fn flush(&mut self) -> Result {
        Ok(self.0.flush()?)
    }
}

/// Columns: whether they have numbers, aligned to the right, and their widths.
#[derive(Clone)]
pub struct Widths(Vec<(bool, usize)>);

impl Widths {
    pub fn of(numbers: &[bool]) -> Widths {
        Widths(numbers.iter().map(|number| (*number, 0)).collect())
    }

    /// Widens the columns for a line.
    pub fn fit(&mut self, cells: &[String]) {
        for ((_, width), cell) in self.0.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
}

pub struct Array<'o> {
    out: &'o mut Out,
    before: &'static str,
}

impl Array<'_> {
    pub fn push(&mut self, value: &impl Serialize) -> Result {
        write!(self.out.0, "{}{}", self.before, json(value)?)?;
        self.before = ",\n";
        Ok(())
    }

    pub fn end(self) -> Result {
        self.out.line(if self.before == "[\n" { "[]" } else { "\n]" })
    }
}

/// As [`show`], but `--quiet` omits the text.
pub fn confirm<T: Serialize>(json: bool, value: &T, text: impl FnOnce(&T, &mut Out) -> Result) -> Result {
    if json || !is_quiet() { show(json, value, text) } else { Ok(()) }
}

/// Prints a value as JSON or text.
pub fn show<T: Serialize>(json: bool, value: &T, text: impl FnOnce(&T, &mut Out) -> Result) -> Result {
    let mut out = Out::new();
    if json {
        out.json(value)?
    } else {
        text(value, &mut out)?
    }
    out.finish()
}
