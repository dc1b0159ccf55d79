//! Records of campaigns for docs/evidence.md.
#![allow(missing_docs, reason = "not published: names tell")]
#![forbid(unsafe_code)]

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// One run of one layer.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Record {
    pub layer: String,
    pub mode: Mode,
    pub command: String,
    pub seed: u64,
    pub seconds: f64,
    /// Cases tried, by name; `violations` is always among them.
    pub counts: BTreeMap<String, u64>,
    /// Deliberate faults noticed.
    #[serde(default)]
    pub caught: Vec<String>,
    /// Deliberate faults missed.
    #[serde(default)]
    pub missed: Vec<String>,
    /// Fault → layer that ran → whether it noticed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub table: BTreeMap<String, BTreeMap<String, bool>>,
    /// Fault → number of detectors that noticed it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub detectors: BTreeMap<String, u64>,
    /// The maintainer's note on a violation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How much of a layer was run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// As in CI.
    Short,
    /// A campaign.
    Long,
}

impl Mode {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Mode::Short => "short",
            Mode::Long => "long",
        }
    }
}

/// The build folder: records belong to one tree and one machine.
#[must_use]
pub fn build_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}

#[must_use]
pub fn folder() -> PathBuf {
    build_folder().join("evidence")
}

impl Record {
    #[must_use]
    pub fn new(layer: &str, mode: Mode, command: String, seed: u64) -> Record {
        Record {
            layer: layer.to_owned(),
            mode,
            command,
            seed,
            seconds: 0.0,
            counts: BTreeMap::from([("violations".to_owned(), 0)]),
            caught: Vec::new(),
            missed: Vec::new(),
            table: BTreeMap::new(),
            detectors: BTreeMap::new(),
            note: None,
        }
    }

    /// Its text in a file.
    ///
    /// # Errors
    /// A figure is no JSON number.
    pub fn text(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Replaces the record of this layer and mode.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self) -> Result<()> {
        let folder = folder();
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let path = folder.join(format!("{}-{}.json", self.layer, self.mode.word()));
        fs::write(&path, self.text()?).with_context(|| format!("cannot write {}", path.display()))
    }

    pub fn print(&self) {
        println!("{}: {:.0} s", self.layer, self.seconds);
        for (what, count) in &self.counts {
            println!("  {count:>12}  {what}");
        }
        for (what, names) in [("caught", &self.caught), ("missed", &self.missed)] {
            if !names.is_empty() {
                println!("  {what:>12}  {}", names.join(", "));
            }
        }
    }

    /// All records of a folder, by layer, long runs first.
    ///
    /// # Errors
    /// The folder cannot be read, or a file is no record.
    pub fn all(folder: &Path) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| format!("no records in {}", folder.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "json") {
                let text = fs::read_to_string(&path)?;
                records.push(serde_json::from_str(&text).with_context(|| path.display().to_string())?);
            }
        }
        records.sort_by(|a: &Record, b| (&a.layer, b.mode).cmp(&(&b.layer, a.mode)));
        Ok(records)
    }
}

pub fn add(counts: &mut BTreeMap<String, u64>, what: &str, count: u64) {
    *counts.entry(what.to_owned()).or_default() += count;
}
