//! Text and JSON without commands for a terminal.

use indelible_store::error::date_time;
use serde::Serialize;
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// Escapes characters that move the cursor, hide or reorder text.
pub fn printable(text: &str) -> String {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// Separators, annotations, and Unicode's default ignorable characters.
const INVISIBLE: [(char, char); 18] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e00ff}'),
    ('\u{e0100}', '\u{e0fff}'),
];

fn is_invisible(c: char) -> bool {
    INVISIBLE.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

pub fn json<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    serde_json::to_string(value).map(|text| escaped_json(&text))
}

pub fn indented_json<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value).map(|text| escaped_json(&text))
}

/// Escapes the characters of [`printable`]: they are in strings, but for line breaks, which strings
/// escape already.
fn escaped_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && (c.is_control() || is_invisible(c)) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// In quotes, for a shell or JSON.
pub fn quoted(text: &str) -> String {
    printable(&format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn address(at: u64) -> String {
    format!("{at:#x}")
}

/// `1 object`, `2 objects`.
pub fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// In UTC, by RFC 3339.
pub fn time(at: SystemTime) -> String {
    date_time(at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// As [`time`], of seconds since 1970; a damaged pool may have any.
pub fn date(seconds: u64) -> String {
    date_time(seconds)
}

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
        assert_eq!(printable("a\u{e0041}b\u{ad}"), "a\\u{e0041}b\\u{ad}");
        assert_eq!(json("\u{1b}\u{9b}\n\u{e0041}\u{202e}").unwrap(), r#""\u001b\u009b\n\udb40\udc41\u202e""#);
        assert_eq!(indented_json(&["grün"]).unwrap(), "[\n  \"grün\"\n]");
    }
}
