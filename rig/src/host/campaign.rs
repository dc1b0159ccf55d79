//! All kinds and their controls, on several processors.

use crate::chain::{self, Chain, Course, Violation};
use crate::counts::Counts;
use crate::demand::Demand;
use crate::environment::Environment;
use crate::kind::{Kernel, Kind, Load, Program};
use crate::lines::{self, Changes};
use crate::machine::{self, SIZE, Slot};
use crate::steps::Steps;
use anyhow::{Context, Result, anyhow};
use fastrand::Rng;
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const CHAIN: u64 = 10;
const PATIENCE: u64 = 60;

#[derive(Clone, Copy, Debug)]
struct Task {
    kind: Kind,
    load: Option<Load>,
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Cuts(u64),
    Noticed(&'static str),
}

#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) counts: Counts,
    pub(crate) lines: Changes,
    pub(crate) violations: Vec<Violation>,
    /// Mutant and kind.
    pub(crate) caught: Vec<String>,
    pub(crate) missed: Vec<String>,
}

pub(crate) struct Campaign<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) program: Program,
    pub(crate) cycles: u64,
    pub(crate) seed: u64,
    pub(crate) jobs: usize,
    pub(crate) bar: ProgressBar,
}

impl Campaign<'_> {
    pub(crate) fn run(&self) -> Result<Findings> {
        let scratch = self
            .environment
            .scratch(SIZE * (5 * self.kernels.len() + self.kinds.len() + 2 * self.jobs) as u64)?;
        let found = self.within(&scratch);
        let _ = std::fs::remove_dir_all(&scratch);
        found
    }

    fn within(&self, scratch: &Path) -> Result<Findings> {
        self.bar.set_message("booting");
        let kernels = &self.kernels;
        let states =
            self.spread(kernels, |_, kernel, _| machine::save(self.environment, scratch, *kernel))?;
        let mut findings = Findings::default();
        if self.program == Program::OnDemand {
            self.lines(scratch, &states, &mut findings)?;
        }
        self.bar.set_message("making media");
        let templates = self.spread(&self.kinds, |_, kind, _| {
            let at = kernels.iter().position(|kernel| *kernel == kind.kernel);
            chain::make(self.environment, scratch, *kind, &states[at.context("a kernel of ours")?])
        })?;

        let tasks = self.tasks();
        let cuts = |task: &Task| if let End::Cuts(cuts) = task.end { cuts } else { 0 };
        self.bar.set_length(tasks.iter().map(cuts).sum());
        self.bar.set_message("cutting power");
        let findings = Mutex::new(findings);
        self.spread(&tasks, |worker, task, seed| {
            let slot = Slot::new(scratch, &worker.to_string());
            let found = templates.iter().find(|template| template.kind == task.kind);
            let template = found.context("a kind of ours")?;
            let course: Box<dyn Course> = match task.load {
                None => Box::new(Steps::new(task.kind.kernel, seed)),
                Some(load) => Box::new(Demand::new(load, seed)),
            };
            let (cuts, mutant) = match task.end {
                End::Cuts(cuts) => (cuts, None),
                End::Noticed(mutant) => (PATIENCE, Some(mutant)),
            };
            let chain = Chain::new(self.environment, &slot, template, mutant, course, seed)?;
            let each = || {
                if mutant.is_none() {
                    self.bar.inc(1)
                }
            };
            let result = chain.run(cuts, &each)?;
            let mut findings = lock(&findings);
            let name = mutant.map(|mutant| format!("{mutant} on {}", task.kind));
            match (result, name) {
                (Ok(counts), None) => findings.counts.merge(counts),
                (Err(violation), None) => {
                    self.bar.suspend(|| eprintln!("VIOLATION on {}", violation.what));
                    findings.violations.push(violation);
                }
                (Ok(_), Some(name)) => findings.missed.push(name),
                (Err(violation), Some(name)) => {
                    self.bar.suspend(|| eprintln!("caught {name}: {}", violation.what));
                    findings.caught.push(name);
                }
            }
            Ok(())
        })?;
        let mut findings = findings.into_inner().unwrap_or_default();
        findings.caught.sort();
        findings.missed.sort();
        Ok(findings)
    }

    fn lines(&self, scratch: &Path, states: &[PathBuf], findings: &mut Findings) -> Result<()> {
        self.bar.set_message("changing lines");
        let kernels: Vec<_> = self.kernels.iter().zip(states).collect();
        let changes = self.spread(&kernels, |_, (kernel, state), _| {
            lines::run(self.environment, scratch, **kernel, state)
        })?;
        for changes in changes {
            match changes {
                Ok(Changes { told, detected }) => {
                    findings.lines.told += told;
                    findings.lines.detected += detected;
                }
                Err(violation) => findings.violations.push(violation),
            }
        }
        Ok(())
    }

    fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        for kind in &self.kinds {
            for (mutant, load) in self.program.mutants() {
                tasks.push(Task { kind: *kind, load: *load, end: End::Noticed(mutant) });
            }
        }
        for first in (0..self.cycles).step_by(CHAIN as usize) {
            let end = End::Cuts(CHAIN.min(self.cycles - first));
            for load in self.program.loads() {
                tasks.extend(self.kinds.iter().map(|kind| Task { kind: *kind, load: *load, end }));
            }
        }
        tasks
    }

    /// Returns results in the order of tasks. A task's seed depends on its index only.
    fn spread<T: Sync, R: Send>(
        &self,
        tasks: &[T],
        work: impl Fn(usize, &T, u64) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<(usize, R)>> = Mutex::default();
        let worker = |worker: usize| -> Result<()> {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(task) = tasks.get(at) else { return Ok(()) };
                let seed = Rng::with_seed(self.seed.wrapping_add(at as u64)).u64(..);
                let result =
                    work(worker, task, seed).inspect_err(|_| next.store(tasks.len(), Ordering::Relaxed))?;
                lock(&done).push((at, result));
            }
        };
        std::thread::scope(|scope| {
            let worker = &worker;
            let workers: Vec<_> = (0..self.jobs).map(|number| scope.spawn(move || worker(number))).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().map_err(|_| anyhow!("a worker panicked"))?)
        })?;
        let mut done = done.into_inner().unwrap_or_default();
        done.sort_by_key(|(at, _)| *at);
        Ok(done.into_iter().map(|(_, result)| result).collect())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
