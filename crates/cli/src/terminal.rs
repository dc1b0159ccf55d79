//! Standard error: failures and notes.

use crate::text::printable;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

/// When to color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    pub json: bool,
    pub quiet: bool,
    pub verbose: bool,
    pub color: Color,
}

static STYLE: OnceLock<Style> = OnceLock::new();

pub fn set(style: Style) {
    let _ = STYLE.set(style);
}

fn style() -> Style {
    STYLE.get().copied().unwrap_or_default()
}

pub fn is_json() -> bool {
    style().json
}

pub fn is_quiet() -> bool {
    style().quiet
}

fn is_colored() -> bool {
    match style().color {
        Color::Auto => {
            io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty())
        }
        Color::Always => true,
        Color::Never => false,
    }
}

/// Labelled lines; write errors are ignored.
pub fn labelled(label: Label, text: &str) {
    let (word, code) = match label {
        Label::Error => ("error", "1;31"),
        Label::Help => ("help", "36"),
        Label::Note => ("note", "36"),
    };
    let text = printable(text);
    let line = match is_colored() {
        true => format!("\x1b[{code}m{word}:\x1b[0m {text}"),
        false => format!("{word}: {text}"),
    };
    let _ = writeln!(io::stderr(), "{line}");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    Error,
    Help,
    Note,
}

pub fn note(text: &str) {
    if !is_quiet() {
        labelled(Label::Note, text);
    }
}

/// For --verbose.
pub fn detail(text: impl FnOnce() -> String) {
    if style().verbose {
        labelled(Label::Note, &text());
    }
}
