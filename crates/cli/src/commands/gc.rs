use crate::bytes::human;
use crate::context::Context;
use crate::failure::Result;
use crate::out::confirm;
use crate::progress;
use crate::terminal::note;
use crate::text::count;
use crate::values::pool;
use clap::Args;
use indelible_backup::remove_left_beside;
use serde::Serialize;
use std::path::PathBuf;

/// Give back the space of copies and snapshots that are gone
///
/// A copied object shares pages with its former content until the two are merged: this command
/// merges them wherever nothing else needs the shared pages. It also removes remains of operations
/// that were cut short: in the pool, and files that a restore, clone or backup left beside it.
/// Other processes may use the pool meanwhile; objects that they have attached are merged as far as
/// that disturbs no process.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo rm data.pmo ledger@2026-11-24T03:00:00Z
  pmo gc data.pmo
  pmo gc data.pmo --deleted

JSON: {\"removed\":2,\"copied\":40960,\"freed\":1048576,\"files\":0}
  removed objects had no name; files lay beside the pool; copied and freed are bytes, freed those of the pool that are free now and were not before")]
pub struct Gc {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// The pool that was at this path was deleted, not moved: remove the memory that processes
    /// which died left of its objects on demand
    #[arg(long)]
    deleted: bool,
}

#[derive(Serialize)]
struct Report {
    removed: u64,
    copied: u64,
    freed: u64,
    files: u64,
}

fn remove_leftovers(context: &Context, args: &Gc) -> Result {
    let found = indelible::remove_leftovers(&args.pool)?;
    if found.in_use > 0 {
        note(&format!("not removed, as a process has it: {}", count(found.in_use, "memory file")));
    }
    let report = Report { removed: found.removed, copied: 0, freed: 0, files: 0 };
    confirm(context.json, &report, |report, out| {
        out.line(&format!("{} removed", count(report.removed, "memory file")))
    })
}

pub fn run(context: &Context, args: &Gc) -> Result {
    if args.deleted {
        return remove_leftovers(context, args);
    }
    let pool = context.open(&args.pool)?;
    let before = pool.info()?.free;
    let bar = progress::steps("merging");
    let done = pool.collect(&mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let done = done?;
    let freed = pool.info()?.free.saturating_sub(before);
    let files = remove_left_beside(&args.pool);
    let report = Report { removed: done.removed, copied: done.copied, freed, files };
    confirm(context.json, &report, |report, out| {
        let (removed, copied) = (count(report.removed, "leftover"), human(report.copied));
        out.line(&format!("{} freed: {removed} removed, {copied} copied", human(report.freed)))?;
        match report.files {
            0 => Ok(()),
            files => out.line(&format!("{} beside the pool removed", count(files, "file"))),
        }
    })
}
