//! `cargo xtask COMMAND`: what CI and people run.

mod beside;
mod book;
mod change;
mod command;
mod deb;
mod drill;
mod durations;
mod evidence;
mod files;
mod fuzz;
mod hung;
mod install;
mod man;
mod nightly;
mod packages;
mod plan;
mod power_cut;
mod programs;
mod protection_keys;
mod python;
mod sdist;
mod selection;
mod suite;
mod test;
mod tools;
mod unprivileged;
mod wheel;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use test::Which;

/// Builds, tests and measures Indelible.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    after_help = "INDELIBLE_SEED=N repeats the random choices of a failed run."
)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Format and all tests, in less than ten minutes; --rest and --all: lints, and everything else
    Test {
        /// Everything: whole sweeps, and the steps that CI leaves out, such as power cuts
        #[arg(long)]
        all: bool,
        /// The steps that CI runs after the tests: lints, Python, an unprivileged user, short
        /// campaigns
        #[arg(long, conflicts_with = "all")]
        rest: bool,
        /// As --all, but fail where the machine lacks what power cuts need
        #[arg(long, conflicts_with = "rest")]
        require_rig: bool,
        /// Only the step with this name, or the steps with this in their names, of all of them
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
    },
    /// The tests once more as an unprivileged user (needs root, and setpriv of util-linux)
    Unprivileged,
    /// The Python package, built and tested in an environment of its own (needs Python 3.11 or
    /// later, and a network once)
    Python {
        /// Passed on to pytest
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// A wheel of the Python package for other machines, with the command pmo in it, looked into
    /// and tried (needs Python 3.11 or later, and a network)
    Wheel {
        /// Folder for it [default: wheels in the target folder]
        #[arg(long)]
        out: Option<PathBuf>,
        /// Architecture, such as aarch64, whose target rustup has [default: this machine's]
        #[arg(long)]
        architecture: Option<String>,
    },
    /// Install pmo, pmo.h, pmo.hpp, libpmo, pkg-config and CMake files, units of systemd, manual
    /// pages
    Install {
        /// Folder to install below
        #[arg(long, default_value = "/usr/local")]
        prefix: PathBuf,
        /// Folder that stands for the root of the machine, for packagers
        #[arg(long)]
        destdir: Option<PathBuf>,
        /// Cargo profile of the library
        #[arg(long, default_value = "release")]
        profile: String,
        /// Only these parts, which are built faster [default: all]
        #[arg(long, value_name = "PART", value_enum)]
        only: Vec<install::Part>,
    },
    /// Packages for Debian, tried in a root of their own (needs dpkg)
    Deb {
        /// Folder for them [default: deb/packages in the target folder]
        #[arg(long)]
        out: Option<PathBuf>,
        /// Cargo profile of the programs
        #[arg(long, default_value = "release")]
        profile: String,
    },
    /// Incidents, from an overwritten superblock to a full disk: each is played, and the printed
    /// advice is followed
    Drill,
    /// Every fuzz target in turn (needs cargo-fuzz, nightly Rust and a network once)
    Fuzz {
        /// Minutes of the targets that work on whole pools; each decoder gets a second per minute
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
        minutes: u64,
        /// Targets at a time
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        jobs: u64,
        /// Only this target, as a run of all would: its counts replace those in the record of the
        /// last such run
        #[arg(long, value_name = "TARGET")]
        only: Option<String>,
    },
    /// Miri, loom, every state of the models of the protocol, AddressSanitizer, ThreadSanitizer
    /// (need nightly Rust and a network once)
    Tools {
        /// Which of them; all if none is named
        #[arg(value_parser = tools::ALL)]
        names: Vec<String>,
    },
    /// Every campaign that tries to break the promise, then the page of their figures (some need
    /// root, QEMU, a network once)
    Evidence {
        /// The long form, which takes hours
        #[arg(long)]
        long: bool,
    },
    /// Power cuts of emulated machines (needs QEMU: installed on Debian 12, as root)
    PowerCut {
        /// Passed on to the rig; --help lists its options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// The pages of the project as one book, in target/book (needs mdBook, or a network once)
    Book,
    /// The benchmarks: run NAME..., report
    Bench {
        /// Passed on to pmo-bench; --help lists its options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

impl Task {
    /// Requirements beyond Rust and a C compiler. The steps of `test` say their own.
    fn needs(&self) -> Option<&'static str> {
        const NIGHTLY: &str = "nightly Rust, which rustup installs once from the network";
        const RIG: &str = "QEMU, which it installs on Debian 12 as root, once, from the network";
        match self {
            Task::Deb { .. } => Some("dpkg, of Debian and its derivatives"),
            Task::Book => Some("mdBook, which cargo installs once from the network"),
            Task::Unprivileged => Some("root, and setpriv (package util-linux)"),
            Task::Python { .. } => Some("Python 3.11 or later and, once, a network"),
            Task::Wheel { .. } => Some(
                "Python 3.11 or later and, once, a network: maturin, zig and auditwheel of Python's registry",
            ),
            Task::Fuzz { .. } => {
                Some("cargo-fuzz, and nightly Rust, which rustup installs once from the network")
            }
            Task::Tools { .. } => Some(NIGHTLY),
            Task::Evidence { long: false } | Task::PowerCut { .. } => Some(RIG),
            Task::Evidence { long: true } => {
                Some("QEMU, which it installs on Debian 12 as root; cargo-fuzz; nightly Rust; a network once")
            }
            Task::Test { .. } | Task::Install { .. } | Task::Drill | Task::Bench { .. } => None,
        }
    }
}

fn main() -> ExitCode {
    let task = Arguments::parse().command;
    if let Some(what) = task.needs() {
        println!("needs {what}");
    }
    let result = match task {
        Task::Test { all, rest, require_rig, only } => {
            let which = match (rest, all || require_rig) {
                (true, _) => Which::Rest,
                (false, true) => Which::All,
                (false, false) => Which::Quick,
            };
            test::run(which, require_rig, only.as_deref())
        }
        Task::Book => book(),
        Task::Unprivileged => unprivileged::run(),
        Task::Python { arguments } => python(&arguments),
        Task::Wheel { out, architecture } => wheel::run(out.as_deref(), architecture.as_deref()),
        Task::Install { prefix, destdir, profile, only } => {
            install::run(&prefix, destdir.as_deref(), &profile, &only)
        }
        Task::Deb { out, profile } => deb::run(out.as_deref(), &profile),
        Task::Drill => drill::run(),
        Task::Fuzz { minutes, jobs, only } => fuzz::run(minutes, jobs as usize, only.as_deref()),
        Task::Tools { names } => tools::run(&names),
        Task::Evidence { long } => evidence::run(long),
        Task::PowerCut { arguments } => power_cuts(&arguments),
        Task::Bench { arguments } => test::bench(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn python(arguments: &[String]) -> command::Result {
    if let plan::Outcome::NotTested(why) = python::run(arguments)? {
        println!("\nNOT TESTED: the Python package: {why}");
    }
    Ok(())
}

fn book() -> command::Result {
    if let plan::Outcome::NotTested(why) = book::run()? {
        println!("\nNOT TESTED: the book: {why}");
    }
    Ok(())
}

fn power_cuts(arguments: &[String]) -> command::Result {
    if power_cut::run(arguments)? { Ok(()) } else { Err("nothing was tested".into()) }
}
