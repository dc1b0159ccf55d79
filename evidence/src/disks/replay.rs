//! A recording, and its images of power cuts.
//!
//! An image has everything up to the last flush, and of later writes what a [`Loss`] lets arrive.
//! Its recovery is recorded and cut again; a state found once is promised.

use super::WORKLOADS;
use super::crew::{Crew, Verdict};
use super::interrupted;
use super::machine::{Kind, Machine};
use super::pages::Pages;
use super::tape::{Event, Loss, durable, hear, write_all, write_some};
use crate::workloads::program::mixed;
use crate::workloads::ring;
use crate::workloads::wire::{Said, Spec};
use anyhow::{Context, Result, bail};
use fastrand::Rng;
use indelible_record::{add, folder};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const POOL: u64 = 32 << 20;
const GENERATIONS: usize = 3;

pub(crate) struct Recording {
    pub(crate) machine: Machine,
    seed: u64,
    rng: Rng,
    tape: Vec<Event>,
    pub(crate) counts: BTreeMap<String, u64>,
    seen: HashSet<(usize, u64)>,
}

#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) what: String,
    pub(crate) kept: PathBuf,
}

pub(crate) fn machine_with_pool(kind: Kind) -> Result<Machine> {
    let machine = Machine::new(kind)?;
    machine.mount()?;
    let status = Command::new(std::env::current_exe()?)
        .args(["disks-child", "--pool"])
        .arg(machine.pool())
        .status()
        .context("cannot start a process")?;
    if !status.success() {
        bail!("no pool on {}", kind.word());
    }
    machine.unmount()?;
    machine.disk.settle();
    Ok(machine)
}

pub(crate) fn make_pool(path: &std::path::Path) -> Result<()> {
    let pool = indelible::Pool::format(path, POOL)?;
    for workload in 0..WORKLOADS {
        pool.create(&ring::name(workload), ring::SIZE)?;
    }
    Ok(())
}

pub(crate) fn all_specs() -> Vec<Spec> {
    (0..WORKLOADS).map(Spec::new).collect()
}

impl Recording {
    pub(crate) fn new(kind: Kind, seed: u64, mutant: Option<&'static str>) -> Result<Recording> {
        let machine = machine_with_pool(kind)?;
        let mut rng = mixed(seed, u64::MAX, 1);
        let (mut specs, mut counts) = (all_specs(), BTreeMap::new());
        machine.mount()?;
        let crew = Crew { machine: &machine, seed, mutant };
        let storms = rng.usize(3..7);
        let mut said = Vec::new();
        for _ in 0..storms {
            let storm = crew.storm(&mut specs, &mut rng, Duration::from_secs(20))?;
            add(&mut counts, "victims killed", storm.killed);
            if let Some((by, why)) = storm.died.first().filter(|_| mutant.is_none()) {
                bail!("a victim died by {by}: {why}");
            }
            said.extend(storm.said);
        }
        for said in &said {
            match said {
                Said::Wrong { why } if mutant.is_none() => bail!("while recording: {why}"),
                Said::Failed { untouched: false, why, .. } if mutant.is_none() => {
                    bail!("while recording: {why}")
                }
                Said::Done { .. } => add(&mut counts, "steps acknowledged", 1),
                _ => {}
            }
        }
        machine.unmount()?;
        let tape = machine.disk.cut();
        machine.disk.show(Pages::default());
        for event in &tape {
            match event {
                Event::Write { data, .. } => {
                    add(&mut counts, "writes recorded", 1);
                    add(&mut counts, "bytes recorded", data.len() as u64);
                }
                Event::Flush => add(&mut counts, "flushes recorded", 1),
                Event::Said(_) => {}
            }
        }
        Ok(Recording { machine, seed, rng, tape, counts, seen: HashSet::new() })
    }

    pub(crate) fn replay(&mut self, times: u64, progress: &dyn Fn() -> bool) -> Result<Option<Violation>> {
        let tape = std::mem::take(&mut self.tape);
        let mut cuts: Vec<usize> = Vec::new();
        let acknowledged: Vec<usize> =
            (0..tape.len()).filter(|at| matches!(tape[*at], Event::Said(Said::Done { .. }))).collect();
        for _ in 0..times {
            let after = acknowledged.get(self.rng.usize(..acknowledged.len().max(1)));
            cuts.push(match after.filter(|_| self.rng.bool()) {
                Some(at) => at + 1,
                None => self.rng.usize(..=tape.len()),
            });
        }
        cuts.sort_unstable();
        let (mut done, mut heard, mut specs) = (0, 0, all_specs());
        for cut in cuts {
            let from = durable(&tape, cut);
            self.machine.disk.with_base(|base| write_all(base, &Pages::default(), &tape[done..from]));
            done = from;
            hear(&mut specs, &tape[heard..cut]);
            heard = cut;
            let mut over = Pages::default();
            let loss = Loss::any(&mut self.rng);
            self.lay(&mut over, &tape[from..cut], loss);
            let known = specs.clone();
            let trail = format!("cut after event {cut} of {}, {loss:?}", tape.len());
            if let Some(violation) = self.image(done, over, known, loss, 1, &trail, progress)? {
                return Ok(Some(violation));
            }
        }
        Ok(None)
    }

