use super::WORKLOADS;
use super::watch::idle;
use crate::workloads::program::{Action, Source, Workload, mixed};
use crate::workloads::ring;
use crate::workloads::wire::{Said, Spec};
use crate::workloads::world::{Trouble, Worker, attach, attach_read, patient, read_ring, settle};
use anyhow::Result;
use clap::{Args, ValueEnum};
use indelible::{ErrorKind, Pool, PoolOptions, Severity, Tracking, check};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

pub(super) const GROWTH: u64 = 64 << 10;
pub(super) const GROWTHS: &str = "growths of a pool beside its writers";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Runs workloads until it is killed
    Victim,
    /// Attaches for reading all objects that it can
    Reader,
    Grower,
    /// Recovers all there is and holds it against the model
    Judge,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Child {
    pub(crate) role: Role,
    #[arg(long)]
    pub(crate) pool: PathBuf,
    #[arg(long, default_value = "auto")]
    pub(crate) tracking: String,
    #[arg(long)]
    pub(crate) seed: u64,
    /// Without sparse objects
    #[arg(long)]
    pub(crate) dense: bool,
    /// With snapshots, copies, and objects that go back
    #[arg(long)]
    pub(crate) keeps: bool,
    /// With sealed objects
    #[arg(long)]
    pub(crate) seals: bool,
    /// The workloads' progress so far
    #[arg(long)]
    pub(crate) workload: Vec<Spec>,
    /// Steps before the process waits for its end
    #[arg(long, default_value_t = 100)]
    pub(crate) steps: u64,
    #[arg(long)]
    pub(crate) end: bool,
    /// Address space left to the process once it has the pool open, in KiB
    #[arg(long)]
    pub(crate) tight: Option<u64>,
}

impl Child {
    pub(crate) fn run(&self) -> Result<()> {
        let said = match self.role {
            Role::Victim => self.work(),
            Role::Reader => self.read(),
            Role::Grower => self.lengthen(),
            Role::Judge => self.judge(),
        };
        match said {
            Ok(()) => {}
            Err(Trouble::Wrong(why)) => Said::Wrong { why }.say(),
            Err(trouble) => failed(u32::MAX, &trouble).say(),
        }
        Ok(())
    }

    fn open(&self) -> Result<Pool, Trouble> {
        let tracking = Tracking::WORDS.into_iter().find(|(word, _)| *word == self.tracking);
        let tracking = tracking.map_or(Tracking::Auto, |(_, tracking)| tracking);
        Ok(PoolOptions::new().tracking(tracking).open(&self.pool)?)
    }

    fn source(&self) -> Source {
        Source { seed: self.seed, sparse: !self.dense, keeps: self.keeps, seals: self.seals }
    }

    fn work(&self) -> Result<(), Trouble> {
        let pool = self.open()?;
        let begun = Barrier::new(self.workload.len() + 1);
        thread::scope(|scope| {
            for spec in &self.workload {
                let (pool, begun) = (&pool, &begun);
                scope.spawn(move || {
                    begun.wait();
                    if let Err(trouble) = self.steps(pool, spec) {
                        failed(spec.workload, &trouble).say();
                    }
                });
            }
            if let Some(left) = self.tight {
                limit(left);
            }
            begun.wait();
        });
        if !self.end {
            idle().say();
            loop {
                thread::park();
            }
        }
        Ok(())
    }

    fn steps(&self, pool: &Pool, spec: &Spec) -> Result<(), Trouble> {
        let workload = settle(pool, self.source(), spec)?;
        let last = read_ring(pool, spec.workload, spec.promised)?;
        let number = spec.workload;
        Said::Settled { workload: number, step: workload.step, ring: last }.say();
        let mut worker = Worker::new(pool, workload, last);
        worker.alone = self.tight.is_some();
        let mut promised = last;
        for _ in 0..self.steps {
            let action = worker.workload.next();
            worker.prepare(&action)?;
            if action.word() == "cut" {
                promised = worker.next - 1;
            }
            let step = worker.workload.step + 1;
            Said::Begun { workload: number, step, ring: promised }.say();
            let mut result = worker.perform(&action);
            if let Err(Trouble::Error(error)) = &result
                && error.kind() == ErrorKind::NoSpace
            {
                result = worker.perform(&action);
            }
            result?;
            if let Action::Create { sealed: true, .. } = &action {
                Said::Count { count: 1, what: "sealed objects".into() }.say();
            }
            Said::Done { workload: number, step }.say();
            worker.workload.take(&action);
        }
        Ok(())
    }

