//! A word index over folders of text files that survives being killed at any instant.
//!
//! All of it is one persistent memory object full of plain structures and native pointers (`layout`).
//! Building it psyncs as it goes; a build that dies continues after its last psync. A query attaches
//! the object and follows the pointers.

#![deny(unsafe_code)]

mod arena;
mod build;
mod corpus;
mod demo;
mod index;
mod layout;
mod place;
mod progress;
mod query;
mod reader;
mod stats;
mod text;
mod verify;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Index the words of text files in a persistent memory object, and ask it.
///
/// Exit codes: 0 done; 1 not done, the message says why; 2 wrong usage; 3 the index is damaged or does
/// not say what the files say.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    place: place::Place,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(build::Args),
    Query(query::Args),
    /// What the index holds, and what that costs.
    Stats,
    Verify(verify::Args),
    Demo(demo::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.command {
        Command::Build(args) => build::run(&cli.place, args),
        Command::Query(args) => query::run(&cli.place, args),
        Command::Stats => stats::run(&cli.place),
        Command::Verify(args) => verify::run(&cli.place, args),
        Command::Demo(args) => demo::run(&cli.place, args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("word-index: {}", explain(&error));
            ExitCode::from(if error.is::<arena::Damage>() { 3 } else { 1 })
        }
    }
}

/// The error and its causes, without what was said already.
fn explain(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .reduce(|said, cause| if said.contains(&cause) { said } else { format!("{said}: {cause}") })
        .unwrap_or_default()
}

/// Ends this process as `kill -9` does: nothing of it runs any more.
fn kill_self() -> ! {
    use rustix::process::{Signal, getpid, kill_process};
    let _ = kill_process(getpid(), Signal::KILL);
    unreachable!("SIGKILL cannot be survived");
}
