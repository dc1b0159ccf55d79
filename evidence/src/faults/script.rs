//! Script of the traced process: every operation on a pool, and the continuation after a failure.

use super::verify::{expect_sound, failed};
use crate::workloads::program::{Action, Source, Store, Workload, mixed};
use crate::workloads::wire::Said;
use crate::workloads::world::{Trouble, Worker, differs};
use anyhow::Result;
use indelible::{ErrorKind, Pool, PoolOptions, Severity, Tracking};
use std::path::Path;

const LEN: u64 = 16 << 20;

pub(super) struct Script<'a> {
    pub(super) pool: &'a Path,
    pub(super) tracking: &'a str,
    pub(super) seed: u64,
}

fn script(seed: u64) -> Vec<Action> {
    let name = |object: &str| format!("workload0-{object}");
    let mut step = 0;
    let mut stores = |parts: &[(&str, usize, usize)]| {
        step += 1;
        let mut rng = mixed(seed, 0, step);
        let names: Vec<String> = parts.iter().map(|(object, ..)| name(object)).collect();
        let stores = parts.iter().map(|(object, at, len)| {
            let mut bytes = vec![0; *len];
            rng.fill(&mut bytes);
            Store { name: name(object), at: *at, bytes }
        });
        let stores = stores.collect();
        let mut unique = names;
        unique.dedup();
        Action::Psync { names: unique, stores }
    };
    vec![
        Action::Create { name: name("a"), size: 10_000, sparse: false, sealed: false },
        stores(&[("a", 100, 8), ("a", 5000, 300)]),
        Action::Create { name: name("b"), size: 50_000, sparse: true, sealed: false },
        stores(&[("a", 0, 8), ("b", 0, 8), ("b", 40_000, 5000)]),
        Action::Grow { name: name("a"), size: 90_000 },
        stores(&[("a", 60_000, 20_000)]),
        Action::Checkpoint { name: name("a") },
        stores(&[("a", 60_000, 10)]),
        Action::Reattach { name: name("a") },
        Action::Create { name: name("c"), size: 300 * 4096, sparse: false, sealed: false },
        stores(&[("c", 0, 300 * 4096)]),
        stores(&[("c", 4096, 600_000)]),
        Action::Resize { name: name("b"), size: 5000 },
        stores(&[("b", 4990, 10), ("c", 0, 1)]),
        Action::Destroy { name: name("a") },
        Action::Grow { name: name("b"), size: 30_000 },
        stores(&[("b", 6000, 20)]),
        Action::Resize { name: name("c"), size: 400 * 4096 },
        Action::Reattach { name: name("b") },
        Action::Destroy { name: name("c") },
    ]
}

impl Script<'_> {
    fn options(&self) -> PoolOptions {
        let tracking = Tracking::WORDS.into_iter().find(|(word, _)| *word == self.tracking);
        PoolOptions::new().tracking(tracking.map_or(Tracking::Auto, |(_, tracking)| tracking))
    }

    fn workload(&self) -> Workload {
        Workload::new(Source { seed: self.seed, sparse: true, keeps: false, seals: false }, 0)
    }

    /// A step without space is repeated once; after another error the process starts from the state
    /// on the medium.
    pub(super) fn work(&self) -> Result<(), Trouble> {
        let mut pool = match self.options().format(self.pool, LEN) {
            Ok(pool) => pool,
            Err(error) => {
                failed(&error);
                self.options().open_or_format(self.pool, LEN)?
            }
        };
        let mut workload = self.workload();
        let script = script(self.seed);
        'opened: loop {
            let mut worker = Worker::new(&pool, workload.clone(), 0);
            while let Some(action) = script.get(worker.workload.step as usize) {
                let step = worker.workload.step + 1;
                Said::Begun { workload: 0, step, ring: 0 }.say();
                match attempt(&mut worker, action) {
                    Ok(()) => {}
                    Err(Trouble::Error(error)) => {
                        failed(&error);
                        let before = worker.workload.clone();
                        drop(worker);
                        drop(pool);
                        pool = self.options().open(self.pool)?;
                        workload = settle(&pool, before, action)?;
                        continue 'opened;
                    }
                    Err(trouble) => return Err(trouble),
                }
                Said::Done { workload: 0, step }.say();
                worker.workload.take(action);
            }
            let workload = worker.workload.clone();
            if let Err(trouble) = worker.end() {
                match trouble {
                    Trouble::Error(error) => failed(&error),
                    trouble => return Err(trouble),
                }
            }
            drop(pool);
            Said::Settled { workload: 0, step: workload.step, ring: 0 }.say();
            return Ok(());
        }
    }

    pub(super) fn judge(&self, done: u64, begun: bool) -> Result<(), Trouble> {
        if !self.pool.exists() {
            return match (done, begun) {
                (0, false) => Ok(()),
                _ => Err(Trouble::Wrong("the pool is gone".into())),
            };
        }
        expect_sound(self.pool, Severity::Warning)?;
        let pool = self.options().open(self.pool)?;
        let script = script(self.seed);
        let mut workload = self.workload();
        for action in &script[..done as usize] {
            workload.take(action);
        }
        let next = script.get(done as usize).filter(|_| begun);
        match next {
            Some(action) => workload = settle(&pool, workload, action)?,
            None => {
                if let Some(why) = differs(&pool, &workload)? {
                    return Err(Trouble::Wrong(format!("after step {done}: {why}")));
                }
            }
        }
        let reap = pool.store().reap();
        reap.map_err(|error| Trouble::Wrong(format!("nothing can be reaped: {error}")))?;
        let (found, expected) = (pool.info()?.objects, workload.objects.len() as u64);
        if found != expected {
            return Err(Trouble::Wrong(format!("{found} objects instead of {expected}")));
        }
        drop(pool);
        expect_sound(self.pool, Severity::Note)
    }
}

fn attempt(worker: &mut Worker, action: &Action) -> Result<(), Trouble> {
    let once = |worker: &mut Worker| worker.prepare(action).and_then(|()| worker.perform(action));
    match once(worker) {
        Err(Trouble::Error(error)) if error.kind() == ErrorKind::NoSpace => {
            failed(&error);
            once(worker)
        }
        done => done,
    }
}

fn settle(pool: &Pool, mut workload: Workload, action: &Action) -> Result<Workload, Trouble> {
    let Some(before) = differs(pool, &workload)? else { return Ok(workload) };
    workload.take(action);
    match differs(pool, &workload)? {
        None => Ok(workload),
        Some(after) => Err(Trouble::Wrong(format!(
            "neither before step {} ({}): {before}; nor after it: {after}",
            workload.step,
            action.word()
        ))),
    }
}
