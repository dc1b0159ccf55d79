//! Progress of a build: a bar on a terminal, lines for programs, else nothing.

use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use std::fmt;
use std::time::{Duration, Instant};

pub(crate) struct Progress {
    bar: ProgressBar,
    events: bool,
    since: Instant,
    pub(crate) files: u64,
    pub(crate) tokens: u64,
    pub(crate) bytes: u64,
    pub(crate) psyncs: u64,
}

impl Progress {
    pub(crate) fn new(events: bool) -> Self {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress { bar, events, since: Instant::now(), files: 0, tokens: 0, bytes: 0, psyncs: 0 }
    }

    pub(crate) fn event(&self, event: fmt::Arguments<'_>) {
        if self.events {
            println!("{event}");
        }
    }

    pub(crate) fn looking(&self, files: usize) {
        if files.is_multiple_of(64) {
            self.bar.set_message(format!("looking for files: {}", HumanCount(files as u64)));
        }
    }

    pub(crate) fn start(&mut self, done: u64, all: u64) {
        self.since = Instant::now();
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} files · {msg}");
        self.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_length(all);
        self.bar.set_position(done);
    }

    pub(crate) fn file(&mut self, tokens: u64, bytes: u64) {
        self.files += 1;
        self.tokens += tokens;
        self.bytes += bytes;
        self.bar.inc(1);
        if self.files.is_multiple_of(16) {
            self.bar.set_message(self.to_string());
        }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.bytes as f64 / 1e6 / self.since.elapsed().as_secs_f64().max(1e-3);
        write!(f, "{} words · {rate:.0} MB/s · {} psyncs", HumanCount(self.tokens), self.psyncs)
    }
}
