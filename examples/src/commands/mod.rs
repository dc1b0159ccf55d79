mod build;
mod demo;
mod query;
mod stats;
mod verify;

use crate::index::{Damage, Index};
use crate::place::Place;
use anyhow::{Result, ensure};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use indelible::ReadObject;
use std::process::ExitCode;

/// Index the words of text files in a persistent memory object, and ask it.
///
/// Exit codes: 0 done; 1 not done, the message says why; 2 wrong usage; 3 the index is damaged or
/// does not say what the files say.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(build::Args),
    Query(query::Args),
    /// Content of the index, and its cost in memory.
    Stats,
    Verify(verify::Args),
    Demo(demo::Args),
}

/// The whole program, for one kind of index.
#[must_use]
pub fn run<I: Index>() -> ExitCode {
    let matches = Cli::command().name(I::NAME).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let place = cli.place.of(I::NAME);
    let done = match &cli.command {
        Command::Build(args) => build::run::<I>(&place, args),
        Command::Query(args) => query::run::<I>(&place, args),
        Command::Stats => stats::run::<I>(&place),
        Command::Verify(args) => verify::run::<I>(&place, args),
        Command::Demo(args) => demo::run::<I>(&place, args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {}", I::NAME, explain(&error));
            ExitCode::from(if is_damage(&error) { 3 } else { 1 })
        }
    }
}

fn is_blank(object: &ReadObject) -> bool {
    object.as_slice()[..4096].iter().all(|byte| *byte == 0)
}

fn attach<I: Index>(object: ReadObject) -> Result<I::Attached> {
    ensure!(!is_blank(&object), "the index is empty: `{} build` fills it", I::NAME);
    I::attach(object)
}

fn is_damage(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<indelible::Error>().map(indelible::Error::kind);
    error.is::<Damage>() || kind == Some(indelible::ErrorKind::Damaged)
}

fn explain(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .reduce(|said, cause| if said.contains(&cause) { said } else { format!("{said}: {cause}") })
        .unwrap_or_default()
}
