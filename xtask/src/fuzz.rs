//! `cargo xtask fuzz`: every fuzz target in turn.
//!
//! After a fix its target is run alone: its counts and its findings (the files in `fuzz/artifacts`)
//! replace those in the record of all.

use crate::command::{Result, cargo};
use crate::nightly;
use indelible_record::{Mode, Record, add, build_folder, folder};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Targets on whole pools or heaps, whose inputs cost a thousand times a decoder's.
const WHOLE_POOLS: [&str; 5] = ["chain", "check", "damage", "recover", "repair"];

/// `minutes` for whole pools altogether, a second per minute for each decoder; `jobs` targets at a
/// time.
pub(crate) fn run(minutes: u64, jobs: usize, only: Option<&str>) -> Result {
    nightly::components(&["rust-src"])?;
    let has =
        Command::new("cargo").args(["fuzz", "--version"]).output().is_ok_and(|run| run.status.success());
    if !has {
        return Err("cargo-fuzz is missing: cargo install cargo-fuzz".into());
    }
    let all = targets()?;
    let targets = match only {
        None => all,
        Some(only) if all.iter().any(|target| target == only) => vec![only.to_owned()],
        Some(only) => return Err(format!("no fuzz target {only}; there are {}", all.join(", "))),
    };
    let mode = if minutes >= 60 { Mode::Long } else { Mode::Short };
    let mut record = match only {
        None => Record::new("fuzz", mode, format!("cargo xtask fuzz --minutes {minutes}"), 0),
        Some(_) => last(mode)?,
    };
    let work = build_folder().join("fuzz-work");
    let text = work.display().to_string();
    let mut plant =
        cargo(&["run", "--release", "-p", "indelible-evidence", "--", "hostile", "--plant", "--fuzz"]);
    nightly::watch(
        {
            plant.arg(&text);
            plant
        },
        |_| {},
    )?;
    // The store has no unsafe code, and AddressSanitizer ignores memory of objects: it would halve
    // the speed and see nothing.
    nightly::watch(nightly::cargo(&["fuzz", "build", "--fuzz-dir", "fuzz", "--sanitizer", "none"]), |_| {})?;
    let begin = Instant::now();
    let worked = processor_seconds();
    let whole_pool = |target: &String| WHOLE_POOLS.contains(&target.as_str());
    let time =
        |target| if whole_pool(target) { (minutes * 60).div_ceil(WHOLE_POOLS.len() as u64) } else { minutes };
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begun = Instant::now();
                    let outcome = fuzz(target, &work.join("corpus").join(target), time(target));
                    let took = begun.elapsed().as_secs();
                    outcomes.lock().expect("no thread panicked").push((target, took, outcome));
                }
            });
        }
    });
    let mut crashed = Vec::new();
    for (target, took, (inputs, outcome)) in outcomes.into_inner().expect("no thread panicked") {
        record.counts.insert(format!("inputs, {target}"), inputs);
        add(&mut record.counts, "seconds of all targets", took);
        if whole_pool(target) {
            add(&mut record.counts, "seconds of whole pools", took);
        }
        if let Err(error) = outcome {
            crashed.push(format!("{target}: {error}"));
        }
    }
    add(&mut record.counts, "seconds of processor", processor_seconds().saturating_sub(worked));
    record.seconds += begin.elapsed().as_secs_f64();
    sum_up(&mut record)?;
    record.save().map_err(|error| format!("{error:#}"))?;
    if crashed.is_empty() { Ok(()) } else { Err(format!("found in fuzz/artifacts: {}", crashed.join(", "))) }
}

fn last(mode: Mode) -> Result<Record> {
    let records = Record::all(&folder()).unwrap_or_default();
    let last = records.into_iter().find(|record| record.layer == "fuzz" && record.mode == mode);
    last.ok_or_else(|| "one target takes its place in the record of a run of all: run that first".into())
}

fn sum_up(record: &mut Record) -> Result {
    let mut sums = [("inputs", 0), ("inputs of whole pools", 0), ("targets", 0), ("violations", 0)];
    for (name, count) in &record.counts {
        let Some(target) = name.strip_prefix("inputs, ") else { continue };
        let whole = if WHOLE_POOLS.contains(&target) { *count } else { 0 };
        let found = u64::from(has_findings(target)?);
        sums.iter_mut().zip([*count, whole, 1, found]).for_each(|((_, sum), more)| *sum += more);
    }
    record.counts.extend(sums.map(|(name, sum)| (name.to_owned(), sum)));
    Ok(())
}

fn has_findings(target: &str) -> Result<bool> {
    match std::fs::read_dir(format!("fuzz/artifacts/{target}")) {
        Ok(mut found) => Ok(found.next().is_some()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("fuzz/artifacts/{target}: {error}")),
    }
}

fn fuzz(target: &str, corpus: &Path, seconds: u64) -> (u64, Result) {
    println!("\n== {target}: {seconds} s");
    let committed = format!("fuzz/corpus/{target}");
    for folder in [Path::new(&committed), corpus] {
        if let Err(error) = std::fs::create_dir_all(folder) {
            return (0, Err(format!("{}: {error}", folder.display())));
        }
    }
    let mut command = nightly::cargo(&["fuzz", "run", "--fuzz-dir", "fuzz", "--sanitizer", "none", target]);
    command.arg(corpus).args([&committed, "--", &format!("-max_total_time={seconds}")]);
    // Real time passes while a machine is suspended; the image's bound finds endless work sooner.
    command.args(["-timeout=300", "-rss_limit_mb=2048", "-max_len=8192"]);
    command.args(["-print_final_stats=1", "-verbosity=0"]);
    let mut inputs = 0;
    let outcome = nightly::watch(command, |line| {
        if let Some(number) = line.strip_prefix("stat::number_of_executed_units:") {
            inputs = number.trim().parse().unwrap_or(0);
        }
    });
    (inputs, outcome)
}

fn targets() -> Result<Vec<String>> {
    let entries =
        std::fs::read_dir("fuzz/fuzz_targets").map_err(|error| format!("fuzz/fuzz_targets: {error}"))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    if names.is_empty() { Err("no fuzz targets".into()) } else { Ok(names) }
}

/// Processor time of ended children, less than real time on a busy machine.
fn processor_seconds() -> u64 {
    const TICKS: u64 = 100;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // cutime and cstime: fields 16 and 17, counted behind the name, which may contain spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(13).take(2);
    fields.map(|field| field.parse::<u64>().unwrap_or(0)).sum::<u64>() / TICKS
}
