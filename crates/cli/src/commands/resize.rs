use crate::bytes::human;
use crate::commands::stat::ObjectReport;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::confirm;
use crate::sealing::SealArgs;
use crate::values::{pool, size};
use clap::Args;
use std::path::PathBuf;

/// Give an object another size; its address and contents stay
///
/// The object must not be attached. Growing is done in place if there is room behind the object,
/// else by copying it. Shrinking cuts off its end for good, and therefore needs --shrink.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo resize data.pmo counters 1M
  pmo resize data.pmo counters 4K --shrink")]
pub struct Resize {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object
    name: String,

    /// Its new size: a number with K, M, G or T
    #[arg(value_parser = size, allow_negative_numbers = true)]
    size: u64,

    /// Allow the end of the object to be cut off
    #[arg(long)]
    shrink: bool,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    seal: SealArgs,
}

pub fn run(context: &Context, args: &Resize) -> Result {
    let key = args.key.read()?;
    let pool = context.open(&args.pool)?;
    let stat = pool.stat(&args.name)?;
    let before = stat.size;
    if args.size < before && !args.shrink {
        let message = format!(
            "{} has {}: {} would cut off its end",
            object(&args.name),
            human(before),
            human(args.size)
        );
        return Err(Failure::new(Exit::Usage, message, "give --shrink to cut off its end"));
    }
    let seal = if stat.sealed { Some(args.seal.required()?) } else { args.seal.read()? };
    match seal {
        Some(seal) => pool.resize_sealed(&args.name, args.size, &key, &seal)?,
        None => pool.resize(&args.name, args.size, &key)?,
    }
    confirm(context.json, &ObjectReport::of(&pool.stat(&args.name)?), |report, out| {
        out.line(&format!(
            "resized {}: {} before, {} now",
            object(&args.name),
            human(before),
            human(report.size)
        ))
    })
}
