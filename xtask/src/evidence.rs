//! All layers of evidence, then the page.

use crate::command::{Result, step};
use crate::{fuzz, power_cut, tools};

struct Layer {
    name: &'static str,
    short: &'static [&'static str],
    long: &'static [&'static str],
}

/// Long campaigns run what ships: optimized, without breakable rules.
const LONG: [&str; 6] = ["run", "--release", "-p", "indelible-evidence", "--no-default-features", "--"];
/// Short forms use the tests' build: profile and workspace features.
const SHORT: [&str; 4] = ["run", "--bin", "pmo-evidence", "--"];
const MUTANTS_LONG: [&str; 5] = ["run", "--release", "-p", "indelible-evidence", "--"];

/// In the order in which they run. Short forms have fixed seeds, so that no run fails by chance.
const LAYERS: &[Layer] = &[
    Layer {
        name: "crashes",
        short: &["crashes", "--threads=2"],
        long: &["crashes", "--long", "--threads=2"],
    },
    Layer { name: "kills", short: &["kills", "--seed=1"], long: &["kills", "--long"] },
    #[cfg(target_arch = "x86_64")]
    Layer { name: "commands", short: &["commands", "--seed=1"], long: &["commands", "--long"] },
    Layer { name: "snapshots", short: &["snapshots", "--seed=1"], long: &["snapshots", "--long"] },
    Layer { name: "disks", short: &["disks", "--seed=1"], long: &["disks", "--long"] },
    Layer { name: "stores", short: &["stores", "--seed=1"], long: &["stores", "--long"] },
    Layer { name: "messages", short: &["messages", "--seed=1"], long: &["messages", "--long"] },
    Layer { name: "ecc", short: &["ecc", "--seed=1"], long: &["ecc", "--long"] },
    Layer { name: "retention", short: &["retention", "--seed=1"], long: &["retention", "--long"] },
    Layer { name: "faults", short: &["faults", "--seed=1"], long: &["faults", "--long"] },
    Layer { name: "tamper", short: &["tamper", "--seed=1"], long: &["tamper", "--long"] },
    Layer { name: "hostile", short: &["hostile"], long: &["hostile", "--long"] },
];

pub(crate) fn run(long: bool) -> Result {
    // First, as the table of mutants uses its verdicts.
    let quick: &[&str] = if long { &[] } else { &["--quick"] };
    let tested = power_cut::run(quick)? && power_cut::run(&[&["--guard"], quick].concat())?;
    layers(long)?;
    mutants(long)?;
    if long {
        fuzz::run(60, 1, None)?;
        tools::run(&[])?;
    }
    step("evidence: report", &[program(long), &["report"]].concat())?;
    if !tested {
        println!("NOT TESTED: power cuts of emulated machines; why not is said above");
    }
    Ok(())
}

pub(crate) fn short() -> Result {
    layers(false)?;
    controls(false)
}

fn layers(long: bool) -> Result {
    for layer in LAYERS {
        let command = if long { layer.long } else { layer.short };
        step(&format!("evidence: {}", layer.name), &[program(long), command].concat())?;
    }
    Ok(())
}

fn mutants(long: bool) -> Result {
    let of: &[&str] = if long { &MUTANTS_LONG } else { &SHORT };
    let mut mutants = [of, &["mutants", "--threads=2"]].concat();
    mutants.extend(long.then_some("--long"));
    step("evidence: mutants", &mutants)?;
    controls(long)
}

fn controls(long: bool) -> Result {
    let of: &[&str] = if long { &MUTANTS_LONG } else { &SHORT };
    step("evidence: controls of retention", &[of, &["retention", "--controls"]].concat())?;
    step("evidence: controls of disks", &[of, &["disks", "--controls"]].concat())
}

const fn program(long: bool) -> &'static [&'static str] {
    if long { &LONG } else { &SHORT }
}
