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
use indelible::{CreateOptions, Keep, Pool};
use serde::Serialize;
use std::path::PathBuf;
use std::time::SystemTime;

/// Keep objects as they are now, under other names
///
/// It takes no time, for any size: an object and its snapshot share the pages that neither has
/// changed. The pool needs a free piece as large as the object, of which only pages that change
/// from now on take space of the file system. A snapshot is read-only; `--writable` makes a copy
/// that can be changed.
///
/// Other processes may go on using the objects. A snapshot has the state of the last psync, and
/// those of several objects are of one moment. A process that writes one of them waits for the
/// snapshot at its next psync, for some milliseconds at most.
///
/// A snapshot has the addresses of its object, so that pointers in it are right. A process attaches
/// one of the two at a time.
///
/// With `--keep`, older snapshots of the objects go afterwards: of those that have the name of the
/// object, `@`, and a time, as this command names them, as many stay as the policy says. It is a
/// list of ages, each with a period: of the snapshots of the last 24 hours the newest of each hour,
/// of the older ones of the last 7 days the newest of each day, for example. Units are s, m, h, d
/// and w; hours and days begin as in UTC. The newest snapshot of all stays, and so does any that a
/// process has attached.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo snapshot data.pmo ledger
  pmo snapshot data.pmo ledger --as before-the-upgrade
  pmo snapshot data.pmo ledger index
  pmo snapshot data.pmo ledger --as trial --writable
  pmo cat data.pmo before-the-upgrade > ledger.old
  pmo rm data.pmo before-the-upgrade
  pmo snapshot data.pmo ledger --keep 24h:1h,7d:1d      every hour, from a timer
  pmo snapshot data.pmo ledger --keep 24h:1h,7d:1d --dry-run

JSON: the new object, as `pmo stat` has it; of several objects, a list. With --keep:
  {\"made\":[\"ledger@2026-11-24T03:00:00Z\"],\"destroyed\":[\"ledger@2026-11-17T02:00:00Z\"]}")]
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

    /// Destroy older snapshots that this command made, but for those that this policy keeps: ages,
    /// each with a period
    #[arg(long, value_name = "AGE:PERIOD,…", conflicts_with_all = ["new", "writable"])]
    keep: Option<Keep>,

    /// Make and destroy nothing, and say which snapshots --keep would destroy if there were no new
    /// one
    #[arg(long, requires = "keep")]
    dry_run: bool,

    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Serialize)]
struct Kept {
    made: Vec<String>,
    destroyed: Vec<String>,
}

pub fn run(context: &Context, args: &Snapshot) -> Result {
    let several = args.names.len() > 1;
    if several && (args.writable || args.new.is_some()) {
        let option = if args.writable { "--writable" } else { "--as" };
        return Err(Failure::usage(&format!("{option} is for one object: name one, or leave it out")));
    }
    let key = args.key.read()?;
    if args.dry_run {
        return would_destroy(context, args);
    }
    let pool = context.open(&args.pool)?;
    let new = match &args.new {
        Some(name) => vec![name.clone()],
        None => free_names(&pool, &args.names),
    };
    let pairs: Vec<_> =
        args.names.iter().zip(&new).map(|(name, new)| (name.as_str(), new.as_str())).collect();
    let made = match (args.writable, pairs.first()) {
        (true, Some((name, new))) => pool.create_from(name, new, &key, &CreateOptions::new(0)),
        _ => pool.snapshot_all(&pairs, &key),
    };
    made.map_err(|error| alike::explain(&pool, &args.names[0], error))?;
    if let Some(keep) = &args.keep {
        return thin(context, args, &pool, keep, new, &key);
    }
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

fn thin(
    context: &Context,
    args: &Snapshot,
    pool: &Pool,
    keep: &Keep,
    made: Vec<String>,
    key: &[u8],
) -> Result {
    let mut destroyed = Vec::new();
    for name in &args.names {
        destroyed.extend(pool.thin(name, keep, key)?);
    }
    confirm(context.json, &Kept { made, destroyed }, |kept, out| {
        for (name, new) in args.names.iter().zip(&kept.made) {
            out.line(&format!("kept {} as {}", object(name), object(new)))?;
        }
        kept.destroyed.iter().try_for_each(|gone| out.line(&format!("destroyed {}", object(gone))))
    })
}

fn would_destroy(context: &Context, args: &Snapshot) -> Result {
    let pool = context.look(&args.pool)?;
    let mut destroyed = Vec::new();
    for name in &args.names {
        let surplus = args.keep.as_ref().map(|keep| pool.surplus(name, keep)).transpose();
        destroyed.extend(surplus.map_err(|error| alike::explain(&pool, name, error))?.unwrap_or_default());
    }
    let nothing = "no snapshot would be destroyed";
    confirm(context.json, &Kept { made: Vec::new(), destroyed }, |kept, out| match &kept.destroyed[..] {
        [] => out.line(nothing),
        all => all.iter().try_for_each(|name| out.line(&format!("would destroy {}", object(name)))),
    })
}

/// Names of this second, numbered behind all that there are: a name that was destroyed may be in
/// the list of a process that is about to destroy it.
fn free_names(pool: &Pool, names: &[String]) -> Vec<String> {
    let now = time(SystemTime::now());
    let new: Vec<String> = names.iter().map(|name| format!("{name}@{now}")).collect();
    let number = |name: &str| {
        let behind = new.iter().find_map(|new| name.strip_prefix(new.as_str()))?;
        if behind.is_empty() { Some(1) } else { behind.strip_prefix('-')?.parse::<u64>().ok() }
    };
    let stems = new.clone();
    let of_this_second = pool.list().named(move |name| stems.iter().any(|stem| name.starts_with(stem)));
    // A damaged entry has no name that could be taken.
    let last = of_this_second.filter_map(|found| number(&found.ok()?.name)).max();
    match last {
        None => new,
        Some(last) => new.iter().map(|name| format!("{name}-{}", last + 1)).collect(),
    }
}
