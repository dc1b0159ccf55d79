//! The command line of Indelible: `pmo`, and `mkpmo`, which is `pmo format`.
//!
//! A command is a file in `commands`: its arguments, and a function that runs it. The output for programs
//! (`--json`) and the exit statuses are stable.

#![forbid(unsafe_code)]

mod args;
mod bytes;
mod commands;
mod context;
mod exit;
mod failure;
mod glob;
mod keys;
mod out;
mod process;
mod progress;
mod text;

use args::{Cli, MkPmo};
use clap::Parser;
use context::Context;
use failure::Result;
use std::process::ExitCode;

/// Runs `pmo` with the arguments of this process.
#[must_use]
pub fn pmo() -> ExitCode {
    let Cli { global, command } = Cli::parse();
    finish(commands::run(&Context::new(&global), &command))
}

/// Runs `mkpmo` with the arguments of this process.
#[must_use]
pub fn mkpmo() -> ExitCode {
    let MkPmo { global, format } = MkPmo::parse();
    finish(commands::format::run(&Context::new(&global), &format))
}

fn finish(result: Result) -> ExitCode {
    let Err(failure) = result else {
        return ExitCode::SUCCESS;
    };
    failure.report();
    failure.exit().into()
}