    fn read(&self) -> Result<(), Trouble> {
        let pool = self.open()?;
        let mut rng = mixed(self.seed, u64::from(std::process::id()), 0);
        loop {
            let names: Vec<String> = pool.list().filter_map(Result::ok).map(|stat| stat.name).collect();
            let Some(name) = rng.choice(&names) else { continue };
            match attach_read(&pool, name) {
                Ok(object) => {
                    let first = object.as_slice().to_vec();
                    if name.starts_with("ring") {
                        ring::last(object.root::<ring::Numbers>()?)
                            .map_err(|why| Trouble::Wrong(format!("a reader of {name}: {why}")))?;
                    }
                    thread::yield_now();
                    if object.as_slice() != first {
                        return Err(Trouble::Wrong(format!("{name} changed under its reader")));
                    }
                    object.detach()?;
                    Said::Count { count: 1, what: "attachments of readers beside writers".into() }.say();
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::Held | ErrorKind::Busy | ErrorKind::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
            for _ in 0..rng.u32(0..200_000) {
                std::hint::spin_loop();
            }
        }
    }

    fn lengthen(&self) -> Result<(), Trouble> {
        let pool = self.open()?;
        let mut rng = mixed(self.seed, u64::from(std::process::id()), 1);
        for _ in 0..self.steps {
            let length = pool.info()?.length + GROWTH;
            patient(|| pool.grow(length))?;
            Said::Count { count: 1, what: GROWTHS.into() }.say();
            for _ in 0..rng.u32(0..400_000) {
                std::hint::spin_loop();
            }
        }
        idle().say();
        loop {
            thread::park();
        }
    }

    fn judge(&self) -> Result<(), Trouble> {
        check_pool(&self.pool, false)?;
        let pool = self.open()?;
        let mut objects = u64::from(WORKLOADS);
        for spec in &self.workload {
            let mut workload = settle(&pool, self.source(), spec)?;
            let last = read_ring(&pool, spec.workload, spec.promised)?;
            objects += workload.objects.len() as u64;
            self.try_writing(&pool, &mut workload)?;
            Said::Settled { workload: spec.workload, step: workload.step, ring: last }.say();
        }
        let reaped =
            pool.store().reap().map_err(|error| Trouble::Wrong(format!("nothing can be reaped: {error}")))?;
        Said::Count { count: reaped, what: "copies of objects that died growing, removed".into() }.say();
        let found = if self.keeps { pool.list().count() as u64 } else { pool.info()?.objects };
        if found != objects {
            return Err(Trouble::Wrong(format!("{found} objects instead of {objects}")));
        }
        drop(pool);
        check_pool(&self.pool, true)
    }

    fn try_writing(&self, pool: &Pool, workload: &mut Workload) -> Result<(), Trouble> {
        let Some(name) = workload.writable().next() else { return Ok(()) };
        let bytes = &workload.objects[name];
        let object = patient(|| attach(pool, name))?;
        if object.as_slice()[..bytes.len()] != bytes[..] {
            return Err(Trouble::Wrong(format!("{name} differs between a reader and a writer")));
        }
        Ok(object.detach()?)
    }
}

pub(crate) fn check_pool(pool: &Path, recovered: bool) -> Result<(), Trouble> {
    let report = check(pool, &PoolOptions::new(), &mut |_, _| {})?;
    let allowed = if recovered { Severity::Note } else { Severity::Warning };
    let mut bad = report.findings.iter().filter(|finding| finding.severity > allowed);
    match bad.next() {
        None => Ok(()),
        Some(finding) => {
            let when = if recovered { "after" } else { "before" };
            Err(Trouble::Wrong(format!("check {when} recovery: {finding}")))
        }
    }
}

pub(crate) fn failed(workload: u32, trouble: &Trouble) -> Said {
    match trouble {
        Trouble::Wrong(why) => Said::Wrong { why: why.clone() },
        Trouble::Threads(error) => {
            Said::Failed { workload, untouched: false, why: format!("threads: {error}") }
        }
        Trouble::Error(error) => {
            let untouched = matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::NoRoom);
            Said::Failed { workload, untouched, why: format!("{:?}: {error}", error.kind()) }
        }
    }
}

fn limit(kib: u64) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let bytes = pages * 4096 + (kib << 10);
    let _ = setrlimit(Resource::As, Rlimit { current: Some(bytes), maximum: None });
}
