//! `pmo cat`: an object's bytes on standard output.

use crate::args::size;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::Out;
use crate::progress;
use clap::Args;
use std::path::PathBuf;

const PIECE: usize = 1 << 20;

/// Write an object's bytes to standard output, as its last psync left them
///
/// The object is attached for reading meanwhile, so no writer changes it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo cat data.pmo counters | xxd | head
  pmo cat data.pmo ledger > ledger.bin
  pmo cat data.pmo ledger --offset 4K --length 64 | xxd")]
pub struct Cat {
    /// The pool
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
    let attached = pool.attach_read_with_key(&args.name, &key)?;
    let size = attached.stat()?.size;
    let left = size.checked_sub(args.offset).ok_or_else(|| {
        let message = format!("{} has {size} bytes, none at {}", object(&args.name), args.offset);
        Failure::new(Exit::Usage, message, "choose a smaller --offset")
    })?;
    let (from, len) = (args.offset as usize, args.length.unwrap_or(left).min(left) as usize);
    let bar = progress::bytes("reading", Some(len as u64));
    let mut out = Out::new();
    for piece in attached.as_slice()[from..from + len].chunks(PIECE) {
        out.bytes(piece)?;
        bar.inc(piece.len() as u64);
    }
    out.finish()?;
    bar.finish_and_clear();
    Ok(attached.detach()?)
}
