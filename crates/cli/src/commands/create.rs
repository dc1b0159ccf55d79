use crate::alike;
use crate::bytes::human;
use crate::commands::stat::ObjectReport;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::keys::{KeyArgs, RoleKeyArgs};
use crate::out::confirm;
use crate::sealing::SealArgs;
use crate::terminal::note;
use crate::values::{pool, size};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use indelible::{Class, CreateOptions, MediumKind, Pool};
use std::path::PathBuf;

/// Make an object, full of zeros
///
/// Its space is claimed now, and stays claimed until the object is destroyed. Its address is fixed
/// for life. A name is 1 to 511 bytes of UTF-8; it is not a path, so `/` in it means nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo create data.pmo counters 4K
  pmo create data.pmo logs/2025 10G --sparse
  pmo create data.pmo accounts 1M --class transactional
  pmo create data.pmo sessions 1M --class on-demand
  pmo create data.pmo prices 1M --class transactional --readable-outside
  pmo create data.pmo ledger 1M --ecc
  pmo create data.pmo jobs 1M --class shared
  PMO_KEY=secret pmo create data.pmo ledger 1M
  pmo create data.pmo shared 1M --read-key-file r.key --write-key-file w.key

  pmo create data.pmo secrets 1M --sealed --seal-key-file secrets.key
  pmo create data.pmo diary 1M --sealed --seal-passphrase
  pmo create data.pmo patient 1M --sealed --erasable --seal-key-file patient.key
  pmo create data.pmo prices 1M --sealed --seal-key-file r.key --sign-key-file w.key

A sealed object is encrypted in the pool: without its seal key nobody reads it, or changes it unnoticed. \
With a sign key, who has a seal key alone reads it and does not forge it. \
Snapshots, copies and backups of it are sealed as it is, and made without its seal key.

Keys of objects that are not sealed are a guard rail against mistakes: who can read the pool's file can \
read the object.")]
pub struct Create {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object
    name: String,

    /// Its size: a number with K, M, G or T
    #[arg(value_parser = size, allow_negative_numbers = true)]
    size: u64,

    /// Claim space when it is first psynced, not now; a psync may then fail for want of space
    #[arg(long)]
    sparse: bool,

    /// Its durability class: psync, transactional, on-demand or shared
    #[arg(long, value_name = "CLASS", value_parser = class(), default_value = "psync", default_value_if("ecc", "true", "transactional"))]
    class: Class,

    /// Give each word a check word, by which transactions and pmo scrub notice and repair damage:
    /// twice the space; transactional, or on-demand
    #[arg(long)]
    ecc: bool,

    /// Let plain loads outside of transactions see what these committed; class transactional or
    /// on-demand
    #[arg(long)]
    readable_outside: bool,

    /// The object lasts until the machine restarts: then it cannot be attached, and its name is
    /// free
    #[arg(long)]
    volatile: bool,

    /// It will hold no pointers, and nothing else that depends on its addresses: it can get others
    /// (pmo cp --rebase)
    #[arg(long)]
    position_independent: bool,

    /// Encrypt all that is in the pool of it, by the seal key that is given
    #[arg(long)]
    sealed: bool,

    /// Give the sealed object one key slot for ever, of the key file: once `pmo rm --erase` or `pmo
    /// key renew` has destroyed that file, no earlier copy or backup of the object can be read
    #[arg(long, requires = "sealed")]
    erasable: bool,

    /// Refuse write attaches for good
    #[arg(long)]
    read_only: bool,

    /// Address space to keep for growth [default: several times the pool's, while there is plenty]
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true, default_value = "0", hide_default_value = true)]
    reach: u64,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    roles: RoleKeyArgs,

    #[command(flatten)]
    seal: SealArgs,
}

pub fn class() -> impl TypedValueParser<Value = Class> {
    PossibleValuesParser::new(Class::ALL.map(Class::name))
        .map(|name| Class::ALL.into_iter().find(|class| class.name() == name).unwrap_or_default())
}

/// Notes that objects on demand gain little there.
pub fn note_medium(pool: &Pool, class: Class) {
    if class == Class::OnDemand && pool.medium() == MediumKind::Memory {
        note(
            "the pool is in memory: a power cut takes all of it, unless that memory has a battery, and durable transactions cost little there; \
             on demand saves some microseconds, and a copy of each object is in memory twice",
        );
    }
}

pub fn run(context: &Context, args: &Create) -> Result {
    let (read_key, write_key) = args.roles.read(&args.key.read()?)?;
    let pool = context.open(&args.pool)?;
    let mut options = CreateOptions::new(args.size)
        .read_key(&read_key)
        .write_key(&write_key)
        .sparse(args.sparse)
        .ecc(args.ecc)
        .class(args.class)
        .readable_outside(args.readable_outside)
        .volatile(args.volatile)
        .position_independent(args.position_independent)
        .read_only(args.read_only)
        .reach(args.reach);
    if !args.sealed && args.seal.is_asked() {
        let message = "a seal key, a sign key, a verify key or an anchor is given for an object that is not to be sealed";
        return Err(Failure::new(Exit::Usage, message, "give --sealed too, or leave the key out"));
    }
    if args.sealed {
        let key = args.seal.for_new()?;
        options = options.sealed(&if args.erasable { key.erasable()? } else { key }, "");
    }
    pool.create_with(&args.name, &options)?;
    alike::warn(&pool, &args.name);
    note_medium(&pool, args.class);
    let report = ObjectReport::of(&pool.stat(&args.name)?);
    confirm(context.json, &report, |report, out| {
        out.line(&format!("created {}: {} at {}", object(&args.name), human(report.size), report.address))
    })
}
