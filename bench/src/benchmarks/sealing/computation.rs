use super::key;
use crate::Result;
use crate::kernels::{Crew, Kernel, fingerprint};
use crate::pattern::PAGE;
use crate::stats::Samples;
use indelible::{
    CreateOptions, MediumModel, Object, Pool, PoolOptions, PredictionDepth, PredictionStats, Traffic,
    psync_all,
};
use std::path::Path;
use std::time::{Duration, Instant};

const BETWEEN: Duration = Duration::from_millis(250);
/// Enhanced memory functions add a hundredth to an attach and to a psync (S3.7).
const HARDWARE: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    Plain,
    /// As plain; attaches and psyncs take a hundredth longer, as by sealing hardware.
    Hardware,
    Sealed(PredictionDepth),
}

impl Way {
    pub fn depth(self) -> Option<PredictionDepth> {
        match self {
            Way::Sealed(depth) => Some(depth),
            Way::Plain | Way::Hardware => None,
        }
    }

    fn time<R>(self, work: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let done = work();
        if self == Way::Hardware {
            let end = begin.elapsed() + begin.elapsed() / HARDWARE;
            while begin.elapsed() < end {
                std::hint::spin_loop();
            }
        }
        done
    }
}

pub struct Computation<'a> {
    pub path: &'a Path,
    pub options: PoolOptions,
    pub way: Way,
    /// The shadow's medium, unless DRAM: a step takes at least its time to move the changed bytes
    /// both ways.
    pub shadow: Option<MediumModel>,
    pub kernel: &'a dyn Kernel,
    pub crew: &'a Crew,
}

#[derive(Default)]
pub struct Outcome {
    pub time: Samples,
    pub faults: u64,
    pub filled: u64,
    pub bytes: f64,
    pub result: u64,
}

impl Computation<'_> {
    fn attach(&self, pool: &Pool, arrays: usize) -> Result<Vec<Object>> {
        let one = |number: usize| -> Result<Object> {
            let name = format!("array-{number}");
            Ok(match self.way {
                Way::Sealed(_) => pool.attach_sealed(&name, b"", &key()?)?,
                Way::Plain | Way::Hardware => pool.attach(&name)?,
            })
        };
        (0..arrays).map(one).collect()
    }

    fn sync(&self, objects: &mut [Object]) -> Result<()> {
        let mut all: Vec<&mut Object> = objects.iter_mut().collect();
        Ok(self.way.time(|| psync_all(&mut all))?)
    }

    pub fn run(&self, outcome: &mut Outcome) -> Result<PredictionStats> {
        let lengths = self.kernel.lengths();
        let room: usize = lengths.iter().sum();
        let options = self.options.clone().force(true);
        let pool = options.format(self.path, (room as u64 * 3).max(256 << 20) + (512 << 20))?;
        for (number, len) in lengths.iter().enumerate() {
            let create = CreateOptions::new(*len as u64);
            let create =
                if self.way.depth().is_some() { create.sealed(&key()?, "benchmark") } else { create };
            pool.create_with(&format!("array-{number}"), &create)?;
        }
        let mut objects = self.attach(&pool, lengths.len())?;
        self.kernel.fill(&mut slices(&mut objects));
        self.sync(&mut objects)?;
        drop(objects);
        let begin = Instant::now();
        let mut objects = self.way.time(|| self.attach(&pool, lengths.len()))?;
        self.steps(&mut objects)?;
        outcome.time.push(begin.elapsed().as_nanos() as f64);
        let stats = counts(&objects);
        (outcome.faults, outcome.filled) = (stats.faults, stats.filled);
        let changed: u64 = objects.iter().map(|object| object.stats().pages_changed).sum();
        outcome.bytes = room as f64 + (changed * PAGE as u64) as f64;
        outcome.result = fingerprint(&mut slices(&mut objects));
        drop(objects);
        drop(pool);
        std::fs::remove_file(self.path)?;
        Ok(stats)
    }

    fn steps(&self, objects: &mut [Object]) -> Result<()> {
        let shadow = self.shadow.map(Traffic::new);
        let mut last = Instant::now();
        for step in 0..self.kernel.steps() {
            let begin = Instant::now();
            self.kernel.step(step, self.crew, &mut slices(objects));
            if let Some(shadow) = &shadow {
                let mut bytes = 0;
                self.kernel.touches(step, &mut |_, range| bytes += range.len() as u64);
                shadow.read(begin, 0, bytes);
                shadow.write(begin, 0, bytes);
            }
            if last.elapsed() >= BETWEEN || step + 1 == self.kernel.steps() {
                self.sync(objects)?;
                last = Instant::now();
            }
        }
        Ok(())
    }
}

fn slices(objects: &mut [Object]) -> Vec<&mut [u8]> {
    objects.iter_mut().map(Object::as_mut_slice).collect()
}

fn counts(objects: &[Object]) -> PredictionStats {
    let mut all = PredictionStats::default();
    for stats in objects.iter().filter_map(Object::prediction) {
        all.faults += stats.faults;
        all.filled += stats.filled;
        all.touched += stats.touched;
        all.predicted += stats.predicted;
        all.used += stats.used;
        all.in_time += stats.in_time;
    }
    all
}
