//! `pmo cp`: a copy of an object, in its pool or in another one.

use crate::alike;
use crate::bytes::human;
use crate::commands::stat::ObjectReport;
use crate::context::Context;
use crate::failure::{Result, object};
use crate::keys::KeyArgs;
use crate::out::confirm;
use crate::progress;
use crate::values::pool;
use clap::Args;
use indelible::CreateOptions;
use std::path::PathBuf;

/// Copy an object, within its pool or to another one
///
/// Within a pool it takes no time, whatever the size: the two share the pages that neither has changed. To another pool, what the last psync left is
/// copied, or what a snapshot holds; pages that hold nothing but zeros take no space there. A process that writes the object goes on.
///
/// The copy has an identity of its own, and the addresses of the object, so that pointers in it are right: a process attaches one of the two at
/// a time. With --rebase it gets addresses of its own, and all pointers in it are changed: that needs a heap whose roots are described with all that they
/// lead to, and is refused otherwise.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo cp data.pmo ledger trial
  pmo cp data.pmo ledger ledger --to /mnt/usb/archive.pmo
  pmo cp data.pmo ledger trial --rebase      both can be attached by one process
  pmo cp data.pmo ledger@2026-11-24T03:00:00Z ledger-then

JSON: the new object, as `pmo stat` has it")]
pub struct Cp {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object, or of a snapshot
    name: String,

    /// Name of the copy
    new: String,

    /// The pool that gets the copy, if it is another one
    #[arg(long, value_name = "POOL", value_parser = pool())]
    to: Option<PathBuf>,

    /// Give the copy other addresses, and change the pointers in it
    #[arg(long)]
    rebase: bool,

    #[command(flatten)]
    key: KeyArgs,
}

pub fn run(context: &Context, args: &Cp) -> Result {
    let key = args.key.read()?;
    let (from, to) = match &args.to {
        None => {
            let pool = context.open(&args.pool)?;
            (pool.clone(), pool)
        }
        Some(to) => (context.open_to_read(&args.pool)?, context.open(to)?),
    };
    let copied = if from.id() == to.id() && !args.rebase {
        from.create_from(&args.name, &args.new, &key, &CreateOptions::new(0))
    } else {
        let bar = progress::bytes("copying", Some(0));
        let tell = &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        };
        let copied = match args.rebase {
            true => from.copy_rebased(&args.name, &key, &to, &args.new, tell),
            false => from.copy_to(&args.name, &key, &to, &args.new, tell),
        };
        bar.finish_and_clear();
        copied
    };
    copied.map_err(|error| alike::explain(&from, &args.name, error))?;
    alike::warn(&to, &args.new);
    let report = ObjectReport::of(&to.stat(&args.new)?);
    confirm(context.json, &report, |report, out| {
        let (name, new) = (object(&args.name), object(&args.new));
        out.line(&format!("copied {name} as {new}: {}", human(report.size)))
    })
}
