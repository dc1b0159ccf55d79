//! `cargo xtask drill`: incidents of operations, one after the other. Each is played with the tool,
//! whose printed advice is followed until the pool is whole again.

use crate::command::{Result, step};

pub(crate) fn run() -> Result {
    let selected = ["test", "-p", "indelible-cli", "-p", "xtask-unified", "--test", "main"];
    let played = ["--", "incidents::", "--nocapture", "--test-threads", "1"];
    step("incidents", &[&selected[..], &played].concat())
}
