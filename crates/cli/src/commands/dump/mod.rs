mod entry;
mod lanes;
mod superblock;
mod table;

use crate::context::Context;
use crate::failure::Result;
use crate::values::pool;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Show a pool's insides: superblock, table, lanes, the entry of an object
///
/// The fields are those of the format's description. `superblock` works on pools that cannot be
/// opened.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo dump data.pmo                    the superblock
  pmo dump data.pmo lanes              redo logs: who has them, what waits in them
  pmo dump data.pmo object counters
  pmo dump data.pmo table --json

Fields of the JSON follow the format; they change only with the format's version.")]
pub struct Dump {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    #[command(subcommand)]
    action: Option<Action>,
}

/// A part of a pool.
#[derive(Debug, Subcommand)]
enum Action {
    /// Both slots of the superblock, intact or not
    Superblock,
    /// The table's root: counters, trees, free pages
    Table,
    /// The table's lane and those of writers, with the batches in them
    Lanes,
    /// The table entry of one object
    Object {
        /// Its name
        name: String,
    },
}

pub fn run(context: &Context, args: &Dump) -> Result {
    match &args.action {
        None | Some(Action::Superblock) => superblock::run(context, &args.pool),
        Some(Action::Table) => table::run(context, &args.pool),
        Some(Action::Lanes) => lanes::run(context, &args.pool),
        Some(Action::Object { name }) => entry::run(context, &args.pool, name),
    }
}