    pub(crate) fn replay_lost_flushes(&mut self, images: u64) -> Result<u64> {
        let tape = std::mem::take(&mut self.tape);
        let (mut noticed, mut done) = (0, 0);
        let mut cuts: Vec<usize> = (0..images).map(|_| self.rng.usize(..=tape.len())).collect();
        cuts.sort_unstable();
        for cut in cuts {
            self.machine.disk.with_base(|base| write_all(base, &Pages::default(), &tape[done..cut]));
            done = cut;
            let later = tape.len().min(cut + 400);
            let mut specs = all_specs();
            hear(&mut specs, &tape[..later]);
            self.machine.disk.show(Pages::default());
            if self.machine.mount().is_err() {
                continue;
            }
            let crew = Crew { machine: &self.machine, seed: self.seed, mutant: None };
            let verdict = crew.judge(&mut specs)?;
            self.machine.unmount()?;
            noticed += u64::from(matches!(verdict, Verdict::Wrong(_)));
        }
        Ok(noticed)
    }

    fn lay(&mut self, over: &mut Pages, tape: &[Event], loss: Loss) {
        let (whole, rng) = (self.machine.kind.whole(), &mut self.rng);
        self.machine.disk.with_base(|base| write_some(over, base, tape, loss, whole, rng));
    }

    #[expect(clippy::too_many_arguments, reason = "an image is all of this")]
    fn image(
        &mut self,
        base: usize,
        over: Pages,
        known: Vec<Spec>,
        loss: Loss,
        generation: usize,
        trail: &str,
        progress: &dyn Fn() -> bool,
    ) -> Result<Option<Violation>> {
        if interrupted() {
            bail!("interrupted");
        }
        let print = self.machine.disk.with_base(|pages| over.fingerprint(pages));
        if !self.seen.insert((base, print)) || !progress() {
            return Ok(None);
        }
        let kind = self.machine.kind.word();
        self.machine.disk.show(over.clone());
        self.count(&format!("images, {kind}"));
        self.count(&format!("images, generation {generation}"));
        self.count(&format!("images, {}", loss.word()));
        self.count("images");
        if let Err(error) = self.machine.mount() {
            self.count(&format!("images that {kind} refused to mount"));
            if std::env::var_os("INDELIBLE_DISKS_VERBOSE").is_some() {
                eprintln!("{trail}: {error:#}");
            }
            return Ok(None);
        }
        if self.machine.disk.reads() == 0 {
            bail!("the kernel mounted what it remembered, not the image");
        }
        let mut found = known.clone();
        let crew = Crew { machine: &self.machine, seed: self.seed, mutant: None };
        let verdict = crew.judge(&mut found)?;
        if let Verdict::Wrong(why) = verdict {
            let _ = self.machine.unmount();
            let violation = self.keep(&over, &known, &format!("{kind}: {trail}: {why}"))?;
            return Ok(Some(violation));
        }
        self.machine.unmount()?;
        let under_way = known.iter().filter(|spec| spec.begun).count() as u64;
        add(&mut self.counts, "workloads with a step under way", under_way);
        let finished = known.iter().zip(&found).filter(|(known, found)| found.done > known.done).count();
        add(&mut self.counts, "workloads found after the step under way", finished as u64);
        add(&mut self.counts, "workloads compared with the model", u64::from(WORKLOADS));
        if generation == GENERATIONS || self.rng.u8(..3) != 0 {
            return Ok(None);
        }
        let tape = self.machine.disk.cut();
        for _ in 0..2 {
            let cut = self.rng.usize(..=tape.len());
            let from = durable(&tape, cut);
            let loss = Loss::any(&mut self.rng);
            let mut again = over.clone();
            self.machine.disk.with_base(|base| write_all(&mut again, base, &tape[..from]));
            self.lay(&mut again, &tape[from..cut], loss);
            let mut specs = known.clone();
            hear(&mut specs, &tape[..cut]);
            let trail = format!("{trail}; its recovery cut after event {cut} of {}, {loss:?}", tape.len());
            let violation = self.image(base, again, specs, loss, generation + 1, &trail, progress)?;
            if violation.is_some() {
                return Ok(violation);
            }
        }
        Ok(None)
    }

    fn count(&mut self, what: &str) {
        add(&mut self.counts, what, 1);
    }

    fn keep(&self, over: &Pages, known: &[Spec], what: &str) -> Result<Violation> {
        let kept = folder().join(format!("disks-{}-{}", self.machine.kind.word(), self.seed));
        std::fs::create_dir_all(&kept)?;
        self.machine.disk.save(over, &kept.join("image"))?;
        let workloads: Vec<String> = known.iter().map(|spec| format!("--workload {spec}")).collect();
        let again = format!(
            "mount -o loop image MOUNTED && pmo-evidence kills-child judge --pool MOUNTED/pool.pmo --seed {} {}",
            self.seed,
            workloads.join(" ")
        );
        std::fs::write(kept.join("log.txt"), format!("{what}\n\n{again}\n"))?;
        Ok(Violation { what: what.to_owned(), kept })
    }
}
