//! The record of a campaign for docs/evidence.md.

use crate::campaign::{Campaign, Findings};
use crate::{LONG, QUICK};
use indelible_record::{Mode, Record, add};

pub(crate) fn record(campaign: &Campaign<'_>, findings: &Findings, seconds: f64) -> Record {
    let mode = if campaign.cycles >= LONG { Mode::Long } else { Mode::Short };
    let options = match campaign.cycles {
        QUICK => "--quick".to_owned(),
        cycles => format!("--cycles {cycles}"),
    };
    let command = format!("cargo xtask power-cut {options} --seed {}", campaign.seed);
    let mut record = Record::new("power-cut", mode, command, campaign.seed);
    let mut sum = |name: &str, count: u64| add(&mut record.counts, name, count);
    for (kind, counts) in &findings.counts {
        sum(&format!("cuts, {kind}"), counts.cuts);
        sum("cycles", counts.cuts);
        sum("cuts during recovery", counts.recovering);
        sum("cuts inside a step that is found done", counts.done);
        sum("cuts inside a step that is found not done", counts.undone);
        sum("steps promised and found", counts.steps);
        sum("lines left to chance", counts.undecided);
    }
    sum("violations", findings.violations.len() as u64);
    record.seconds = seconds;
    (record.caught, record.missed) = (findings.caught.clone(), findings.missed.clone());
    record
}
