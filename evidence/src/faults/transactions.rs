//! Transactions as traced work: after a failed call the process goes on in its pool and reopens it
//! only when poisoned; then it dies with commits in place. No commit is lost or partial.

use super::verify::{expect_sound, failed};
use crate::workloads::program::mixed;
use crate::workloads::wire::Said;
use crate::workloads::world::Trouble;
use anyhow::Result;
use indelible::collections::transactional::TxList;
use indelible::{
    EpochBounds, Error, ErrorKind, Persist, Plain, Pool, PoolOptions, Severity, TxCell, TxHeap, transaction,
};
use std::path::Path;
use std::time::Duration;

const LEN: u64 = 16 << 20;
const SMALL: u64 = 64 << 10;
const STEPS: u64 = 6;
const DETACHED: u64 = 3;
const IN: u64 = 600;
const OUT: u64 = 100;
const NAMES: [&str; 2] = ["first", "second"];
const ROOT: &str = "book";

#[derive(Plain, Persist)]
#[repr(C)]
struct Book {
    steps: TxCell<u64>,
    numbers: TxList<u64>,
}

pub(super) struct Transactions<'a> {
    pub(super) pool: &'a Path,
    pub(super) seed: u64,
    pub(super) class: &'a str,
}

#[derive(Default)]
struct Progress {
    done: u64,
    begun: bool,
    detached: bool,
    failing: bool,
    failed: bool,
}

impl Progress {
    /// A failure may cause one error, and one more as a poisoned pool. Returns whether to reopen.
    fn note(&mut self, error: Error) -> Result<bool, Trouble> {
        failed(&error);
        let poisoned = error.kind() == ErrorKind::Poisoned;
        if self.failed && !(self.failing && poisoned) {
            return Err(Trouble::Error(error));
        }
        (self.failed, self.failing) = (true, true);
        Ok(poisoned)
    }

    fn found(&mut self, steps: u64) -> Result<(), Trouble> {
        if steps != self.done && !(self.begun && steps == self.done + 1) {
            let Progress { done, begun, .. } = self;
            return Err(Trouble::Wrong(format!(
                "after step {done} (next one begun: {begun}) {steps} are there"
            )));
        }
        (self.done, self.begun) = (steps, false);
        Ok(())
    }
}

impl Transactions<'_> {
    fn number(&self, heap: usize, at: u64) -> u64 {
        mixed(self.seed, heap as u64, at).u64(..)
    }

    fn open(&self) -> indelible::Result<(Pool, [TxHeap; 2])> {
        let pool = PoolOptions::new().open_or_format(self.pool, LEN)?;
        pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: u64::MAX });
        let heaps = match self.class {
            "durable" => {
                [pool.transactional_heap(NAMES[0], SMALL)?, pool.transactional_heap(NAMES[1], SMALL)?]
            }
            "on-demand" => [pool.heap_on_demand(NAMES[0], SMALL)?, pool.heap_on_demand(NAMES[1], SMALL)?],
            _ => [pool.heap_on_demand(NAMES[0], SMALL)?, pool.heap_with_on_demand(NAMES[1], SMALL)?],
        };
        for heap in &heaps {
            heap.root_or_default::<Book>(ROOT)?;
        }
        Ok((pool, heaps))
    }

    fn step(&self, heaps: &[TxHeap; 2], step: u64) -> indelible::Result<()> {
        let books = [heaps[0].root::<Book>(ROOT)?, heaps[1].root::<Book>(ROOT)?];
        transaction(&[&heaps[0], &heaps[1]], |tx| {
            for (heap, book) in books.iter().enumerate() {
                for at in (step - 1) * IN..step * IN {
                    book.numbers.push_back(tx, self.number(heap, at))?;
                }
                for _ in 0..OUT {
                    book.numbers.pop_front(tx)?;
                }
                tx.write(&book.steps, step)?;
            }
            Ok::<_, Error>(())
        })?;
        if step.is_multiple_of(2) { heaps.iter().try_for_each(TxHeap::tx_sync) } else { Ok(()) }
    }

    fn found(&self, heaps: &[TxHeap; 2]) -> Result<u64, Trouble> {
        let books = [heaps[0].root::<Book>(ROOT)?, heaps[1].root::<Book>(ROOT)?];
        let found = transaction(&[&heaps[0], &heaps[1]], |tx| {
            let mut found = Vec::new();
            for book in &books {
                found.push((tx.read(&book.steps)?, book.numbers.to_vec(tx)?));
            }
            Ok::<_, Error>(found)
        })?;
        let steps = found[0].0;
        for (heap, (own, numbers)) in found.iter().enumerate() {
            let right = (steps * OUT..steps * IN).map(|at| self.number(heap, at));
            if *own != steps || !right.eq(numbers.iter().copied()) {
                let why = format!(
                    "{} has {} numbers of {own} steps, the first heap has had {steps}",
                    NAMES[heap],
                    numbers.len()
                );
                return Err(Trouble::Wrong(why));
            }
        }
        Ok(steps)
    }

    pub(super) fn work(&self) -> Result<(), Trouble> {
        let mut progress = Progress::default();
        loop {
            match self.open() {
                Ok((pool, heaps)) => {
                    if self.steps(heaps, &mut progress)? {
                        Said::Settled { workload: 0, step: STEPS, ring: 0 }.say();
                        std::mem::forget(pool);
                        let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
                        return Err(Trouble::Wrong("it lives on".into()));
                    }
                }
                Err(error) => _ = progress.note(error)?,
            }
            progress.failing = false;
        }
    }

    fn steps(&self, heaps: [TxHeap; 2], progress: &mut Progress) -> Result<bool, Trouble> {
        loop {
            match self.found(&heaps) {
                Ok(steps) => progress.found(steps)?,
                Err(Trouble::Error(error)) => {
                    if progress.note(error)? {
                        return Ok(false);
                    }
                    continue;
                }
                Err(trouble) => return Err(trouble),
            }
            if progress.done == STEPS {
                std::mem::forget(heaps);
                return Ok(true);
            }
            if progress.done == DETACHED && !progress.detached {
                progress.detached = true;
                for heap in heaps {
                    if let Err(error) = heap.detach() {
                        progress.note(error)?;
                    }
                }
                return Ok(false);
            }
            let step = progress.done + 1;
            Said::Begun { workload: 0, step, ring: 0 }.say();
            progress.begun = true;
            match self.step(&heaps, step) {
                Ok(()) => Said::Done { workload: 0, step }.say(),
                Err(error) => {
                    if progress.note(error)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    pub(super) fn judge(&self, done: u64, begun: bool) -> Result<(), Trouble> {
        if !self.pool.exists() && done == 0 && !begun {
            return Ok(());
        }
        expect_sound(self.pool, Severity::Warning)?;
        let (pool, heaps) = self.open()?;
        Progress { done, begun, ..Progress::default() }.found(self.found(&heaps)?)?;
        for heap in &heaps {
            if done == STEPS && heap.size() <= SMALL as usize {
                return Err(Trouble::Wrong("the heaps did not have to grow".into()));
            }
            if let Some(finding) = heap.check()?.first() {
                return Err(Trouble::Wrong(format!("the heap: {finding:?}")));
            }
        }
        heaps.into_iter().try_for_each(TxHeap::detach)?;
        drop(pool);
        expect_sound(self.pool, Severity::Note)
    }
}
