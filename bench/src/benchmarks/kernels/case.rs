use crate::Result;
use crate::array_backends::{ArrayBackend, Contestant, Opened, PARTS, Place, Profile, Touched};
use crate::environment::{Environment, Medium};
use crate::kernels::{Crew, Kernel, fingerprint};
use crate::stats::Samples;
use std::time::{Duration, Instant};

pub struct Case {
    pub contestant: &'static Contestant,
    /// Syncs per second; 0: none.
    pub rate: u32,
    pub time: Samples,
    pub steps: Samples,
    pub syncs: Samples,
    pub pages: Samples,
    pub faults: Samples,
    pub parts: [Samples; PARTS.len()],
    pub work: [Samples; 3],
}

pub enum Ran {
    Result(u64),
    Missing(String),
}

impl Case {
    pub fn new(contestant: &'static Contestant, rate: u32) -> Self {
        let samples = Samples::default;
        Case {
            contestant,
            rate,
            time: samples(),
            steps: samples(),
            syncs: samples(),
            pages: samples(),
            faults: samples(),
            parts: Default::default(),
            work: Default::default(),
        }
    }

    pub fn run(
        &mut self,
        environment: &Environment,
        medium: Medium,
        kernel: &dyn Kernel,
        crew: &Crew,
    ) -> Result<Ran> {
        let dir = environment.path(medium, "kernel");
        std::fs::create_dir(&dir)?;
        let lengths = kernel.lengths();
        let mut backend = match (self.contestant.open)(&Place { medium, dir: &dir }, &lengths)? {
            Opened::Ready(backend) => backend,
            Opened::Missing(why) => {
                std::fs::remove_dir_all(&dir)?;
                return Ok(Ran::Missing(why));
            }
        };
        let mut touched: Vec<Touched> = lengths.iter().map(|len| Touched::new(*len)).collect();
        for (touched, len) in touched.iter_mut().zip(&lengths) {
            touched.add(0..*len);
        }
        kernel.fill(&mut backend.arrays());
        backend.sync(&mut touched)?;
        touched.iter_mut().for_each(Touched::clear);
        let before = backend.profile();
        let took = compute(kernel, crew, self.rate, &mut *backend, &mut touched)?;
        let after = backend.profile();
        self.note(environment, &took, before.zip(after).map(|(before, after)| after - before));
        let result = fingerprint(&mut backend.arrays());
        drop(backend);
        std::fs::remove_dir_all(&dir)?;
        Ok(Ran::Result(result))
    }

    fn note(&mut self, environment: &Environment, took: &Took, profile: Option<Profile>) {
        let syncs = took.syncs.max(1) as f64;
        self.time.push(environment.clock.nanos(took.time));
        self.steps.push(environment.clock.nanos(took.time - took.in_syncs));
        self.syncs.push(took.syncs as f64);
        self.pages.push(took.pages as f64 / syncs);
        self.faults.push(took.faults as f64);
        if let Some(profile) = profile {
            for (samples, part) in self.parts.iter_mut().zip(profile.parts) {
                samples.push(part / syncs);
            }
            for (samples, work) in
                self.work.iter_mut().zip([profile.compared, profile.changed, profile.logged])
            {
                samples.push(work / syncs);
            }
        }
    }
}

struct Took {
    time: Duration,
    in_syncs: Duration,
    syncs: u64,
    pages: u64,
    faults: u64,
}

fn compute(
    kernel: &dyn Kernel,
    crew: &Crew,
    rate: u32,
    backend: &mut dyn ArrayBackend,
    touched: &mut [Touched],
) -> Result<Took> {
    let between = Duration::from_secs(1).checked_div(rate);
    let asks = rate > 0 && backend.asks_before();
    let mut took = Took { time: Duration::ZERO, in_syncs: Duration::ZERO, syncs: 0, pages: 0, faults: 0 };
    let faults = faults()?;
    let start = Instant::now();
    let mut last = start;
    for step in 0..kernel.steps() {
        if asks {
            kernel.touches(step, &mut |array, range| backend.before(array, range));
        }
        kernel.step(step, crew, &mut backend.arrays());
        let Some(between) = between else { continue };
        kernel.touches(step, &mut |array, range| touched[array].add(range));
        if last.elapsed() >= between || step + 1 == kernel.steps() {
            took.pages += touched.iter().map(Touched::count).sum::<u64>();
            let (begin, before) = (Instant::now(), self::faults()?);
            backend.sync(touched)?;
            took.faults += self::faults()? - before;
            touched.iter_mut().for_each(Touched::clear);
            took.syncs += 1;
            last = Instant::now();
            took.in_syncs += last - begin;
        }
    }
    took.time = start.elapsed();
    took.faults = self::faults()? - faults - took.faults;
    Ok(took)
}

fn faults() -> Result<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The program's name, in brackets, may contain anything.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    Ok(fields.split_whitespace().nth(7).unwrap_or_default().parse()?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn pages_touched_for_the_first_time_are_faults() {
        let before = super::faults().unwrap();
        // With large pages one fault brings several.
        let pages = vec![1_u8; 64 << 20];
        assert!(std::hint::black_box(&pages)[5] == 1);
        assert!(super::faults().unwrap() - before >= 16);
    }
}
