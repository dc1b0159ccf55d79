//! The steps of a test run, each a command a person could type.

use crate::{evidence, python, unprivileged};
use std::ffi::OsStr;
use std::process::Command;
use std::time::Instant;

pub(crate) type Result<T = ()> = std::result::Result<T, String>;

/// Everything CI runs.
pub(crate) fn test() -> Result {
    let begin = Instant::now();
    quick()?;
    step(
        "protocol faults are caught",
        &["test", "-p", "indelible-store", "--features", "mutants", "--test", "mutants"],
    )?;
    aarch64()?;
    // The feature also makes pieces small that recovery works in, so that a crash meets many of them.
    step(
        "recovery in small pieces",
        &["test", "-p", "indelible-store", "--features", "mutants", "--lib", "--test", "crash_recovery"],
    )?;
    step_with("documentation", &["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])?;
    unprivileged::run()?;
    python::run(&[])?;
    evidence::layers(false)?;
    benchmarks_run()?;
    println!("\nall steps passed in {:.0} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// What a person runs between edits.
pub(crate) fn quick() -> Result {
    step("format", &["fmt", "--all", "--check"])?;
    step("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    step("tests", &["test", "--workspace"])
}

/// What users depend on compiles for the other architecture; only there its assembly is looked at.
fn aarch64() -> Result {
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    let added = Command::new("rustup").args(["target", "add", TARGET]).output();
    if !added.is_ok_and(|output| output.status.success()) {
        println!("\nNOT TESTED: {TARGET}, whose standard library could not be installed by rustup");
        return Ok(());
    }
    step("compiles for aarch64", &["check", "-p", "indelible", "-p", "indelible-cli", "--target", TARGET])
}

/// Every benchmark once, quickly: that they run and that all results are right, not how fast.
fn benchmarks_run() -> Result {
    const MEMORY: &str = "/dev/shm";
    const LEAST: u64 = 5 << 30;
    let free = rustix::fs::statvfs(MEMORY).map_or(0, |stat| stat.f_bavail * stat.f_frsize);
    if free < LEAST {
        println!(
            "\nNOT TESTED: benchmarks, which need {} GiB free in {MEMORY}; there are {free} bytes",
            LEAST >> 30
        );
        return Ok(());
    }
    bench(vec!["run".into(), "--all".into(), "--quick".into()])
}

/// Hands over to the benchmark crate.
pub(crate) fn bench(arguments: Vec<String>) -> Result {
    let mut all = vec!["run", "--release", "-p", "indelible-bench", "--"];
    all.extend(arguments.iter().map(String::as_str));
    step("benchmarks", &all)
}

/// Hands over to the rig.
pub(crate) fn power_cut(arguments: Vec<String>) -> Result {
    let mut all = vec!["run", "--release", "--quiet", "-p", "indelible-rig", "--"];
    all.extend(arguments.iter().map(String::as_str));
    step("power cuts", &all)
}

pub(crate) fn step(name: &str, arguments: &[&str]) -> Result {
    step_with(name, arguments, &[])
}

fn step_with(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result {
    println!("\n== {name}: cargo {}", arguments.join(" "));
    let begin = Instant::now();
    let status = cargo(arguments)
        .envs(environment.iter().copied())
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    println!("== {name}: {:.0} s", begin.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err(format!("step failed: {name}")) }
}

/// The cargo that runs this.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}
