//! Hostile images: flips every bit of real pools, and replays findings of fuzzing.

use anyhow::{Context, Result, bail};
use clap::Args;
use indelible_record::{Mode, Record};
use indelible_testing::hostile::pool::{Pool, pools, remake};
use indelible_testing::hostile::sweep::{Counts, Outcome, Region, Regions, flip};
use indelible_testing::hostile::{TARGETS, Target};
use indicatif::{ProgressBar, ProgressStyle};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const SHORT: [&str; 2] = ["settled", "waiting"];
/// The short form flips one of so many bits; a prime, to meet every bit of a byte.
const STRIDE: u64 = 211;
const MEMORY: u64 = 6 << 30;
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Args)]
pub(crate) struct Hostile {
    /// Every bit of every pool
    #[arg(long)]
    long: bool,
    /// Only this pool
    #[arg(long)]
    pool: Option<String>,
    /// Seed of the sampling of the short form
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder of the fuzzer's corpora and findings
    #[arg(long, default_value = "fuzz")]
    fuzz: PathBuf,
    /// Make the pools anew, after a change of the format, into this folder; nothing else is done
    #[arg(long, value_name = "FOLDER")]
    remake: Option<PathBuf>,
    /// Write the inputs that fuzzing starts from into the corpora; nothing else is done
    #[arg(long)]
    plant: bool,
}

impl Hostile {
    pub(crate) fn run(&self) -> Result<()> {
        if let Some(folder) = &self.remake {
            return remake()
                .iter()
                .try_for_each(|(name, bytes)| write(&folder.join(format!("{name}.gz")), bytes));
        }
        if self.plant {
            return TARGETS.iter().try_for_each(|target| self.plant(target));
        }
        let limit = Rlimit { current: Some(MEMORY), maximum: getrlimit(Resource::As).maximum };
        setrlimit(Resource::As, limit).context("cannot limit memory")?;
        let begin = Instant::now();
        let mut counts = BTreeMap::new();
        let mut broken = self.replay(&mut counts)?;
        for pool in pools().iter().filter(|pool| self.wants(pool)) {
            broken.extend(self.sweep(pool, &mut counts));
        }
        counts.insert("violations".into(), broken.len() as u64);
        for (what, count) in &counts {
            println!("{what:<48} {count}");
        }
        let mode = if self.long { Mode::Long } else { Mode::Short };
        let command = format!("pmo-evidence hostile{}", if self.long { " --long" } else { "" });
        let seconds = begin.elapsed().as_secs_f64();
        Record { seconds, counts, ..Record::new("hostile", mode, command, self.seed) }.save()?;
        broken.iter().take(20).for_each(|what| eprintln!("{what}"));
        if broken.is_empty() { Ok(()) } else { bail!("{} violations", broken.len()) }
    }

    fn wants(&self, pool: &Pool) -> bool {
        match &self.pool {
            Some(name) => name == pool.name,
            None => self.long || SHORT.contains(&pool.name),
        }
    }

    fn replay(&self, counts: &mut BTreeMap<String, u64>) -> Result<Vec<String>> {
        let mut broken = Vec::new();
        for target in TARGETS {
            let mut inputs: Vec<_> = (target.seeds)()
                .into_iter()
                .enumerate()
                .map(|(at, input)| (format!("seed {at}"), input))
                .collect();
            for kind in ["corpus", "artifacts"] {
                inputs.extend(files(&self.fuzz.join(kind).join(target.name))?);
            }
            counts.insert(format!("inputs replayed, {}", target.name), inputs.len() as u64);
            for (name, input) in inputs {
                if let Err(why) = run(*target, input) {
                    broken.push(format!("{} of {}: {why}", name, target.name));
                }
            }
        }
        Ok(broken)
    }

    fn sweep(&self, pool: &'static Pool, counts: &mut BTreeMap<String, u64>) -> Vec<String> {
        let bits = pool.image.len() as u64 * 8;
        let (stride, first) = if self.long { (1, 0) } else { (STRIDE, self.seed % STRIDE) };
        let bar = bar(bits / stride, format!("bits of {}", pool.name));
        let regions = Regions::of(pool);
        let (next, found) = (AtomicU64::new(0), Mutex::new((Counts::new(), Vec::new())));
        let work = || {
            loop {
                let part = next.fetch_add(1, Ordering::Relaxed) * 64;
                let mut wanted =
                    (part..part + 64).map(|nth| first + nth * stride).filter(|bit| *bit < bits).peekable();
                if wanted.peek().is_none() {
                    break;
                }
                for bit in wanted {
                    let (outcome, what) = flip(pool, &regions, bit / 8, (bit % 8) as u32);
                    let mut found = found.lock().expect("no thread panics while counting");
                    *found.0.entry((regions.at(bit / 8), outcome)).or_insert(0) += 1;
                    if outcome == Outcome::Violation {
                        found.1.push(format!("pool {}: {what}", pool.name));
                    }
                }
                bar.inc(64);
            }
        };
        std::thread::scope(|scope| {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            (0..threads).for_each(|_| _ = scope.spawn(work));
        });
        bar.finish_and_clear();
        let (outcomes, broken) = found.into_inner().expect("no thread panics while counting");
        for ((region, outcome), count) in outcomes {
            *counts.entry(format!("bits flipped, {}, {}", title(region), words(outcome))).or_insert(0) +=
                count;
            *counts.entry("bits flipped".into()).or_insert(0) += count;
        }
        broken
    }

    fn plant(&self, target: &Target) -> Result<()> {
        let folder = self.fuzz.join("corpus").join(target.name);
        let seeds = (target.seeds)();
        seeds
            .iter()
            .enumerate()
            .try_for_each(|(at, input)| write(&folder.join(format!("seed-{at:03}")), input))
    }
}

fn run(target: Target, input: Vec<u8>) -> Result<(), String> {
    let (done, end) = channel();
    let thread = std::thread::spawn(move || {
        (target.run)(&input);
        let _ = done.send(());
    });
    match end.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => Err(format!("has not ended after {} s", PATIENCE.as_secs())),
        _ => thread.join().map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
        }),
    }
}

fn files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        all.push((path.display().to_string(), bytes));
    }
    all.sort();
    Ok(all)
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

fn bar(total: u64, what: String) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {eta}").expect("a template");
    ProgressBar::new(total).with_style(style).with_message(what)
}

fn title(region: Region) -> String {
    match region {
        Region::In(kind) => format!("{kind:?}").to_lowercase(),
        Region::Object => "object data".into(),
        Region::Rest => "between structures".into(),
    }
}

fn words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Harmless => "harmless",
        Outcome::Repaired => "repaired",
        Outcome::Reported => "reported",
        Outcome::Undone => "undone whole, and said",
        Outcome::Mixed => "said, mixed unless checked first",
        Outcome::Unprotected => "unprotected",
        Outcome::Violation => "VIOLATION",
    }
}
