//! `pmo key`: the keys that open a sealed object.

use super::rotate::{self, Anchor, Rotate};
use crate::context::Context;
use crate::ends::Ends;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::out::{confirm, show};
use crate::sealing::{SealArgs, from_files};
use crate::text::{printable, time};
use clap::{Args, Subcommand};
use indelible::SlotInfo;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

/// List, add and remove the keys that open a sealed object
///
/// Each of its keys opens the whole object. Removing one keeps its owner out who has not opened the object before: who has may have kept what the keys protect,
/// until the object itself gets another key, by `pmo key rotate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  head -c 32 /dev/urandom > ledger.key
  pmo create data.pmo ledger 1M --sealed --seal-key-file ledger.key
  pmo key list data.pmo ledger
  pmo key add data.pmo ledger --seal-key-file ledger.key --new-passphrase-file phrase --label alice
  pmo key remove data.pmo ledger 0 --seal-passphrase-file phrase
  pmo key rotate data.pmo ledger --seal-passphrase-file phrase
  pmo key anchor data.pmo ledger --seal-passphrase-file phrase --anchor /mnt/token/ledger

JSON of list:
  [{\"slot\":0,\"kind\":\"key file\",\"label\":\"\",\"created\":\"2025-01-01T00:00:00Z\",\"damaged\":false}]")]
pub struct Key {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show the key slots that are in use; needs no seal key
    List(Ends),
    /// Let another key open the object
    Add(Add),
    /// Empty a key slot, but never the last one
    Remove(Remove),
    Rotate(Rotate),
    Anchor(Anchor),
}

#[derive(Debug, Args)]
struct Add {
    #[command(flatten)]
    ends: Ends,

    /// Key file that is to open the object, too
    #[arg(long, value_name = "FILE", conflicts_with = "new_passphrase_file")]
    new_key_file: Option<PathBuf>,

    /// File that has a passphrase that is to open the object, too
    #[arg(long, value_name = "FILE")]
    new_passphrase_file: Option<PathBuf>,

    /// Text for people, up to 56 bytes
    #[arg(long, default_value = "", hide_default_value = true)]
    label: String,

    #[command(flatten)]
    seal: SealArgs,
}

#[derive(Debug, Args)]
struct Remove {
    #[command(flatten)]
    ends: Ends,

    /// Number of the slot, as `pmo key list` shows it
    slot: usize,

    #[command(flatten)]
    seal: SealArgs,
}

/// A slot, for programs.
#[derive(Serialize)]
struct Slot {
    slot: usize,
    kind: String,
    label: String,
    created: String,
    damaged: bool,
}

impl Slot {
    fn of(info: SlotInfo) -> Slot {
        let kind = match info.kind {
            1 => "key file".to_owned(),
            2 => "passphrase".to_owned(),
            other => format!("kind {other}"),
        };
        let created = time(UNIX_EPOCH + Duration::from_secs(info.created.min(1 << 40)));
        Slot { slot: info.slot, kind, label: info.label, created, damaged: info.damaged }
    }
}

pub fn run(context: &Context, args: &Key) -> Result {
    match &args.what {
        What::List(ends) => list(context, ends),
        What::Add(args) => add(context, args),
        What::Remove(args) => remove(context, args),
        What::Rotate(args) => rotate::rotate(context, args),
        What::Anchor(args) => rotate::anchor(context, args),
    }
}

fn list(context: &Context, ends: &Ends) -> Result {
    let key = ends.key.read()?;
    let pool = context.open_to_read(&ends.pool)?;
    let slots = pool.key_slots(&ends.name, &key).map_err(|error| ends.explain(&pool, error))?;
    let slots: Vec<Slot> = slots.into_iter().map(Slot::of).collect();
    show(context.json, &slots, |slots, out| {
        let heading = ["SLOT", "KIND", "CREATED", "LABEL"].map(str::to_owned).to_vec();
        let lines = slots.iter().map(|slot| {
            let label = printable(&slot.label) + if slot.damaged { " (damaged)" } else { "" };
            vec![slot.slot.to_string(), slot.kind.clone(), slot.created.clone(), label]
        });
        out.table(&std::iter::once(heading).chain(lines).collect::<Vec<_>>(), &[true, false, false, false])
    })
}

fn add(context: &Context, args: &Add) -> Result {
    let (ends, seal) = (&args.ends, args.seal.required()?);
    let new = from_files(args.new_key_file.as_deref(), args.new_passphrase_file.as_deref())?;
    let new = new.ok_or_else(|| {
        Failure::new(Exit::Usage, "no new key is given", "give --new-key-file or --new-passphrase-file")
    })?;
    let key = ends.key.read()?;
    let pool = context.open(&ends.pool)?;
    let added = pool.add_key(&ends.name, &key, &seal, &new, &args.label);
    let slot = added.map_err(|error| ends.explain(&pool, error))?;
    confirm(context.json, &serde_json::json!({ "slot": slot }), |_, out| {
        out.line(&format!("key slot {slot} of {} is in use now", object(&ends.name)))
    })
}

fn remove(context: &Context, args: &Remove) -> Result {
    let (ends, seal) = (&args.ends, args.seal.required()?);
    let key = ends.key.read()?;
    let pool = context.open(&ends.pool)?;
    let removed = pool.remove_key(&ends.name, &key, &seal, args.slot);
    removed.map_err(|error| ends.explain(&pool, error))?;
    confirm(context.json, &serde_json::json!({ "slot": args.slot }), |_, out| {
        out.line(&format!("key slot {} of {} is empty now", args.slot, object(&ends.name)))
    })
}
