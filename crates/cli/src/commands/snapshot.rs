//! `pmo snapshot`: an object as it is now, under another name.

use crate::alike;
use crate::bytes::human;
use crate::commands::stat::ObjectReport;
use crate::context::Context;
use crate::failure::{Result, object};
use crate::keys::KeyArgs;
use crate::out::confirm;
use crate::text::time;
use crate::values::pool;
use clap::Args;
use indelible::CreateOptions;
use std::path::PathBuf;
use std::time::SystemTime;

/// Keep an object as it is now, under another name
///
/// It takes no time, whatever the object's size: the object and its snapshot share the pages that neither has changed. The pool needs
/// a free piece as large as the object, of which only what changes from now on takes space of the file system. A snapshot is read-only;
/// `--writable` makes a copy that can be changed. The object must not be attached.
///
/// A snapshot has the addresses of its object, so that pointers in it are right. A process attaches one of the two at a time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo snapshot data.pmo ledger
  pmo snapshot data.pmo ledger before-the-upgrade
  pmo snapshot data.pmo ledger trial --writable
  pmo cat data.pmo before-the-upgrade > ledger.old
  pmo rm data.pmo before-the-upgrade

JSON: the new object, as `pmo stat` has it")]
pub struct Snapshot {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object, or of a snapshot of which a copy is made
    name: String,

    /// Name of the snapshot [default: that of the object, `@`, and the time]
    new: Option<String>,

    /// Make a copy that can be changed
    #[arg(long, short)]
    writable: bool,

    #[command(flatten)]
    key: KeyArgs,
}

pub fn run(context: &Context, args: &Snapshot) -> Result {
    let key = args.key.read()?;
    let pool = context.open(&args.pool)?;
    let new = args.new.clone().unwrap_or_else(|| format!("{}@{}", args.name, time(SystemTime::now())));
    let made = match args.writable {
        true => pool.create_from(&args.name, &new, &key, &CreateOptions::new(0)),
        false => pool.snapshot(&args.name, &new, &key),
    };
    made.map_err(|error| alike::explain(&pool, &args.name, error))?;
    alike::warn(&pool, &new);
    let report = ObjectReport::of(&pool.stat(&new)?);
    let kind = if args.writable { "copied" } else { "kept" };
    confirm(context.json, &report, |report, out| {
        out.line(&format!("{kind} {} as {}: {}", object(&args.name), object(&new), human(report.size)))
    })
}
