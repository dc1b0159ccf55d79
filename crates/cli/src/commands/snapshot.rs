//! `pmo snapshot`: objects as they are now, under other names.

use crate::alike;
use crate::bytes::human;
use crate::commands::stat::ObjectReport;
use crate::context::Context;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::confirm;
use crate::text::time;
use crate::values::pool;
use clap::Args;
use indelible::{CreateOptions, Pool};
use std::path::PathBuf;
use std::time::SystemTime;

/// Keep objects as they are now, under other names
///
/// It takes no time, whatever the size: an object and its snapshot share the pages that neither has changed. The pool needs
/// a free piece as large as the object, of which only what changes from now on takes space of the file system. A snapshot is read-only;
/// `--writable` makes a copy that can be changed.
///
/// Other processes may go on using the objects. A snapshot has what the last psync left, and those of several objects are of one
/// moment. A process that writes one of them waits for the snapshot when it psyncs next, for some milliseconds at most.
///
/// A snapshot has the addresses of its object, so that pointers in it are right. A process attaches one of the two at a time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo snapshot data.pmo ledger
  pmo snapshot data.pmo ledger --as before-the-upgrade
  pmo snapshot data.pmo ledger index
  pmo snapshot data.pmo ledger --as trial --writable
  pmo cat data.pmo before-the-upgrade > ledger.old
  pmo rm data.pmo before-the-upgrade

JSON: the new object, as `pmo stat` has it; of several objects, a list")]
pub struct Snapshot {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Names of the objects, or of a snapshot of which a copy is made
    #[arg(required = true, value_name = "OBJECT")]
    names: Vec<String>,

    /// Name of the snapshot, if it is one [default: that of the object, `@`, and the time]
    #[arg(long = "as", value_name = "NAME")]
    new: Option<String>,

    /// Make a copy that can be changed, of one object
    #[arg(long, short)]
    writable: bool,

    #[command(flatten)]
    key: KeyArgs,
}

pub fn run(context: &Context, args: &Snapshot) -> Result {
    let several = args.names.len() > 1;
    if several && (args.writable || args.new.is_some()) {
        let option = if args.writable { "--writable" } else { "--as" };
        return Err(Failure::usage(&format!("{option} is for one object: name one, or leave it out")));
    }
    let key = args.key.read()?;
    let pool = context.open(&args.pool)?;
    let new = args.new.clone().map_or_else(|| free_names(&pool, &args.names), |name| vec![name]);
    let pairs: Vec<_> =
        args.names.iter().zip(&new).map(|(name, new)| (name.as_str(), new.as_str())).collect();
    let made = match (args.writable, pairs.first()) {
        (true, Some((name, new))) => pool.create_from(name, new, &key, &CreateOptions::new(0)),
        _ => pool.snapshot_all(&pairs, &key),
    };
    made.map_err(|error| alike::explain(&pool, &args.names[0], error))?;
    let mut reports = Vec::new();
    for name in &new {
        alike::warn(&pool, name);
        reports.push(ObjectReport::of(&pool.stat(name)?));
    }
    let kind = if args.writable { "copied" } else { "kept" };
    let line = |(name, report): (&String, &ObjectReport)| {
        format!("{kind} {} as {}: {}", object(name), object(&report.name), human(report.size))
    };
    if several {
        return confirm(context.json, &reports, |reports, out| {
            args.names.iter().zip(reports).try_for_each(|pair| out.line(&line(pair)))
        });
    }
    confirm(context.json, &reports.swap_remove(0), |report, out| out.line(&line((&args.names[0], report))))
}

/// Names with the time, and a number behind it if there were snapshots in this second.
fn free_names(pool: &Pool, names: &[String]) -> Vec<String> {
    let now = time(SystemTime::now());
    let mut new: Vec<String> = names.iter().map(|name| format!("{name}@{now}")).collect();
    for number in 2.. {
        if new.iter().all(|name| pool.stat(name).is_err()) {
            break;
        }
        new = names.iter().map(|name| format!("{name}@{now}-{number}")).collect();
    }
    new
}
