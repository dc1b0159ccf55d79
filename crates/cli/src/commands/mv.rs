//! `pmo mv`: another name for an object.

use crate::context::Context;
use crate::failure::Result;
use crate::keys::KeyArgs;
use clap::Args;
use std::path::PathBuf;

/// Give an object another name; everything else about it stays
///
/// The object must not be attached, and the new name must be free: nothing is replaced.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  pmo mv data.pmo counters counters.old")]
pub struct Mv {
    /// The pool
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
    Ok(context.open(&args.pool)?.rename(&args.old, &args.new, &key)?)
}
