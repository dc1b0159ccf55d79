//! `pmo mv`: another name for an object.

use crate::alike;
use crate::commands::stat::ObjectReport;
use crate::context::Context;
use crate::failure::{Result, object};
use crate::keys::KeyArgs;
use crate::out::show;
use crate::terminal::detail;
use crate::values::pool;
use clap::Args;
use std::path::PathBuf;

/// Give an object another name; everything else about it stays
///
/// The object must not be attached, and the new name must be free: nothing is replaced.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  pmo mv data.pmo counters counters.old

JSON: the object, as `pmo stat` has it")]
pub struct Mv {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name it has
    old: String,

    /// Name it is to have
    new: String,

    #[command(flatten)]
    key: KeyArgs,
}

pub fn run(context: &Context, args: &Mv) -> Result {
    let key = args.key.read()?;
    let pool = context.open(&args.pool)?;
    let renamed = pool.rename(&args.old, &args.new, &key);
    renamed.map_err(|error| alike::explain(&pool, &args.old, error))?;
    alike::warn(&pool, &args.new);
    detail(|| format!("renamed {} to {}", object(&args.old), object(&args.new)));
    if context.json { show(true, &ObjectReport::of(&pool.stat(&args.new)?), |_, _| Ok(())) } else { Ok(()) }
}
