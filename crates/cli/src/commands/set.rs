//! `pmo set`: an attribute of an object.

use crate::alike;
use crate::commands::stat::ObjectReport;
use crate::context::Context;
use crate::failure::{Result, object};
use crate::keys::KeyArgs;
use crate::out::confirm;
use crate::values::pool;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Change an attribute of an object
///
/// A position-independent object holds no pointers, and nothing else that depends on its addresses. So it gets other addresses as it is, by `--rebase` of cp, mv, restore
/// and clone, where an object of which nothing tells its pointers is refused. Nobody checks that. Heaps with described roots and arrays of Python do not need it. Nobody may have the object attached.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo set data.pmo samples --position-independent yes
  pmo cp data.pmo samples trial --rebase     both can be attached by one process

JSON: the object, as `pmo stat` has it")]
pub struct Set {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object
    name: String,

    /// Whether nothing in it depends on its addresses
    #[arg(long, value_name = "yes|no")]
    position_independent: YesNo,

    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum YesNo {
    Yes,
    No,
}

pub fn run(context: &Context, args: &Set) -> Result {
    let key = args.key.read()?;
    let pool = context.open(&args.pool)?;
    let is = args.position_independent == YesNo::Yes;
    let done = pool.set_position_independent(&args.name, &key, is);
    done.map_err(|error| alike::explain(&pool, &args.name, error))?;
    let report = ObjectReport::of(&pool.stat(&args.name)?);
    confirm(context.json, &report, |_, out| {
        let state = if is { "is position-independent" } else { "is taken to depend on its addresses" };
        out.line(&format!("{} {state}", object(&args.name)))
    })
}
