//! `cargo xtask test`: the steps of a test run, each a command a person could type.

use crate::command::{Result, cargo, step, step_with};
use crate::plan::{self, Outcome, Step};
use crate::{
    book, change, deb, evidence, packages, power_cut, protection_keys, python, sdist, suite, tools,
    unprivileged,
};
use std::process::Command;

/// The steps of the README's command: from a clean clone within ten minutes on two cores.
const QUICK: &[Step] = &[
    Step::new("format", 2, || done(step("format", &["fmt", "--all", "--check"]))),
    Step::new("tests", 550, suite::run),
    Step::new("examples in documentation", 10, || done(step("doc tests", &["test", "--workspace", "--doc"]))),
];

/// The steps that CI adds on each change.
const REST: &[Step] = &[
    Step::new("lints", 60, || {
        done(step("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    }),
    Step::new("models of the protocol", 60, || done(tools::small_models())),
    Step::new("aarch64", 20, aarch64).needs("rustup, to install the target's standard library"),
    Step::new("documentation", 20, || {
        let warnings = [("RUSTDOCFLAGS", "-D warnings")];
        done(step_with("documentation", &["doc", "--workspace", "--no-deps"], &warnings))
    }),
    Step::new("packages are complete", 5, packages::complete),
    Step::new("packages compile", 50, packages::check)
        .needs("the toolchain of the oldest Rust, or it says that this was not tested"),
    Step::new("dependencies", 5, packages::dependencies)
        .needs("cargo-deny, or it says that this was not tested"),
    Step::new("tests as an unprivileged user", 110, || done(unprivileged::run())).needs("root"),
    Step::new("Python", 200, || python::run(&[]))
        .needs("Python 3.11 or later and, once, a network")
        .beside_the_next(),
    Step::new("evidence, short", 200, || done(evidence::short()))
        .needs("root for the campaigns that mount file systems; it says which were not tested"),
];

/// The steps that `--all` adds to those; CI runs those whose subject changed.
const RARE: &[Step] = &[
    Step::new("ten thousand histories of types", 20, || {
        let test =
            ["test", "--workspace", "--test", "retention", "--", "--ignored", "ten_thousand_generated"];
        done(step("histories of types", &test))
    })
    .about(&["crates/indelible/src/retention"]),
    Step::new("images merged under every mutant", 100, || {
        let test =
            ["test", "--workspace", "--bin", "pmo-evidence", "--", "--ignored", "merging_changes_no_verdict"];
        done(step("images merged under every mutant", &test))
    })
    .about(&["crates/testing/src/sim", "evidence/src/crashes/judge.rs"]),
    Step::new("packages compile from their content", 120, packages::unpacked)
        .about(&["xtask/src/packages.rs"])
        .needs("the toolchain of the oldest Rust, or it says that this was not tested"),
    Step::new("Python's source distribution", 240, sdist::tried)
        .about(&["xtask/src/sdist.rs", "crates/python/pyproject.toml", "crates/python/Cargo.toml"])
        .needs("Python 3.11 or later and, once, a network"),
    Step::new("Debian packages", 60, deb::tried)
        .about(&["xtask/src/deb.rs", "xtask/src/install.rs"])
        .needs("dpkg, or it says that this was not tested"),
    Step::new("the book", 20, book::run)
        .about(&["docs/book", "xtask/src/book.rs"])
        .needs("mdBook, or a network once to install it"),
    // Most of its time one emulated processor works.
    Step::new("power cuts of emulated machines", 200, || power_cuts(false))
        .needs("QEMU, which it installs on Debian 12 as root, once, from the network")
        .about(&["rig", "crates/indelible/src/media", "crates/store/src/commit.rs"])
        .beside_the_next(),
    Step::new("the least of every benchmark", 155, benchmarks)
        .about(&["bench"])
        .needs("5 GiB free in /dev/shm"),
    Step::new("protection keys in an emulated machine", 35, protection_keys::run)
        .about(&["crates/indelible/src/protection"])
        .needs("the emulator and a kernel of the power cuts"),
];

/// Steps to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those of the README's command.
    Quick,
    /// The others that CI runs on each change.
    Rest,
    /// Every step.
    All,
}

/// Runs the steps; or, of all of them, the one named `only`, or else those with it in their names.
pub(crate) fn run(which: Which, require_rig: bool, only: Option<&str>) -> Result {
    let mut steps = match (which, only) {
        (Which::Quick, None) => QUICK.to_vec(),
        (Which::Rest, None) => {
            let (changed, others): (Vec<Step>, Vec<Step>) =
                RARE.iter().partition(|step| change::touches(step.subject));
            for step in others {
                println!("left out, as its subject is as in the last complete run: {}", step.name);
            }
            [REST, &changed].concat()
        }
        _ => [QUICK, REST, RARE].concat(),
    };
    if which == Which::All
        && let Some(tests) = steps.iter_mut().find(|step| step.name == "tests")
    {
        tests.run = suite::run_whole;
    }
    if require_rig {
        let rig = steps.iter_mut().find(|step| step.name.starts_with("power cuts"));
        rig.expect("the list has it").run = || power_cuts(true);
    }
    if let Some(name) = only {
        steps = selected(&steps, name);
        if steps.is_empty() {
            return Err(format!("no step has {name:?} in its name"));
        }
    }
    let all = if require_rig { "--require-rig" } else { "--all" };
    // By cargo: steps build the workspace, and with it this program, whose file is another one
    // then.
    plan::run(&steps, &|step| cargo(&["xtask", "test", all, "--only", step]))?;
    if which == Which::All && only.is_none() {
        println!("record this complete run: git rev-parse HEAD > {}", change::RECORD);
    }
    if which == Which::Quick && only.is_none() {
        println!("everything else that is tested: cargo xtask test --all");
    }
    Ok(())
}

/// The step with exactly this name: a step that runs beside another is started by its name, and may
/// start no other. Without one, the steps whose names contain it.
fn selected(steps: &[Step], name: &str) -> Vec<Step> {
    match steps.iter().find(|step| step.name == name) {
        Some(step) => vec![*step],
        None => steps.iter().filter(|step| step.name.contains(name)).copied().collect(),
    }
}

fn done(result: Result) -> Result<Outcome> {
    result.map(|()| Outcome::Passed)
}

/// The packages that users depend on compile for the other architecture; only there its assembly is
/// looked at.
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
    // One kernel, and one kind of transactions on demand: each form of it keeps several processes
    // busy.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_selected_by_its_name_and_no_other_is() {
        let all = [QUICK, REST, RARE].concat();
        for step in &all {
            let names: Vec<_> = selected(&all, step.name).iter().map(|step| step.name).collect();
            assert_eq!(names, [step.name]);
        }
        assert_eq!(selected(&all, "Python").len(), 1);
        assert!(selected(&all, "packages").len() > 1 && selected(&all, "no such step").is_empty());
    }
}
