//! Progress bars: on standard error, and only if that is a terminal.

use crate::terminal::is_quiet;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const BYTES: &str = "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec}";
const STEPS: &str = "{msg} {wide_bar} {percent}%";
const OPEN: &str = "{msg} {spinner} {binary_bytes} {binary_bytes_per_sec}";

/// Over bytes; a count without a total.
pub fn bytes(what: &'static str, total: Option<u64>) -> ProgressBar {
    match total {
        Some(total) => bar(what, total, BYTES),
        None => bar(what, 0, OPEN),
    }
}

/// Over other things; set its length once known.
pub fn steps(what: &'static str) -> ProgressBar {
    bar(what, 0, STEPS)
}

fn bar(what: &'static str, total: u64, template: &str) -> ProgressBar {
    let target = if is_quiet() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.with_message(what)
}
