//! `pmo rm`: objects are destroyed (S0.9).

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::keys::KeyArgs;
use clap::Args;
use std::path::PathBuf;

/// Destroy objects; there is no way back
///
/// Objects that a process has attached are refused. Of several names, those that can be destroyed are;
/// the exit code is that of the first that cannot.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo rm data.pmo counters
  pmo rm data.pmo a b c
  pmo rm data.pmo -- --odd-name")]
pub struct Rm {
    /// The pool
    pool: PathBuf,

    /// Names of the objects
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    key: KeyArgs,
}

pub fn run(context: &Context, args: &Rm) -> Result {
    let key = args.key.read()?;
    let pool = context.open(&args.pool)?;
    let mut first = None;
    for name in &args.names {
        if let Err(error) = pool.destroy_with_key(name, &key) {
            let failure = Failure::from(error);
            failure.report();
            first = first.or(Some(failure.exit()));
        }
    }
    first.map_or(Ok(()), |exit| Err(Failure::Quiet(exit)))
}
