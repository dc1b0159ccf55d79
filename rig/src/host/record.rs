//! What a campaign leaves for docs/evidence.md.

use crate::campaign::{Campaign, Findings};
use crate::{LONG, QUICK};
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

pub(crate) struct Record {
    value: Value,
    mode: &'static str,
}

impl Record {
    pub(crate) fn new(campaign: &Campaign<'_>, findings: &Findings, seconds: f64) -> Record {
        let mut counts = Map::new();
        let mut sum = |name: String, count: u64| {
            let before = counts.get(&name).and_then(Value::as_u64).unwrap_or(0);
            counts.insert(name, (before + count).into());
        };
        for (kind, tally) in &findings.tallies {
            sum(format!("cuts, {kind}"), tally.cuts);
            sum("cycles".into(), tally.cuts);
            sum("cuts during recovery".into(), tally.recovering);
            sum("cuts inside a step that is found done".into(), tally.done);
            sum("cuts inside a step that is found not done".into(), tally.undone);
            sum("steps promised and found".into(), tally.steps);
            sum("lines left to chance".into(), tally.undecided);
        }
        sum("violations".into(), findings.violations.len() as u64);
        let mode = if campaign.cycles >= LONG { "long" } else { "short" };
        let options = match campaign.cycles {
            QUICK => "--quick".to_owned(),
            cycles => format!("--cycles {cycles}"),
        };
        let value = json!({
            "layer": "power-cut",
            "mode": mode,
            "command": format!("cargo xtask power-cut {options} --seed {}", campaign.seed),
            "seed": campaign.seed,
            "seconds": (seconds * 10.0).round() / 10.0,
            "counts": counts,
            "caught": findings.caught,
            "missed": findings.missed,
        });
        Record { value, mode }
    }

    pub(crate) fn text(&self) -> String {
        format!("{:#}", self.value)
    }

    pub(crate) fn print(&self) {
        for (name, count) in self.value["counts"].as_object().into_iter().flatten() {
            println!("{name:<44} {count}");
        }
        for word in ["caught", "missed"] {
            let names: Vec<_> =
                self.value[word].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            println!("{word:<44} {}", names.join(", "));
        }
        println!("{:<44} {}", "seconds", self.value["seconds"]);
    }

    /// Replaces the record of the last campaign of this mode.
    pub(crate) fn save(&self) -> Result<()> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        let folder = target.join("evidence");
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let path = folder.join(format!("power-cut-{}.json", self.mode));
        std::fs::write(&path, self.text() + "\n").with_context(|| format!("cannot write {}", path.display()))
    }
}
