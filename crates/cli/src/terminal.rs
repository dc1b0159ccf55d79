//! Standard error: failures and notes, as the global options want them.

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

/// The wishes of the global options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    pub json: bool,
    pub quiet: bool,
    pub verbose: bool,
    pub color: Color,
}

static STYLE: OnceLock<Style> = OnceLock::new();

/// Sets the style for the rest of the run.
pub fn set(style: Style) {
    let _ = STYLE.set(style);
}

fn style() -> Style {
    STYLE.get().copied().unwrap_or_default()
}

/// Failures are JSON.
pub fn is_json() -> bool {
    style().json
}

/// Neither notes nor progress.
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

/// One line, or more, with a label in front. A failure to write it is ignored.
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

/// The word in front of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    Error,
    Help,
    Note,
}

/// A note that is no failure.
pub fn note(text: &str) {
    if !is_quiet() {
        labelled(Label::Note, text);
    }
}

/// A note of the work in progress, for users who asked for more than usual.
pub fn detail(text: impl FnOnce() -> String) {
    if style().verbose {
        labelled(Label::Note, &text());
    }
}
