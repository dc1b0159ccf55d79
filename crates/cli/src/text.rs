//! Text for people: nothing in it can command a terminal.

use indelible_store::error::date_time;
use std::time::{SystemTime, UNIX_EPOCH};

/// Characters that move the cursor, hide text or reorder it are shown as escapes.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// Line and paragraph separators, zero-width characters, and those that change the direction of text.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The text in quotes, as a shell or JSON would show it.
pub fn quoted(text: &str) -> String {
    printable(&format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An address.
pub fn address(at: u64) -> String {
    format!("{at:#x}")
}

/// `1 object`, `2 objects`.
pub fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A point in time, in UTC, as RFC 3339 has it.
pub fn time(at: SystemTime) -> String {
    date_time(at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// So many seconds after 1970, as [`time`]; any number, as a damaged pool may have it.
pub fn date(seconds: u64) -> String {
    date_time(seconds)
}

/// A short time span.
pub fn span(span: std::time::Duration) -> String {
    let micros = span.as_secs_f64() * 1e6;
    match micros {
        m if m < 1e3 => format!("{m:.0} µs"),
        m if m < 1e6 => format!("{:.1} ms", m / 1e3),
        m => format!("{:.2} s", m / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_commands_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(printable("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(printable("grün/日本"), "grün/日本");
        assert_eq!(quoted("a\"\n"), "\"a\\\"\\u{a}\"");
    }
}
