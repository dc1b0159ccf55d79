//! `cargo xtask drill`: plays incidents with the tool, following its printed advice until the pool
//! is whole again.

use crate::command::{Result, step};

pub(crate) fn run() -> Result {
    let selected = ["test", "-p", "indelible-cli", "-p", "xtask-unified", "--test", "main"];
    let played = ["--", "incidents::", "--nocapture", "--test-threads", "1"];
    step("incidents", &[&selected[..], &played].concat())
}
