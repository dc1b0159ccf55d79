//! Rules for all work: errors are clear, and pools are sound.

use crate::workloads::wire::Said;
use crate::workloads::world::Trouble;
use indelible::{PoolOptions, Severity, check};
use std::path::Path;

pub(super) fn failed(error: &indelible::Error) {
    let text = error.to_string();
    if !text.starts_with("cannot ") || error.remedy().is_empty() {
        Said::Wrong { why: format!("not a clear error: {text}") }.say();
    }
    Said::Failed { workload: 0, untouched: false, why: format!("{:?}: {text}", error.kind()) }.say();
}

pub(super) fn expect_sound(pool: &Path, allowed: Severity) -> Result<(), Trouble> {
    let report = check(pool, &PoolOptions::new(), &mut |_, _| {})?;
    match report.findings.iter().find(|finding| finding.severity > allowed) {
        None => Ok(()),
        Some(finding) => Err(Trouble::Wrong(format!("check: {finding}"))),
    }
}
