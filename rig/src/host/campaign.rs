//! All kinds, their controls, on several processors.

use crate::chain::{self, Chain, Counts, Violation};
use crate::environment::Environment;
use crate::kind::{Kernel, Kind, MUTANTS};
use crate::machine::{self, SIZE, Slot};
use anyhow::{Context, Result, anyhow};
use fastrand::Rng;
use indicatif::ProgressBar;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cuts that one pool goes through.
const CHAIN: u64 = 10;
/// Cuts after which a broken rule must have been noticed.
const PATIENCE: u64 = 60;

/// A chain to run.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// So many cuts of a sound writer.
    Cuts(Kind, u64),
    /// Cuts of a broken one, until it is noticed.
    Control(Kind, &'static str),
}

/// Results of a campaign.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) counts: Vec<(Kind, Counts)>,
    pub(crate) violations: Vec<Violation>,
    /// Mutant and kind.
    pub(crate) caught: Vec<String>,
    pub(crate) missed: Vec<String>,
}

pub(crate) struct Campaign<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) kinds: Vec<Kind>,
    /// Of each kind.
    pub(crate) cycles: u64,
    pub(crate) seed: u64,
    pub(crate) jobs: usize,
    pub(crate) bar: ProgressBar,
}

impl Campaign<'_> {
    pub(crate) fn run(&self) -> Result<Findings> {
        let scratch = self
            .environment
            .scratch(SIZE * (3 * self.kernels.len() + self.kinds.len() + 2 * self.jobs) as u64)?;
        let found = self.within(&scratch);
        let _ = std::fs::remove_dir_all(&scratch);
        found
    }

    fn within(&self, scratch: &Path) -> Result<Findings> {
        self.bar.set_message("booting");
        let kernels = &self.kernels;
        let states =
            self.spread(kernels, |_, kernel, _| machine::save(self.environment, scratch, *kernel))?;
        self.bar.set_message("making media");
        let templates = self.spread(&self.kinds, |_, kind, _| {
            let at = kernels.iter().position(|kernel| *kernel == kind.kernel);
            chain::make(self.environment, scratch, *kind, &states[at.context("a kernel of ours")?])
        })?;

        let tasks = self.tasks();
        self.bar.set_length(self.cycles * self.kinds.len() as u64);
        self.bar.set_message("cutting power");
        let findings = Mutex::new(Findings {
            counts: self.kinds.iter().map(|kind| (*kind, Counts::default())).collect(),
            ..Findings::default()
        });
        self.spread(&tasks, |worker, task, seed| {
            let slot = Slot::new(scratch, &worker.to_string());
            let (Task::Cuts(kind, _) | Task::Control(kind, _)) = task;
            let found = templates.iter().find(|template| template.kind == *kind);
            let template = found.context("a kind of ours")?;
            match *task {
                Task::Cuts(kind, cuts) => {
                    let chain = Chain::new(self.environment, &slot, template, None, seed)?;
                    let result = chain.run(cuts, &|| self.bar.inc(1))?;
                    let mut findings = lock(&findings);
                    match result {
                        Ok(counts) => {
                            let of_kind = findings.counts.iter_mut().find(|(there, _)| *there == kind);
                            of_kind.into_iter().for_each(|(_, sum)| sum.add(counts));
                        }
                        Err(violation) => {
                            self.bar.suspend(|| eprintln!("VIOLATION on {}", violation.what));
                            findings.violations.push(violation);
                        }
                    }
                }
                Task::Control(kind, mutant) => {
                    let chain = Chain::new(self.environment, &slot, template, Some(mutant), seed)?;
                    let result = chain.run(PATIENCE, &|| {})?;
                    let mut findings = lock(&findings);
                    let name = format!("{mutant} on {kind}");
                    match result {
                        Ok(_) => findings.missed.push(name),
                        Err(violation) => {
                            self.bar.suspend(|| eprintln!("caught {mutant} on {}", violation.what));
                            findings.caught.push(name);
                        }
                    }
                }
            }
            Ok(())
        })?;
        let mut findings = findings.into_inner().unwrap_or_default();
        findings.caught.sort();
        findings.missed.sort();
        Ok(findings)
    }

    fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        for kind in &self.kinds {
            tasks.extend(MUTANTS.map(|mutant| Task::Control(*kind, mutant)));
        }
        for first in (0..self.cycles).step_by(CHAIN as usize) {
            tasks.extend(self.kinds.iter().map(|kind| Task::Cuts(*kind, CHAIN.min(self.cycles - first))));
        }
        tasks
    }

    /// Does each with some worker, and returns what came of it in the order of the tasks; a task's seed depends on
    /// its place only.
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
                // After an error the others need not begin anything.
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
