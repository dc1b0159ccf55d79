use crate::bytes::human;
use crate::commands::stat::PoolReport;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::confirm;
use crate::signatures;
use crate::values::size;
use clap::Args;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const DEFAULT: u64 = 1 << 30;

/// Make a pool of a new file, or of a device
///
/// A new file takes up no space before objects need it. A device is used whole; one that has data
/// on it is refused without --force.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo format data.pmo                        a file that can grow to 1 GiB
  pmo format data.pmo --size 64G --label ledger
  pmo format /dev/vdb                        a block device, whole
  pmo format /dev/dax0.0                     persistent memory
  pmo format data.pmo --force                over an old pool: everything in it is lost")]
pub struct Format {
    /// File to be made, or device
    path: PathBuf,

    /// Size of the pool: a number with K, M, G or T [default: 1G for a file; a device is used
    /// whole]
    #[arg(short, long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    size: Option<u64>,

    /// A name for the pool, for people; at most 128 bytes
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    label: String,

    /// Address range for the objects: first address, length [default: far from the other pools of
    /// this host]
    ///
    /// Both are multiples of 2 MiB, between 0x400000000000 and 0x7a0000000000. Pools whose objects
    /// have the same addresses cannot be attached in one process.
    #[arg(long, value_name = "ADDRESS,SIZE", value_parser = window)]
    window: Option<(u64, u64)>,

    /// Format over an existing pool or file. Everything in it is lost
    #[arg(short, long)]
    force: bool,
}

pub fn run(context: &Context, args: &Format) -> Result {
    let path = &args.path;
    let size = plan(path, args)?;
    let mut options = context.options.clone().label(&args.label).force(args.force);
    if let Some((start, len)) = args.window {
        options = options.window(start, len);
    }
    let pool = options.format(path, size)?;
    confirm(context.json, &PoolReport::of(&pool)?, |report, out| {
        out.line(&format!(
            "formatted {} as a pool of {}, {} free",
            path.display(),
            human(report.length),
            human(report.free)
        ))
    })
}

fn window(text: &str) -> std::result::Result<(u64, u64), String> {
    let (start, len) = text.split_once(',').ok_or("give a first address and a length: 0x500000000000,1T")?;
    let digits = start.strip_prefix("0x").unwrap_or(start);
    let start =
        u64::from_str_radix(digits, 16).map_err(|_| format!("{start} is no address in hexadecimal"))?;
    Ok((start, size(len)?))
}

fn plan(path: &Path, args: &Format) -> Result<u64> {
    let Ok(found) = std::fs::metadata(path) else {
        return Ok(args.size.unwrap_or(DEFAULT));
    };
    let kind = found.file_type();
    if kind.is_block_device() || kind.is_char_device() {
        if args.size.is_some() {
            let message = format!("{} is a device: it has a size of its own", path.display());
            return Err(Failure::new(Exit::Usage, message, "leave --size out"));
        }
        if kind.is_block_device() {
            refuse_used(path, args.force)?;
        }
        return Ok(0);
    }
    if kind.is_file() && !args.force {
        let message = format!("{} exists already", path.display());
        let help = "choose another path, or give --force to overwrite it";
        return Err(Failure::new(Exit::Exists, message, help));
    }
    // The size of an old pool, without the page of its superblock's copy.
    let pool = found.len().saturating_sub(4096);
    let old = if kind.is_file() && pool >= 1 << 20 { pool } else { DEFAULT };
    Ok(args.size.unwrap_or(old))
}

fn refuse_used(path: &Path, force: bool) -> Result {
    let exclusive = rustix::fs::OFlags::EXCL.bits() as i32;
    let device =
        std::fs::OpenOptions::new().read(true).custom_flags(exclusive).open(path).map_err(|error| {
            if error.kind() == std::io::ErrorKind::ResourceBusy {
                let message =
                    format!("{} is in use: it is mounted, or part of another device", path.display());
                return Failure::new(Exit::Busy, message, "unmount it first; `lsblk` shows what uses it");
            }
            Failure::file("open", path, &error)
        })?;
    if force {
        return Ok(());
    }
    let failed = |error| Failure::file("read", path, &error);
    let len = (&device).seek(SeekFrom::End(0)).map_err(failed)?;
    let Some(owner) = signatures::find(&device, len).map_err(failed)? else { return Ok(()) };
    let message = format!("{} is not blank: there is {owner} on it", path.display());
    Err(Failure::new(Exit::Exists, message, "`lsblk -f` shows what it is; give --force to lose it"))
}
