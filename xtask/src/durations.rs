//! Seconds of each test, kept in the target folder between runs.

use crate::command::{Result, target};
use crate::programs::Program;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const TYPICAL: f64 = 0.4;

pub(crate) struct Durations(BTreeMap<String, f64>);

impl Durations {
    /// Empty without a readable file: only order and forecast use it.
    pub(crate) fn of_the_last_run() -> Durations {
        let text = std::fs::read_to_string(file()).unwrap_or_default();
        Durations(serde_json::from_str(&text).unwrap_or_default())
    }

    pub(crate) fn of(&self, program: &Program, test: &str) -> f64 {
        self.0.get(&key(program, test)).copied().unwrap_or(TYPICAL)
    }

    pub(crate) fn note(&mut self, program: &Program, test: &str, took: Duration) {
        self.0.insert(key(program, test), took.as_secs_f64());
    }

    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep(&self) -> Result {
        let text = serde_json::to_string(&self.0).map_err(|error| error.to_string())?;
        std::fs::write(file(), text).map_err(|error| format!("{}: {error}", file().display()))
    }
}

fn key(program: &Program, test: &str) -> String {
    format!("{} {} {test}", program.package, program.target.join(" "))
}

fn file() -> PathBuf {
    target().join("test-durations.json")
}
