//! `cargo xtask COMMAND`: what CI and people run.

mod evidence;
mod fuzz;
mod install;
mod man;
mod nightly;
mod python;
mod steps;
mod tools;
mod unprivileged;

use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  test [--require-rig]  everything CI runs: format, lints, all tests as this user and as an
              unprivileged one, the protocol faults that tests must catch, the documentation,
              every layer of evidence in its short form. Where the machine lacks what power cuts
              need, the run says so; with --require-rig it fails
  quick       format, lints and tests as this user
  unprivileged  the tests once more as an unprivileged user (as root only)
  python [ARGUMENTS]    the Python package: built, installed, tested in an environment of its own
              under the target folder (python3 with venv; pip gets numpy, pytest and so on)
  install [--prefix P]  pmo.h, pmo.hpp, libpmo, pkg-config and CMake files, manual pages
  fuzz [--minutes N] [--jobs N]  every fuzz target (nightly, cargo-fuzz); 10 minutes in all,
              one target at a time
  tools [NAME...]       miri, loom, address, thread: what checks the code while tests run (nightly)
  evidence [--long]  every campaign that tries to break the promise, then what they counted;
              the long form takes hours
  power-cut ...  cuts the power of emulated machines: cargo run --release -p indelible-rig -- ...
  bench ...   the benchmarks: cargo run --release -p indelible-bench -- ...

Environment: INDELIBLE_SEED=N repeats the random choices of a failed run.
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let result = match arguments.next().as_deref() {
        Some("test") => steps::test(&arguments.collect::<Vec<_>>()),
        Some("quick") => steps::quick(),
        Some("unprivileged") => unprivileged::run(),
        Some("install") => install::run(&arguments.collect::<Vec<_>>()),
        Some("python") => python::run(&arguments.collect::<Vec<_>>()),
        Some("fuzz") => fuzz::run(&arguments.collect::<Vec<_>>()),
        Some("tools") => tools::run(&arguments.collect::<Vec<_>>()),
        Some("evidence") => evidence::run(&arguments.collect::<Vec<_>>()),
        Some("power-cut") => power_cut(arguments.collect()),
        Some("bench") => steps::bench(arguments.collect()),
        Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        other => {
            eprint!(
                "{}{HELP}",
                other.map_or_else(String::new, |word| format!("no such command: {word}\n\n"))
            );
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn power_cut(arguments: Vec<String>) -> steps::Result {
    if steps::power_cut(arguments)? { Ok(()) } else { Err("nothing was tested".into()) }
}
