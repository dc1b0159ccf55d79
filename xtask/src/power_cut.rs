//! Power cuts of emulated machines, by the rig.

use crate::command::{Result, timed};

const LACKING: i32 = 77;

/// Runs the rig. `false`: nothing was tested; the rig printed why.
pub(crate) fn run<S: AsRef<str>>(arguments: &[S]) -> Result<bool> {
    // Without the library, which only the guest program needs.
    let host = ["--no-default-features", "--features", "host"];
    let mut all = vec!["run", "--release", "--quiet", "-p", "indelible-rig"];
    all.extend(host);
    all.push("--");
    all.extend(arguments.iter().map(AsRef::as_ref));
    match timed("power cuts", &all, &[])?.code() {
        Some(0) => Ok(true),
        Some(LACKING) => Ok(false),
        _ => Err("a power cut was not survived, or the rig failed; see above".into()),
    }
}
