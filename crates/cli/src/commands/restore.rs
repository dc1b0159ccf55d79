use crate::bytes::human;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::confirm;
use crate::progress;
use crate::text::{count, date};
use crate::values::size;
use clap::Args;
use indelible_backup::{RestoreOptions, newest, restore, restore_objects, restore_stream};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Make a pool from a backup
///
/// The pool is made beside its path and gets its name once every byte was verified and is durable:
/// a backup that is damaged replaces nothing. Objects have their names, IDs, addresses, sizes and
/// keys again, so that pointers in them are right. Copies and snapshots are objects without a base:
/// each takes all of its pages.
///
/// The new pool has an ID of its own, and the addresses of the original: a process can open both,
/// and attaches an object of one of them at a time, unless they get others by --rebase.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo restore /backup/data/ new.pmo          the newest backup in a folder
  pmo restore data.backup data.pmo --force   over a pool that nobody uses
  pmo restore data.backup new.pmo --size 64G
  pmo restore data.backup new.pmo --rebase   to be attached beside the original
  pmo restore data.backup data.pmo --object ledger    one of them, into a pool without
  ssh host cat data.backup | pmo restore - new.pmo

JSON: pool, file (the newest backup, of the folder), id and created (of the backup), objects (names), \
bytes (of pages)")]
pub struct Restore {
    /// The backup: a file, a folder for the newest one in it, or - for standard input
    backup: PathBuf,

    /// The pool to be made; with --object, a pool that exists
    pool: PathBuf,

    /// Size of the pool: a number with K, M, G or T [default: that of the original]
    #[arg(short, long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    size: Option<u64>,

    /// Replace a pool that exists, and that no process uses
    #[arg(short, long)]
    force: bool,

    /// Give the objects other addresses, and change the pointers in them
    ///
    /// A process can then attach objects of both pools at once. The pointers of all objects must be
    /// known: heaps whose roots are described with all that they lead to, and arrays of the package
    /// for Python. If those of one are unknown, nothing is restored.
    #[arg(long)]
    rebase: bool,

    /// ID of the pool, or its first digits, if the folder has backups of several
    #[arg(long, value_name = "ID")]
    pool_id: Option<String>,

    /// Only this object, into a pool that exists and has its address free; may be given several
    /// times
    #[arg(long = "object", short, value_name = "NAME", conflicts_with_all = ["size", "force"])]
    objects: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    pool: PathBuf,
    file: PathBuf,
    id: String,
    created: String,
    objects: Vec<String>,
    bytes: u64,
}

pub fn run(context: &Context, args: &Restore) -> Result {
    let bar = progress::bytes("restoring", Some(0));
    let mut tell = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let stream = args.backup == Path::new("-");
    let from = if stream { args.backup.clone() } else { newest(&args.backup, args.pool_id.as_deref())? };
    let (pool, options) = (&args.pool, &context.options);
    let how = RestoreOptions { len: args.size, force: args.force, rebase: args.rebase };
    let restored = if !args.objects.is_empty() {
        if stream {
            let message = "an object cannot be restored from standard input";
            return Err(Failure::new(Exit::Usage, message, "write the backup to a file first"));
        }
        restore_objects(&from, &context.open(pool)?, &args.objects, args.rebase, &mut tell)?
    } else if stream {
        let (mut input, name) = (std::io::stdin().lock(), Path::new("standard input"));
        restore_stream(&mut input, name, pool, &how, options, &mut tell)?
    } else {
        restore(&from, pool, &how, options, &mut tell)?
    };
    bar.finish_and_clear();
    let kept = restored.kept;
    let report = Report {
        pool: pool.clone(),
        file: kept.path,
        id: kept.id,
        created: date(kept.created),
        objects: restored.objects,
        bytes: restored.bytes,
    };
    confirm(context.json, &report, |report, out| {
        let objects = count(report.objects.len() as u64, "object");
        out.line(&format!(
            "restored {objects} to {} from {}, made {}: {} of pages",
            report.pool.display(),
            report.file.display(),
            report.created,
            human(report.bytes)
        ))
    })
}
