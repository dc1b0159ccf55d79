//! `pmo-evidence`: each command is one layer of evidence for the promise, writes what it counted as a
//! [`Record`](record::Record), and fails if it found a violation.

mod crashes;
mod mutants;
mod record;
mod report;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Tries to break the promise of psync, and counts.
#[derive(Parser)]
#[command(name = "pmo-evidence", version)]
struct Arguments {
    #[command(subcommand)]
    layer: Layer,
}

#[derive(Subcommand)]
enum Layer {
    /// Cuts the power of a simulated medium everywhere in short and in random programs
    Crashes(crashes::Crashes),
    /// Breaks each rule of the protocol on purpose, and says which layer notices
    Mutants(mutants::Mutants),
    /// Prints what the records of all layers say, and renders docs/evidence.md from them
    Report(report::Report),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().layer {
        Layer::Crashes(crashes) => crashes.run(),
        Layer::Mutants(mutants) => mutants.run(),
        Layer::Report(report) => report.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pmo-evidence: {error:#}");
            ExitCode::FAILURE
        }
    }
}
