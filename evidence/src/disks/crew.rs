//! The processes on a machine: victims that are killed, and a judge.

use super::machine::Machine;
use super::{WORKLOADS, interrupted};
use crate::workloads::wire::{Said, Spec};
use anyhow::{Context, Result, bail};
use fastrand::Rng;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const SILENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy)]
pub(crate) struct Crew<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) seed: u64,
    pub(crate) mutant: Option<&'static str>,
}

#[derive(Debug, Default)]
pub(crate) struct Storm {
    pub(crate) said: Vec<Said>,
    pub(crate) killed: u64,
    pub(crate) died: Vec<(i32, String)>,
}

#[derive(Debug)]
pub(crate) enum Verdict {
    Sound,
    Wrong(String),
}

struct Victim {
    child: Child,
    workloads: Vec<u32>,
    lines: usize,
    /// Lines, then idle turns, before the kill.
    death: (usize, u32),
    killed: bool,
}

impl Crew<'_> {
    pub(crate) fn storm(&self, specs: &mut [Spec], rng: &mut Rng, limit: Duration) -> Result<Storm> {
        let disk = &self.machine.disk;
        let mut from = disk.position();
        let mut victims = Vec::new();
        let mut order: Vec<usize> = (0..specs.len()).collect();
        rng.shuffle(&mut order);
        while !order.is_empty() {
            let rest = order.split_off(rng.usize(1..=order.len().min(2)));
            let of_one: Vec<Spec> = order.iter().map(|at| specs[*at]).collect();
            order = rest;
            let steps = rng.u32(20..120).to_string();
            let child = self.child("victim", &of_one, &["--end", "--steps", &steps])?;
            victims.push(Victim {
                child,
                workloads: of_one.iter().map(|spec| spec.workload).collect(),
                lines: 0,
                death: (rng.usize(0..240), rng.u32(0..60_000)),
                killed: false,
            });
        }
        let mut victims = Victims(victims);
        let mut storm = Storm::default();
        let (begin, mut heard) = (Instant::now(), Instant::now());
        while !victims.0.is_empty() {
            let (said, next) = disk.listen(from);
            from = next;
            if !said.is_empty() {
                heard = Instant::now();
            }
            for said in said {
                if let Some(spec) = specs.iter_mut().find(|spec| Some(spec.workload) == said.workload()) {
                    spec.hear(&said);
                }
                let of =
                    |victim: &&mut Victim| said.workload().is_some_and(|one| victim.workloads.contains(&one));
                if let Some(victim) = victims.0.iter_mut().find(of) {
                    victim.lines += 1;
                }
                storm.said.push(said);
            }
            let over = begin.elapsed() > limit || interrupted();
            let mut left = Vec::new();
            for mut victim in victims.0.drain(..) {
                if let Some(status) = victim.child.try_wait()? {
                    storm.ended(status, victim.killed, || self.complaints());
                    continue;
                }
                if !victim.killed && (over || victim.lines >= victim.death.0) {
                    (0..victim.death.1).for_each(|_| std::hint::spin_loop());
                    victim.killed = victim.child.kill().is_ok();
                }
                left.push(victim);
            }
            victims.0 = left;
            if heard.elapsed() > SILENCE {
                bail!("a hang: nothing was said for {SILENCE:?} by {} processes", victims.0.len());
            }
        }
        let (said, _) = disk.listen(from);
        for said in said {
            if let Some(spec) = specs.iter_mut().find(|spec| Some(spec.workload) == said.workload()) {
                spec.hear(&said);
            }
            storm.said.push(said);
        }
        if interrupted() {
            bail!("interrupted");
        }
        Ok(storm)
    }

    pub(crate) fn judge(&self, specs: &mut [Spec]) -> Result<Verdict> {
        let disk = &self.machine.disk;
        let (mut from, mut settled) = (disk.position(), 0);
        let mut judge = Victims(vec![Victim {
            child: self.child("judge", specs, &[])?,
            workloads: Vec::new(),
            lines: 0,
            death: (0, 0),
            killed: false,
        }]);
        let mut wrong = None;
        let mut heard = Instant::now();
        loop {
            let ended = judge.0[0].child.try_wait()?;
            let (said, next) = disk.listen(from);
            from = next;
            if !said.is_empty() {
                heard = Instant::now();
            }
            for said in said {
                match &said {
                    Said::Wrong { why } => wrong = wrong.or(Some(why.clone())),
                    Said::Failed { why, .. } => wrong = wrong.or(Some(format!("the judge failed: {why}"))),
                    Said::Settled { .. } => settled += 1,
                    _ => {}
                }
                if let Some(spec) = specs.iter_mut().find(|spec| Some(spec.workload) == said.workload()) {
                    spec.hear(&said);
                }
            }
            if interrupted() {
                bail!("interrupted");
            }
            let Some(status) = ended else {
                if heard.elapsed() > SILENCE {
                    return Ok(Verdict::Wrong(format!("a hang: the judge said nothing for {SILENCE:?}")));
                }
                continue;
            };
            judge.0.clear();
            let sound = status.success() && settled == WORKLOADS;
            return Ok(match wrong {
                Some(why) => Verdict::Wrong(why),
                None if sound => Verdict::Sound,
                None => Verdict::Wrong(format!("the judge ended by {status}: {}", self.complaints())),
            });
        }
    }

    fn child(&self, role: &str, specs: &[Spec], extra: &[&str]) -> Result<Child> {
        let own = std::env::current_exe().context("this program's own path")?;
        let stderr = fs::File::options().create(true).append(true).open(self.machine.stderr())?;
        let mut command = Command::new(own);
        command.args(["kills-child", role, "--keeps", "--seals", "--seed", &self.seed.to_string()]);
        command.arg("--pool").arg(self.machine.pool());
        for spec in specs {
            command.args(["--workload", &spec.to_string()]);
        }
        if let Some(mutant) = self.mutant
            && role == "victim"
        {
            command.env("INDELIBLE_MUTANT", mutant);
        }
        command.args(extra).stdin(Stdio::null()).stdout(self.machine.said()?).stderr(stderr);
        command.spawn().context("cannot start a process")
    }

    fn complaints(&self) -> String {
        let text = fs::read_to_string(self.machine.stderr()).unwrap_or_default();
        let _ = fs::write(self.machine.stderr(), "");
        text
    }
}

impl Storm {
    fn ended(&mut self, status: ExitStatus, killed: bool, complaints: impl FnOnce() -> String) {
        match (status.signal(), status.code()) {
            (Some(9), _) if killed => self.killed += 1,
            (None, Some(0)) => {}
            (signal, code) => self.died.push((signal.or(code).unwrap_or(0), complaints())),
        }
    }
}

struct Victims(Vec<Victim>);

impl Drop for Victims {
    fn drop(&mut self) {
        for victim in &mut self.0 {
            let _ = victim.child.kill();
            let _ = victim.child.wait();
        }
    }
}
