//! All layers of evidence, one after the other, then the page.

use crate::steps::{Result, step};

/// A layer: what it is called, the command of its short form, and of a campaign (none: the same).
struct Layer {
    name: &'static str,
    short: Option<&'static [&'static str]>,
    long: Option<&'static [&'static str]>,
}

const RUN: [&str; 5] = ["run", "--release", "-p", "indelible-evidence", "--"];

/// In the order in which they run.
const LAYERS: &[Layer] = &[
    Layer { name: "kills", short: Some(&["kills"]), long: Some(&["kills", "--long"]) },
    Layer { name: "faults", short: Some(&["faults"]), long: Some(&["faults", "--long"]) },
];

pub(crate) fn run(arguments: &[String]) -> Result {
    let long = match arguments {
        [] => false,
        [word] if word == "--long" => true,
        _ => return Err("usage: cargo xtask evidence [--long]".into()),
    };
    for layer in LAYERS {
        let Some(command) = (if long { layer.long } else { layer.short }) else { continue };
        step(&format!("evidence: {}", layer.name), &[&RUN[..], command].concat())?;
    }
    step("evidence: report", &[&RUN[..], &["report"]].concat())
}
