//! The steps of a test run, each a command a person could type.

use crate::{evidence, python, unprivileged};
use std::ffi::OsStr;
use std::process::{Command, ExitStatus};
use std::time::Instant;

pub(crate) type Result<T = ()> = std::result::Result<T, String>;

/// Everything CI runs. A machine that lacks something leaves a step out, and the last lines say so.
pub(crate) fn test(arguments: &[String]) -> Result {
    let require_rig = match arguments {
        [] => false,
        [option] if option == "--require-rig" => true,
        _ => return Err("usage: cargo xtask test [--require-rig]".into()),
    };
    let begin = Instant::now();
    let mut untested = Vec::new();
    quick()?;
    step(
        "protocol faults are caught",
        &["test", "-p", "indelible-store", "--features", "mutants", "--test", "mutants"],
    )?;
    untested.extend(aarch64()?);
    // The feature also makes pieces small that recovery works in, so that a crash meets many of them.
    step(
        "recovery in small pieces",
        &["test", "-p", "indelible-store", "--features", "mutants", "--lib", "--test", "crash_recovery"],
    )?;
    step_with("documentation", &["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])?;
    unprivileged::run()?;
    python::run(&[])?;
    if !power_cut(vec!["--quick".into()])? {
        if require_rig {
            return Err("power cuts have to be tested here (--require-rig), and cannot be".into());
        }
        untested.push("power cuts of emulated machines; why not is said above");
    }
    evidence::layers(false)?;
    untested.extend(benchmarks_run()?);
    println!("\nall steps passed in {:.0} s", begin.elapsed().as_secs_f64());
    untested.iter().for_each(|what| println!("NOT TESTED: {what}"));
    Ok(())
}

/// What a person runs between edits.
pub(crate) fn quick() -> Result {
    step("format", &["fmt", "--all", "--check"])?;
    step("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    step("tests", &["test", "--workspace"])
}

/// What users depend on compiles for the other architecture; only there its assembly is looked at.
///
/// Returns what was not tested.
fn aarch64() -> Result<Option<&'static str>> {
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    let added = Command::new("rustup").args(["target", "add", TARGET]).output();
    if !added.is_ok_and(|output| output.status.success()) {
        return Ok(Some("aarch64, whose standard library could not be installed by rustup"));
    }
    let packages =
        ["-p", "indelible", "-p", "indelible-cli", "-p", "indelible-capi", "-p", "indelible-evidence"];
    step("compiles for aarch64", &[&["check", "--target", TARGET], &packages[..]].concat())?;
    Ok(None)
}

/// Every benchmark once, quickly: that they run and that all results are right, not how fast.
///
/// Returns what was not tested.
fn benchmarks_run() -> Result<Option<&'static str>> {
    const LEAST: u64 = 5 << 30;
    let free = rustix::fs::statvfs("/dev/shm").map_or(0, |stat| stat.f_bavail * stat.f_frsize);
    if free < LEAST {
        return Ok(Some("benchmarks, which need 5 GiB free in /dev/shm"));
    }
    const FIGURES: &str = "target/benchmarks/run.json";
    std::fs::create_dir_all("target/benchmarks").map_err(|error| format!("target/benchmarks: {error}"))?;
    bench(["run", "--all", "--quick", "--json", FIGURES].map(String::from).into())?;
    bench(["report", FIGURES, "--to", "target/benchmarks"].map(String::from).into())?;
    Ok(None)
}

/// Hands over to the benchmark crate.
pub(crate) fn bench(arguments: Vec<String>) -> Result {
    let mut all = vec!["run", "--release", "-p", "indelible-bench", "--"];
    all.extend(arguments.iter().map(String::as_str));
    step("benchmarks", &all)
}

/// Hands over to the rig. `false`: this machine lacks something that could not be installed.
pub(crate) fn power_cut(arguments: Vec<String>) -> Result<bool> {
    const LACKING: i32 = 77;
    let mut all = vec!["run", "--release", "--quiet", "-p", "indelible-rig", "--"];
    all.extend(arguments.iter().map(String::as_str));
    let status = timed("power cuts", &all, &[])?;
    match status.code() {
        Some(0) => Ok(true),
        Some(LACKING) => Ok(false),
        _ => Err("step failed: power cuts".into()),
    }
}

pub(crate) fn step(name: &str, arguments: &[&str]) -> Result {
    step_with(name, arguments, &[])
}

fn step_with(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result {
    let status = timed(name, arguments, environment)?;
    if status.success() { Ok(()) } else { Err(format!("step failed: {name}")) }
}

fn timed(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<ExitStatus> {
    println!("\n== {name}: cargo {}", arguments.join(" "));
    let begin = Instant::now();
    let status = cargo(arguments)
        .envs(environment.iter().copied())
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    println!("== {name}: {:.0} s", begin.elapsed().as_secs_f64());
    Ok(status)
}

/// The cargo that runs this.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}
