//! `pmo verify`: whether a backup, and those that it rests on, are as they were written.

use crate::bytes::human;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::show;
use crate::progress;
use crate::text::{count, date};
use clap::Args;
use indelible_backup::{Verified, verify, verify_stream};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Verify a backup, and those that it rests on
///
/// Every byte is read and compared with its hash. No pool is needed, and nothing is written. Damage is named, with
/// the object and the offset in it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo verify /backup/data/                   the newest backup in a folder
  pmo verify data.backup
  ssh host cat data.backup | pmo verify -

JSON: id, pool, created, pool_size, files, bytes (of pages), objects (names), \
damage: a list of file, at (byte of it), what")]
pub struct Verify {
    /// The backup: a file, a folder for the newest one in it, or - for standard input
    backup: PathBuf,
}

#[derive(Debug, Serialize)]
struct Report {
    id: String,
    pool: String,
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
    let found = if args.backup == Path::new("-") {
        verify_stream(&mut std::io::stdin().lock(), Path::new("standard input"), &mut tell)?
    } else {
        verify(&args.backup, &mut tell)?
    };
    bar.finish_and_clear();
    let report = Report::of(found);
    show(context.json, &report, |report, out| {
        for damage in &report.damage {
            out.line(&format!("damaged: {} at byte {}: {}", damage.file.display(), damage.at, damage.what))?;
        }
        let state = if report.damage.is_empty() { "intact" } else { "DAMAGED" };
        out.line(&format!(
            "{state}: {} in {}, {} of pages, made {}",
            count(report.objects.len() as u64, "object"),
            count(report.files.len() as u64, "file"),
            human(report.bytes),
            report.created
        ))
    })?;
    if report.damage.is_empty() { Ok(()) } else { Err(Failure::Quiet(Exit::Damaged)) }
}

impl Report {
    fn of(found: Verified) -> Self {
        let damage = found.damage.into_iter();
        Report {
            id: found.kept.id,
            pool: found.kept.pool,
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
