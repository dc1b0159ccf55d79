use crate::bytes::human;
use crate::commands::stat::PoolReport;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::confirm;
use crate::values::{pool, size};
use clap::Args;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Make a pool longer, also while it is in use
///
/// A file becomes longer at its end, which takes up no space before objects need it. A pool on a
/// device is made as long as the device, which must be longer by then. Processes that have the pool
/// open use the new space without being told. A pool becomes no shorter.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo grow data.pmo 4G
  pmo grow /dev/vdb                          as long as the device is now")]
pub struct Grow {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Its new size: a number with K, M, G or T [default: that of the device]
    #[arg(value_parser = size, allow_negative_numbers = true)]
    size: Option<u64>,
}

pub fn run(context: &Context, args: &Grow) -> Result {
    let pool = context.open(&args.pool)?;
    let before = pool.info()?.length;
    let size = match args.size {
        Some(size) => size,
        // The last page is for the superblock's copy, unless the pool has it.
        None if is_device(&args.pool) => pool.store().device().len().saturating_sub(4096).max(before),
        None => {
            let message =
                format!("a pool in a file, {} long, becomes as long as it is told to", human(before));
            return Err(Failure::new(Exit::Usage, message, "give its new size, such as 4G"));
        }
    };
    pool.grow(size)?;
    confirm(context.json, &PoolReport::of(&pool)?, |report, out| {
        out.line(&format!(
            "{} has {}, of which {} are free",
            args.pool.display(),
            human(report.length),
            human(report.free)
        ))
    })
}

fn is_device(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.file_type().is_block_device() || found.file_type().is_char_device())
}
