use crate::commands::{self, Command};
use crate::exit::exit_codes;
use crate::global::Global;
use clap::{CommandFactory, Parser};

const FIRST_STEPS: &str = "\
First steps:
  pmo format demo.pmo --size 64M     make a pool, an ordinary file
  pmo create demo.pmo counters 4K    make an object in it, full of zeros
  pmo ls demo.pmo                    see what is there, and who has it
  pmo check demo.pmo                 verify all of it

Where PMO_POOL names a pool, POOL may be left out, or be - where that would be unclear.
`pmo help COMMAND` explains a command, with examples.";

/// Persistent memory objects: format, inspect, check and repair pools
///
/// A pool is one formatted file or device. It holds objects: named pieces of memory that programs
/// attach to their address space, change in place, and make durable with psync, all or nothing.
#[derive(Debug, Parser)]
#[command(
    name = "pmo",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    subcommand_required = true,
    disable_help_subcommand = false,
    after_help = FIRST_STEPS,
    after_long_help = format!("{FIRST_STEPS}\n\n{}", exit_codes())
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,

    #[command(subcommand)]
    pub command: Command,
}

/// Format a pool of persistent memory objects: `pmo format` under a name like mkfs
#[derive(Debug, Parser)]
#[command(name = "mkpmo", version, max_term_width = 100, after_long_help = exit_codes())]
pub struct MkPmo {
    #[command(flatten)]
    pub global: Global,

    #[command(flatten)]
    pub format: commands::format::Format,
}

pub fn command_lines() -> [clap::Command; 2] {
    [Cli::command(), MkPmo::command()]
}
