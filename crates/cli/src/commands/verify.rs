use crate::bytes::human;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::{Out, show};
use crate::progress;
use crate::text::{count, date};
use clap::Args;
use indelible_backup::{Verified, newest_of_each, verify, verify_stream};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Verify a backup, and those that it rests on
///
/// Every byte is read and compared with its hash. No pool is needed, and nothing is written. Damage
/// is named, with the object and the offset in it. If a folder has backups of several pools, the
/// newest of each is verified.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo verify /backup/data/                   the newest backup in a folder
  pmo verify data.backup
  ssh host cat data.backup | pmo verify -

JSON, of each pool: id, pool, file, created, pool_size, files, bytes (of pages), objects (names), \
damage: a list of file, at (byte of it), what")]
pub struct Verify {
    /// The backup: a file, a folder for the newest one in it, or - for standard input
    backup: PathBuf,

    /// ID of the pool, or its first digits, if the folder has backups of several [default: all of
    /// them]
    #[arg(long, value_name = "ID")]
    pool_id: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    id: String,
    pool: String,
    file: PathBuf,
    created: String,
    pool_size: u64,
    files: Vec<PathBuf>,
    bytes: u64,
    objects: Vec<String>,
    damage: Vec<DamageReport>,
}

#[derive(Debug, Serialize)]
struct DamageReport {
    file: PathBuf,
    at: u64,
    what: String,
}

pub fn run(context: &Context, args: &Verify) -> Result {
    let bar = progress::bytes("verifying", Some(0));
    let mut tell = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let mut reports = Vec::new();
    if args.backup == Path::new("-") {
        let name = Path::new("standard input");
        reports.push(Report::of(verify_stream(&mut std::io::stdin().lock(), name, &mut tell)?));
    } else {
        for path in newest_of_each(&args.backup, args.pool_id.as_deref())? {
            reports.push(Report::of(verify(&path, &mut tell)?));
        }
    }
    bar.finish_and_clear();
    let several = reports.len() > 1;
    for report in &reports {
        show(context.json, report, |report, out| said(report, several, out))?;
    }
    let damaged = reports.iter().any(|report| !report.damage.is_empty());
    if damaged { Err(Failure::Quiet(Exit::Damaged)) } else { Ok(()) }
}

fn said(report: &Report, several: bool, out: &mut Out) -> Result {
    for damage in &report.damage {
        out.line(&format!("damaged: {} at byte {}: {}", damage.file.display(), damage.at, damage.what))?;
    }
    let state = if report.damage.is_empty() { "intact" } else { "DAMAGED" };
    let pool = if several { format!("pool {}: ", report.pool) } else { String::new() };
    out.line(&format!(
        "{pool}{state}: {}: {} in {}, {} of pages, made {}",
        report.file.display(),
        count(report.objects.len() as u64, "object"),
        count(report.files.len() as u64, "file"),
        human(report.bytes),
        report.created
    ))
}

impl Report {
    fn of(found: Verified) -> Self {
        let damage = found.damage.into_iter();
        Report {
            id: found.kept.id,
            pool: found.kept.pool,
            file: found.kept.path,
            created: date(found.kept.created),
            pool_size: found.kept.pool_len,
            files: found.files,
            bytes: found.bytes,
            objects: found.kept.objects.into_iter().map(|object| object.name).collect(),
            damage: damage
                .map(|damage| DamageReport { file: damage.path, at: damage.at, what: damage.what })
                .collect(),
        }
    }
}
