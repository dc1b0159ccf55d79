//! `pmo cat`: an object's bytes on standard output.

use crate::alike;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::Out;
use crate::progress;
use crate::values::{pool, size};
use clap::Args;
use indelible::{ErrorKind, Pool};
use indelible_store::error::StoreError;
use indelible_store::medium::MediumError;
use indelible_store::table::Key;
use std::path::PathBuf;

const PIECE: usize = 1 << 20;

/// Write an object's bytes to standard output, as its last psync left them
///
/// The object is attached for reading meanwhile, so no writer changes it. If a process has it attached for
/// writing, what its newest psync left is copied to memory first, which keeps the next psync waiting.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo cat data.pmo counters | xxd | head
  pmo cat data.pmo ledger > ledger.bin
  pmo cat data.pmo ledger --offset 4K --length 64 | xxd")]
pub struct Cat {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object
    name: String,

    /// First byte to write
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "0", hide_default_value = true)]
    offset: u64,

    /// How many bytes to write [default: all from there]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    length: Option<u64>,

    #[command(flatten)]
    key: KeyArgs,
}

pub fn run(context: &Context, args: &Cat) -> Result {
    let key = args.key.read()?;
    let pool = context.open_to_read(&args.pool)?;
    let attached = match pool.attach_read_with_key(&args.name, &key) {
        Err(error) if error.kind() == ErrorKind::Held => match beside_writer(&pool, args, &key)? {
            Some(bytes) => return written(&bytes),
            None => return Err(error.into()),
        },
        attached => attached.map_err(|error| alike::explain(&pool, &args.name, error))?,
    };
    let (from, len) = range(args, attached.stat()?.size)?;
    let bar = progress::bytes("reading", Some(len as u64));
    let mut out = Out::new();
    // By system calls: a load from a page that a sparse object does not have yet would claim it.
    let located = pool.store().stat(&args.name).map_err(|error| unreadable(args, &error))?.0;
    let mut piece = vec![0; PIECE.min(len)];
    for at in (from..from + len).step_by(PIECE) {
        let piece = &mut piece[..PIECE.min(from + len - at)];
        pool.store().read_object(&located, at as u64, piece).map_err(|error| unreadable(args, &error))?;
        out.bytes(piece)?;
        bar.inc(piece.len() as u64);
    }
    out.finish()?;
    bar.finish_and_clear();
    Ok(attached.detach()?)
}

/// First byte and number of bytes to write, of `size`.
fn range(args: &Cat, size: u64) -> Result<(usize, usize)> {
    let left = size.checked_sub(args.offset).ok_or_else(|| {
        let message = format!("{} has {size} bytes, none at {}", object(&args.name), args.offset);
        Failure::new(Exit::Usage, message, "choose a smaller --offset")
    })?;
    Ok((args.offset as usize, args.length.unwrap_or(left).min(left) as usize))
}

/// The bytes that the newest psync left of an object that a process writes. `None`: there is no such process, or this one may
/// not keep it waiting.
fn beside_writer(pool: &Pool, args: &Cat, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let still = match pool.store().hold_still(&args.name, Key(key)) {
        Err(StoreError::Medium(MediumError::ReadOnly)) => return Ok(None),
        still => still.map_err(|error| unreadable(args, &error))?,
    };
    let Some(still) = still else { return Ok(None) };
    let (from, len) = range(args, still.object().entry.size.get())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| {
        let message = format!("no memory for {len} bytes of {}", object(&args.name));
        Failure::new(Exit::Failed, message, "--offset and --length choose a part")
    })?;
    bytes.resize(len, 0);
    still.read(from as u64, &mut bytes).map_err(|error| unreadable(args, &error))?;
    Ok(Some(bytes))
}

/// Writes bytes that were copied: nobody waits for their reader any more.
fn written(bytes: &[u8]) -> Result {
    let mut out = Out::new();
    out.bytes(bytes)?;
    out.finish()
}

fn unreadable(args: &Cat, error: &StoreError) -> Failure {
    let message = format!("cannot read {}: {error}", object(&args.name));
    Failure::new(Exit::Failed, message, "`pmo check` says whether the pool is damaged")
}
