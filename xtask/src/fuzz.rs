//! `cargo xtask fuzz`: every fuzz target in turn.

use crate::nightly;
use crate::steps::{Result, cargo};
use indelible_record::{Mode, Record, add, build_folder};
use std::process::Command;
use std::time::Instant;

const MINUTES: u64 = 10;

pub(crate) fn run(arguments: &[String]) -> Result {
    let minutes = match arguments {
        [] => MINUTES,
        [option, number] if option == "--minutes" => {
            number.parse().map_err(|_| format!("{number} is not a number of minutes"))?
        }
        _ => return Err("usage: cargo xtask fuzz [--minutes N]".into()),
    };
    nightly::components(&["rust-src"])?;
    let has =
        Command::new("cargo").args(["fuzz", "--version"]).output().is_ok_and(|run| run.status.success());
    if !has {
        return Err("cargo-fuzz is missing: cargo install cargo-fuzz".into());
    }
    let targets = targets()?;
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
    // The store has no unsafe code: AddressSanitizer would cost half the speed and see nothing.
    nightly::watch(nightly::cargo(&["fuzz", "build", "--fuzz-dir", "fuzz", "--sanitizer", "none"]), |_| {})?;
    // Building is not fuzzing.
    let begin = Instant::now();
    let worked = processor_seconds();
    let mode = if minutes >= 60 { Mode::Long } else { Mode::Short };
    let mut record = Record::new("fuzz", mode, format!("cargo xtask fuzz --minutes {minutes}"), 0);
    add(&mut record.counts, "targets", targets.len() as u64);
    let mut crashed = Vec::new();
    for (done, target) in targets.iter().enumerate() {
        let left = (minutes * 60).saturating_sub(begin.elapsed().as_secs()) / (targets.len() - done) as u64;
        println!("\n== {target}: {} of {}, {left} s", done + 1, targets.len());
        let own = work.join("corpus").join(target).display().to_string();
        let committed = format!("fuzz/corpus/{target}");
        std::fs::create_dir_all(&committed).map_err(|error| error.to_string())?;
        let limit = format!("-max_total_time={}", left.max(1));
        let mut command =
            nightly::cargo(&["fuzz", "run", "--fuzz-dir", "fuzz", "--sanitizer", "none", target]);
        command.args([&own, &committed, "--", &limit]);
        command.args([
            "-rss_limit_mb=2048",
            "-timeout=20",
            "-max_len=8192",
            "-print_final_stats=1",
            "-verbosity=0",
        ]);
        let outcome = nightly::watch(command, |line| {
            if let Some(number) = line.strip_prefix("stat::number_of_executed_units:") {
                let number: u64 = number.trim().parse().unwrap_or(0);
                add(&mut record.counts, &format!("inputs, {target}"), number);
                add(&mut record.counts, "inputs", number);
            }
        });
        if outcome.is_err() {
            crashed.push(target.clone());
        }
    }
    add(&mut record.counts, "violations", crashed.len() as u64);
    add(&mut record.counts, "seconds of processor", processor_seconds().saturating_sub(worked));
    record.seconds = begin.elapsed().as_secs_f64();
    record.save().map_err(|error| format!("{error:#}"))?;
    if crashed.is_empty() { Ok(()) } else { Err(format!("found in fuzz/artifacts: {}", crashed.join(", "))) }
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

/// What the children that have ended computed; on a busy machine that is less than the time that passed.
fn processor_seconds() -> u64 {
    const TICKS: u64 = 100;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // cutime and cstime: fields 16 and 17, counted behind the name, which may hold spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(13).take(2);
    fields.map(|field| field.parse::<u64>().unwrap_or(0)).sum::<u64>() / TICKS
}
