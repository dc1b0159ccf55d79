use crate::alike;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::Out;
use crate::progress;
use crate::reading::not_beside;
use crate::sealing::{SealArgs, attach_read};
use crate::values::{pool, size};
use clap::Args;
use indelible::{Error, ErrorKind, Pool};
use indelible_store::error::StoreError;
use indelible_store::medium::MediumError;
use indelible_store::table::{Key, Located};
use std::path::PathBuf;

const PIECE: usize = 1 << 20;

/// Write an object's bytes to standard output, as its last psync left them
///
/// The object is attached for reading meanwhile, so no writer changes it. If a process has it
/// attached for writing, that process goes on, and the state of its newest psync is written; if the
/// pool has no room for that, it is copied to memory first, which keeps the next psync waiting.
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
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true, default_value = "0", hide_default_value = true)]
    offset: u64,

    /// How many bytes to write [default: all from there]
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    length: Option<u64>,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    seal: SealArgs,
}

pub fn run(context: &Context, args: &Cat) -> Result {
    let key = args.key.read()?;
    let pool = context.open_to_read(&args.pool)?;
    // The pool has other bytes than programs see.
    let decoded = match attach_read(&pool, &args.name, &key, &args.seal)? {
        None if pool.stat(&args.name).is_ok_and(|stat| stat.ecc) => {
            Some(pool.attach_read_with_key(&args.name, &key)?)
        }
        sealed => sealed,
    };
    if let Some(sealed) = decoded {
        let (from, len) = range(args, sealed.as_slice().len() as u64)?;
        let mut out = Out::new();
        for at in (from..from + len).step_by(PIECE) {
            let piece = at..(at + PIECE).min(from + len);
            // A page that does not verify is an error here, and a signal at a touch.
            sealed.prefault(piece.clone())?;
            out.bytes(&sealed.as_slice()[piece])?;
        }
        out.finish()?;
        return Ok(sealed.detach()?);
    }
    let attached = match pool.attach_read_with_key(&args.name, &key) {
        Err(error) if error.kind() == ErrorKind::Held => return beside_writer(&pool, args, &key, error),
        attached => attached.map_err(|error| alike::explain(&pool, &args.name, error))?,
    };
    let located = pool.store().stat(&args.name).map_err(|error| unreadable(args, &error))?.0;
    write(&pool, args, &located)?;
    Ok(attached.detach()?)
}

fn write(pool: &Pool, args: &Cat, located: &Located) -> Result {
    let (from, len) = range(args, located.entry.size.get())?;
    let bar = progress::bytes("reading", Some(len as u64));
    let mut out = Out::new();
    let mut piece = vec![0; PIECE.min(len)];
    for at in (from..from + len).step_by(PIECE) {
        let piece = &mut piece[..PIECE.min(from + len - at)];
        pool.store().read_object(located, at as u64, piece).map_err(|error| unreadable(args, &error))?;
        out.bytes(piece)?;
        bar.inc(piece.len() as u64);
    }
    out.finish()?;
    bar.finish_and_clear();
    Ok(())
}

fn beside_writer(pool: &Pool, args: &Cat, key: &[u8], held: Error) -> Result {
    if pool.stat(&args.name).is_ok_and(|stat| stat.sealed) {
        // Without its seal key.
        pool.attach_snapshot_with_key(&args.name, key)?;
    }
    match pool.recovering(|store| store.attach_snapshot(&args.name, Key(key)))? {
        Ok(reader) => {
            let written = write(pool, args, &{ *reader.object() });
            // A leftover base goes with the next snapshot.
            let _ = pool.store().end_snapshot(reader);
            written
        }
        Err(StoreError::Medium(MediumError::ReadOnly)) => Err(not_beside(held)),
        Err(StoreError::NoRoom { .. } | StoreError::NoSpace) => match copied(pool, args, key)? {
            Some(bytes) => written(&bytes),
            None => Err(held.into()),
        },
        Err(StoreError::Held { .. }) => Err(held.into()),
        Err(error) => Err(unreadable(args, &error)),
    }
}

fn range(args: &Cat, size: u64) -> Result<(usize, usize)> {
    let left = size.checked_sub(args.offset).ok_or_else(|| {
        let message = format!("{} has {size} bytes, none at {}", object(&args.name), args.offset);
        Failure::new(Exit::Usage, message, "choose a smaller --offset")
    })?;
    Ok((args.offset as usize, args.length.unwrap_or(left).min(left) as usize))
}

fn copied(pool: &Pool, args: &Cat, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let still = pool.recovering(|store| store.hold_still(&args.name, Key(key)))?;
    let still = still.map_err(|error| unreadable(args, &error))?;
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

fn written(bytes: &[u8]) -> Result {
    let mut out = Out::new();
    out.bytes(bytes)?;
    out.finish()
}

fn unreadable(args: &Cat, error: &StoreError) -> Failure {
    let message = format!("cannot read {}: {error}", object(&args.name));
    match error {
        StoreError::HeldStill { .. } | StoreError::Changing { .. } => {
            Failure::new(Exit::Busy, message, "try again, or wait longer (`pmo --wait`)")
        }
        _ => Failure::new(Exit::Failed, message, "`pmo check` says whether the pool is damaged"),
    }
}
