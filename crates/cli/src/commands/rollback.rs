use crate::alike;
use crate::bytes::human;
use crate::commands::stat::ObjectReport;
use crate::context::Context;
use crate::failure::{Result, object};
use crate::keys::KeyArgs;
use crate::out::confirm;
use crate::values::pool;
use clap::Args;
use std::path::PathBuf;

/// Return an object to one of its snapshots
///
/// It takes no time, for any size, and no space unless the snapshot is larger than the object. The
/// snapshot stays, and so do all others. Later psyncs of the object are gone, unless another
/// snapshot has them: make one before, if in doubt. The object must be detached.
///
/// A snapshot of a copy of the object (`pmo snapshot --writable`) will do, too: so changes are
/// taken over that were tried out in the copy.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo rollback data.pmo ledger before-the-upgrade
  pmo snapshot data.pmo ledger --as as-it-was
  pmo rollback data.pmo ledger ledger@2026-11-24T03:00:00Z

JSON: the object, as `pmo stat` has it")]
pub struct Rollback {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object
    name: String,

    /// Name of the snapshot
    snapshot: String,

    #[command(flatten)]
    key: KeyArgs,
}

pub fn run(context: &Context, args: &Rollback) -> Result {
    let key = args.key.read()?;
    let pool = context.open(&args.pool)?;
    let done = pool.rollback(&args.name, &args.snapshot, &key);
    done.map_err(|error| alike::explain(&pool, &args.name, error))?;
    let report = ObjectReport::of(&pool.stat(&args.name)?);
    confirm(context.json, &report, |report, out| {
        let (name, snapshot) = (object(&args.name), object(&args.snapshot));
        out.line(&format!("{name} is as {snapshot} has it: {}", human(report.size)))
    })
}
