//! Layers that are campaigns: samples of each, in processes with the mutant.

use super::common::{SEED, Verdict};
use anyhow::{Context, Result};
use indelible_record::{Record, folder};
use indelible_store::Mutant;
use std::collections::BTreeMap;
use std::process::Command;

pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    arguments: &'static [&'static str],
    made_for: &'static [Mutant],
}

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        name: "kills",
        what: "132 rounds of SIGKILL, in every scenario",
        arguments: &["kills", "--rounds", "132", "--jobs", "1"],
        made_for: &[],
    },
    Program {
        name: "faults",
        what: "60 failing system calls",
        arguments: &["faults", "--sample", "60", "--jobs", "1"],
        made_for: &[],
    },
    #[cfg(target_arch = "x86_64")]
    Program {
        name: "processor",
        what: "the instructions of a psync, one by one",
        arguments: &["flushes"],
        made_for: &[Mutant::NoWriteBack, Mutant::NoFence],
    },
];

pub(super) struct Recorded {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    layer: &'static str,
}

pub(super) const RECORDED: &[Recorded] = &[
    Recorded { name: "rig", what: "power cuts of emulated machines, as last recorded", layer: "power-cut" },
    Recorded {
        name: "disks",
        what: "power cuts of disks below real file systems, as last recorded",
        layer: "disks",
    },
];

impl Program {
    pub(super) fn is_for(&self, mutant: Mutant) -> bool {
        self.made_for.contains(&mutant)
    }

    pub(super) fn verdict(&self, mutant: Option<Mutant>) -> Result<Verdict> {
        let scratch = tempfile::tempdir()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(self.arguments);
        if self.made_for.is_empty() {
            command.args(["--seed", &SEED.to_string()]);
        }
        command.env("CARGO_TARGET_DIR", scratch.path()).env_remove("INDELIBLE_MUTANT");
        if let Some(mutant) = mutant {
            command.env("INDELIBLE_MUTANT", format!("{mutant:?}"));
        }
        let output = command.output().with_context(|| format!("cannot run {}", self.name))?;
        if output.status.success() {
            return Ok(Ok(()));
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let cause = said.lines().find(|line| line.starts_with("pmo-evidence:")).or(said.lines().last());
        Ok(Err(cause.unwrap_or("it died").to_owned()))
    }
}

pub(super) fn recorded(campaign: &Recorded) -> BTreeMap<String, Verdict> {
    let mut verdicts: BTreeMap<String, Verdict> = BTreeMap::new();
    for record in Record::all(&folder()).unwrap_or_default() {
        if record.layer != campaign.layer {
            continue;
        }
        let mutant = |name: &str| name.split(' ').next().unwrap_or_default().to_owned();
        for name in &record.caught {
            verdicts.entry(mutant(name)).or_insert(Err("noticed wherever it was run".into()));
        }
        for name in &record.missed {
            verdicts.insert(mutant(name), Ok(()));
        }
    }
    verdicts
}
