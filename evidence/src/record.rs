//! What one layer of evidence found, on its way to docs/evidence.md.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// One run of one layer.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub(crate) struct Record {
    /// The layer's name: the command, such as `crashes`.
    pub(crate) layer: String,
    /// `short` (as in CI) or `long` (a campaign).
    pub(crate) mode: Mode,
    /// What to type to get it again.
    pub(crate) command: String,
    /// Where its random choices started from.
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    /// What was tried, by name; `violations` is always among them.
    pub(crate) counts: BTreeMap<String, u64>,
    /// Deliberate faults that the layer noticed, and those it did not.
    #[serde(default)]
    pub(crate) caught: Vec<String>,
    #[serde(default)]
    pub(crate) missed: Vec<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    Short,
    Long,
}

/// Where records are left: below the build folder, as they belong to one tree and one machine.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from).join("evidence")
}

impl Record {
    /// Replaces the record of the last run of this layer in this mode.
    pub(crate) fn save(&self) -> Result<()> {
        let folder = folder();
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let mode = if self.mode == Mode::Long { "long" } else { "short" };
        let path = folder.join(format!("{}-{mode}.json", self.layer));
        let text = serde_json::to_string_pretty(self)?;
        fs::write(&path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
    }

    /// Prints what was counted.
    pub(crate) fn print(&self) {
        println!("{}: {:.0} s", self.layer, self.seconds);
        for (what, count) in &self.counts {
            println!("  {count:>12}  {what}");
        }
    }

    /// All records in a folder, by layer, the long run of each before the short one.
    pub(crate) fn all(folder: &Path) -> Result<Vec<Record>> {
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

/// Counts something.
pub(crate) fn add(counts: &mut BTreeMap<String, u64>, what: &str, count: u64) {
    *counts.entry(what.to_owned()).or_default() += count;
}
