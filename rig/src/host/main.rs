//! `pmo-rig`: boots Debian kernels in QEMU with an emulated NVDIMM, runs the library, cuts the
//! power at random, and judges the pool on the next machine.

mod campaign;
mod chain;
mod counts;
mod demand;
mod environment;
mod kind;
mod lines;
mod machine;
mod record;
mod steps;

use anyhow::{Result, bail};
use campaign::Campaign;
use clap::{Parser, ValueEnum};
use environment::Environment;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kind::{Kernel, Kind, Medium, Program};
use std::process::ExitCode;
use std::time::Instant;

/// Cuts the power of machines with persistent memory, and judges their pools.
///
/// Boots stock Debian kernels under emulation, with an emulated NVDIMM as a DAX file and as
/// device-DAX. Only lines written back (or streamed) and fenced survive a cut for certain; others
/// by a seed. Deliberately broken writers run beside the sound one, and must be noticed. Missing
/// tools are installed, as root, on first use; if they cannot be, the exit status is 77.
#[derive(Parser)]
#[command(name = "power-cut", bin_name = "cargo xtask power-cut", version)]
pub(crate) struct Arguments {
    /// Cuts of each kernel on each medium [default: 250; with --guard: 40 each, busy, idle, and
    /// without a guard]
    #[arg(long, value_name = "N")]
    cycles: Option<u64>,
    /// Kernel to boot [default: all]
    #[arg(long, default_value = "all", hide_default_value = true)]
    kernel: OneOrAll<Kernel>,
    /// Medium of the pool [default: all]
    #[arg(long, default_value = "all", hide_default_value = true)]
    medium: OneOrAll<Medium>,
    /// Seed of the random choices [default: a random one, which is printed]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Transactions on demand instead, and a guard that a line of a serial port tells that the
    /// power fails
    #[arg(long)]
    guard: bool,
    /// 12 cuts of each kind; with --guard 1 of each form
    #[arg(long, conflicts_with = "cycles")]
    quick: bool,
    /// Machines at a time [default: one per processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Print what was counted as JSON, too
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct OneOrAll<T>(Vec<T>);

impl<T: ValueEnum> std::str::FromStr for OneOrAll<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(OneOrAll(T::value_variants().to_vec())),
            one => Ok(OneOrAll(vec![T::from_str(one, true)?])),
        }
    }
}

/// Exit status if the machine lacks something: nothing was tested.
const LACKING: u8 = 77;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let environment = match Environment::find(&arguments.kernel.0) {
        Ok(environment) => environment,
        Err(error) => {
            eprintln!("NOT TESTED: power cuts of emulated machines: {error:#}");
            return ExitCode::from(LACKING);
        }
    };
    match run(&arguments, &environment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("power-cut: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments, environment: &Environment) -> Result<()> {
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    eprintln!("seed {seed}");
    let begin = Instant::now();
    let bar = bar();
    bar.set_message("building");
    environment.build(&arguments.kernel.0)?;
    let kinds =
        arguments.kernel.0.iter().flat_map(|kernel| {
            arguments.medium.0.iter().map(|medium| Kind { kernel: *kernel, medium: *medium })
        });
    let program = if arguments.guard { Program::OnDemand } else { Program::Steps };
    let (quick, long) = program.cycles();
    let campaign = Campaign {
        environment,
        kernels: arguments.kernel.0.clone(),
        kinds: kinds.collect(),
        program,
        cycles: if arguments.quick { quick } else { arguments.cycles.unwrap_or(long) },
        seed,
        jobs: arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        bar: bar.clone(),
    };
    let findings = campaign.run()?;
    bar.finish_and_clear();
    let record = record::record(&campaign, &findings, begin.elapsed().as_secs_f64());
    record.save()?;
    if arguments.json {
        print!("{}", record.text()?);
    } else {
        record.print();
    }
    for violation in &findings.violations {
        let kept = violation.kept.as_ref().map(|folder| format!(" (kept in {})", folder.display()));
        eprintln!("violation: {}{}", violation.what, kept.unwrap_or_default());
    }
    for mutant in &findings.missed {
        eprintln!("not noticed: {mutant}");
    }
    if !findings.violations.is_empty() || !findings.missed.is_empty() {
        bail!("{} violations, {} mutants missed", findings.violations.len(), findings.missed.len());
    }
    Ok(())
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {elapsed}") {
        bar.set_style(style);
    }
    bar
}
