//! `cargo xtask test`: the steps of a test run, each a command a person could type.

use crate::command::{Result, cargo, step, step_with};
use crate::plan::{self, Outcome, Step};
use crate::{evidence, packages, power_cut, protection_keys, python, selection, suite, unprivileged};
use std::process::Command;

/// The steps of the README's command: from a clean clone within ten minutes on two cores.
const QUICK: &[Step] = &[
    Step::new("format", 2, || done(step("format", &["fmt", "--all", "--check"]))),
    Step::new("tests", 550, suite::run),
    Step::new("examples in documentation", 10, || done(step("doc tests", &["test", "--workspace", "--doc"]))),
];

/// The steps that `--all` adds.
const REST: &[Step] = &[
    Step::new("lints", 60, || {
        done(step("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    }),
    Step::new("protocol faults are caught", 250, || {
        const TESTS: &[&str] = &[
            "--test",
            "main",
            "--test",
            "retention",
            "--test",
            "far",
            "--test",
            "shared",
            "--test",
            "views",
            "mutants",
        ];
        step("mutants", &selection::MUTANTS.of("test", TESTS))?;
        // Programs that a compiler made run on the library, which the test builds with the feature as well.
        step("mutants of libpmo-tm", &selection::MUTANTS_OF_TM.of("test", &["broken_rule"]))?;
        // Not the campaign of mutants: its scenarios are the tests above.
        done(evidence::controls(false))
    }),
    Step::new("engines of sealing", 30, || {
        // The benchmarks alone have the feature, so that no other step runs its test.
        done(step("engines of sealing", &selection::ENGINES.of("test", &["--lib", "seal::cipher"])))
    }),
    Step::new("optional features", 60, || {
        done(step("features", &selection::FEATURES.of("test", &["--test", "features"])))
    }),
    Step::new("ten thousand histories of types", 20, || {
        let test =
            ["test", "--workspace", "--test", "retention", "--", "--ignored", "ten_thousand_generated"];
        done(step("histories of types", &test))
    }),
    Step::new("aarch64", 20, aarch64).needs("rustup, to install the target's standard library"),
    Step::new("documentation", 20, || {
        let warnings = [("RUSTDOCFLAGS", "-D warnings")];
        done(step_with("documentation", &["doc", "--workspace", "--no-deps"], &warnings))
    }),
    Step::new("packages", 120, packages::run)
        .needs("the toolchain of the oldest Rust, or it says that this was not tested"),
    Step::new("dependencies", 5, packages::dependencies)
        .needs("cargo-deny, or it says that this was not tested"),
    Step::new("tests as an unprivileged user", 110, || done(unprivileged::run())).needs("root"),
    // Most of its time it is one emulated processor that works.
    Step::new("power cuts of emulated machines", 200, || power_cuts(false))
        .needs("QEMU, which it installs on Debian 12 as root, once, from the network")
        .beside_the_next(),
    Step::new("Python", 200, || python::run(&[])).needs("Python 3.11 or later and, once, a network"),
    Step::new("protection keys in an emulated machine", 35, protection_keys::run)
        .needs("the emulator and a kernel of the power cuts"),
    Step::new("the least of every benchmark", 155, benchmarks)
        .needs("5 GiB free in /dev/shm")
        .beside_the_next(),
    Step::new("evidence, short", 200, || done(evidence::layers(false)))
        .needs("root for the campaigns that mount file systems; it says which were not tested"),
];

/// Steps to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those of the README's command.
    Quick,
    /// The others.
    Rest,
    All,
}

/// Runs the steps, or of all of them those with `only` in their names.
pub(crate) fn run(which: Which, require_rig: bool, only: Option<&str>) -> Result {
    let mut steps = match (which, only) {
        (Which::Quick, None) => QUICK.to_vec(),
        (Which::Rest, None) => REST.to_vec(),
        _ => [QUICK, REST].concat(),
    };
    if require_rig {
        let rig = steps.iter_mut().find(|step| step.name.starts_with("power cuts"));
        rig.expect("the list has it").run = || power_cuts(true);
    }
    if let Some(name) = only {
        steps.retain(|step| step.name.contains(name));
        if steps.is_empty() {
            return Err(format!("no step has {name:?} in its name"));
        }
    }
    let all = if require_rig { "--require-rig" } else { "--all" };
    // By cargo: steps build the workspace, and with it this program, whose file is another one then.
    plan::run(&steps, &|step| cargo(&["xtask", "test", all, "--only", step]))?;
    if which == Which::Quick && only.is_none() {
        println!("everything else that is tested: cargo xtask test --all");
    }
    Ok(())
}

fn done(result: Result) -> Result<Outcome> {
    result.map(|()| Outcome::Passed)
}

/// The packages that users depend on compile for the other architecture; only there its assembly is looked at.
fn aarch64() -> Result<Outcome> {
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    let added = Command::new("rustup").args(["target", "add", TARGET]).output();
    if !added.is_ok_and(|output| output.status.success()) {
        return Ok(Outcome::NotTested("rustup could not install the standard library".into()));
    }
    let packages =
        ["-p", "indelible", "-p", "indelible-cli", "-p", "indelible-capi", "-p", "indelible-evidence"];
    done(step("compiles for aarch64", &[&["check", "--target", TARGET], &packages[..]].concat()))
}

/// The least of every benchmark: that they run and that all results are right, not how fast.
fn benchmarks() -> Result<Outcome> {
    const LEAST: u64 = 5 << 30;
    let free = rustix::fs::statvfs("/dev/shm").map_or(0, |stat| stat.f_bavail * stat.f_frsize);
    if free < LEAST {
        return Ok(Outcome::NotTested("they need 5 GiB free in /dev/shm".into()));
    }
    const FIGURES: &str = "target/benchmarks/run.json";
    std::fs::create_dir_all("target/benchmarks").map_err(|error| format!("target/benchmarks: {error}"))?;
    // In the profile of the tests, which have built most of it.
    let run = ["run", "--bin", "pmo-bench", "--"];
    step("benchmarks", &[&run[..], &["run", "--all", "--smoke", "--json", FIGURES]].concat())?;
    done(step("their page", &[&run[..], &["report", FIGURES, "--to", "target/benchmarks"]].concat()))
}

/// Hands over to the benchmark crate.
pub(crate) fn bench<S: AsRef<str>>(arguments: &[S]) -> Result {
    let features = ["--features", "indelible-bench/without-integrity"];
    let mut all = vec!["run", "--release", "-p", "indelible-bench"];
    all.extend(features);
    all.push("--");
    all.extend(arguments.iter().map(AsRef::as_ref));
    step("benchmarks", &all)
}

fn power_cuts(required: bool) -> Result<Outcome> {
    // Of one kernel, and of transactions on demand one kind: each form of it takes several processes their time.
    let steps = ["--quick", "--kernel", "6.12"];
    let on_demand = ["--guard", "--quick", "--kernel", "6.12", "--medium", "fsdax"];
    for arguments in [&steps[..], &on_demand] {
        match power_cut::run(arguments)? {
            true => {}
            false if required => {
                return Err("they have to be tested here (--require-rig), and cannot be".into());
            }
            false => return Ok(Outcome::NotTested("why not is said above".into())),
        }
    }
    Ok(Outcome::Passed)
}
