//! Files changed since the last complete run of the tests.

use crate::programs;
use std::process::Command;

/// Names the commit of that run; `cargo xtask test --all` says how to update it.
pub(crate) const RECORD: &str = ".ci/complete";

/// Whether a file below the folders differs from the recorded commit; `true` if git cannot tell.
pub(crate) fn touches(folders: &[&str]) -> bool {
    let Ok(project) = programs::project() else { return true };
    let Ok(commit) = std::fs::read_to_string(project.join(RECORD)) else { return true };
    let mut diff = Command::new("git");
    diff.args(["diff", "--quiet", commit.trim(), "--"]).args(folders).current_dir(project);
    // Status 0: no difference. 1: some. Others: an error.
    !diff.status().is_ok_and(|status| status.success())
}
