//! Rounds on a disk whose reads, writes and flushes fail at random, under killed processes.
//!
//! While the disk fails, a process may end with a clear error, or by SIGBUS at an unreadable page.
//! Afterwards everything acknowledged must be there.

use super::crew::{Crew, Verdict};
use super::disk::Rates;
use super::interrupted;
use super::machine::{Kind, Machine};
use super::pages::Pages;
use super::replay::{Violation, all_specs, machine_with_pool};
use crate::workloads::program::mixed;
use crate::workloads::wire::{Said, Spec};
use anyhow::{Result, bail};
use fastrand::Rng;
use indelible_record::{add, folder};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const ROUNDS: u64 = 8;

pub(crate) struct Failing {
    machine: Machine,
    seed: u64,
    rng: Rng,
    specs: Vec<Spec>,
    log: String,
}

impl Failing {
    pub(crate) fn new(kind: Kind, seed: u64) -> Result<Failing> {
        let machine = machine_with_pool(kind)?;
        Ok(Failing { machine, seed, rng: mixed(seed, u64::MAX, 2), specs: all_specs(), log: String::new() })
    }

    /// `false`: the file system, and with it the pool, cannot recover.
    pub(crate) fn round(&mut self, counts: &mut BTreeMap<String, u64>) -> Result<Result<bool, Violation>> {
        if interrupted() {
            bail!("interrupted");
        }
        let kind = self.machine.kind;
        let rates = self.rates();
        self.log += &format!("round, fails one in: {rates:?}\n");
        self.machine.mount()?;
        self.machine.disk.fail(rates, kind.whole(), self.rng.u64(..));
        let crew = Crew { machine: &self.machine, seed: self.seed, mutant: None };
        let mut wrong = None;
        for _ in 0..self.rng.usize(1..4) {
            let limit = Duration::from_millis(self.rng.u64(100..1500));
            let storm = crew.storm(&mut self.specs, &mut self.rng, limit)?;
            add(counts, "victims of failing disks killed", storm.killed);
            for (by, why) in storm.died {
                if by == rustix::process::Signal::BUS.as_raw() {
                    add(counts, "victims that died of SIGBUS: a page could not be read", 1);
                } else {
                    wrong = wrong.or(Some(format!("a victim ended by {by}: {why}")));
                }
            }
            for said in &storm.said {
                self.log += &format!("{said}\n");
                match said {
                    Said::Wrong { why } => wrong = wrong.or(Some(why.clone())),
                    Said::Failed { why, .. } => {
                        let class = why.split(':').next().unwrap_or("");
                        add(counts, &format!("clear errors, {}: {class}", kind.word()), 1);
                    }
                    Said::Count { what, count } => add(counts, what, *count),
                    Said::Done { .. } => add(counts, "steps acknowledged by failing disks", 1),
                    _ => {}
                }
            }
        }
        let power = !self.machine.disk.pause() || self.rng.bool();
        if power {
            self.machine.disk.mend(true);
            self.machine.unmount()?;
            self.machine.disk.show(Pages::default());
        } else {
            self.machine.unmount()?;
            self.machine.disk.mend(false);
        }
        self.machine.disk.settle();
        add(counts, "rounds on a failing disk", 1);
        add(counts, &format!("rounds on a failing disk, {}", kind.word()), 1);
        add(counts, if power { "rounds that ended in a power cut" } else { "rounds that ended in order" }, 1);
        if let Err(error) = self.machine.mount() {
            self.log += &format!("{error:#}\n");
            add(counts, &format!("rounds after which {} refused to mount", kind.word()), 1);
            return Ok(Ok(false));
        }
        let before = self.specs.clone();
        let crew = Crew { machine: &self.machine, seed: self.seed, mutant: None };
        let verdict = crew.judge(&mut self.specs)?;
        self.machine.unmount()?;
        if let Verdict::Wrong(why) = verdict {
            wrong = wrong.or(Some(why));
        }
        Ok(match wrong {
            Some(why) => Err(self.keep(&before, &why)?),
            None => Ok(true),
        })
    }

    fn rates(&mut self) -> Rates {
        let rng = &mut self.rng;
        let mut rate = |often: u32| if rng.bool() { 0 } else { rng.u32(2..often) };
        Rates { read: rate(400), write: rate(600), flush: rate(200) }
    }

    fn keep(&self, before: &[Spec], why: &str) -> Result<Violation> {
        let kept = folder().join(format!("disks-failing-{}-{}", self.machine.kind.word(), self.seed));
        std::fs::create_dir_all(&kept)?;
        self.machine.disk.save(&Pages::default(), &kept.join("image"))?;
        let workloads: Vec<String> = before.iter().map(|spec| format!("--workload {spec}")).collect();
        let log = format!("{}{why}\nknown before: {}\n", self.log, workloads.join(" "));
        std::fs::write(kept.join("log.txt"), log)?;
        Ok(Violation { what: format!("failing {}: {why}", self.machine.kind.word()), kept })
    }
}
