//! `pmo recover`: commits on demand of processes that died.

use crate::context::Context;
use crate::failure::Result;
use crate::out::confirm;
use crate::text::count;
use crate::values::pool;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Make durable the commits on demand that processes which died have left in memory
///
/// The next attach of an object does so by itself, and `pmo guard` does as soon as a process dies. Until then, a power cut takes them.
/// Commits of processes that run stay theirs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo recover data.pmo

JSON: {\"recovered\":2}
  recovered: objects whose commits were in memory")]
pub struct Recover {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// The memory of one process, by its number, in hexadecimal digits
    #[arg(long, hide = true, value_parser = number)]
    memory: Option<u64>,
}

fn number(text: &str) -> std::result::Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|error| error.to_string())
}

/// The work done, for programs.
#[derive(Serialize)]
struct Report {
    recovered: u64,
}

pub fn run(context: &Context, args: &Recover) -> Result {
    let pool = context.open(&args.pool)?;
    let recovered = match args.memory {
        Some(number) => pool.recover_memory(number)?,
        None => pool.recover()?,
    };
    confirm(context.json, &Report { recovered }, |report, out| {
        out.line(&format!("{} recovered", count(report.recovered, "object")))
    })
}
