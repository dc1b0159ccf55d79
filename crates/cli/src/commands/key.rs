use super::rotate::{self, Anchor, Renew, Rotate};
use super::signer::{self, Sign, Verifier};
use crate::context::Context;
use crate::ends::Ends;
use crate::failure::{Result, object};
use crate::out::{confirm, show};
use crate::sealing::{NewSealArgs, SealArgs};
use crate::text::{date, printable};
use clap::{Args, Subcommand};
use indelible::SlotInfo;
use serde::Serialize;

/// List, add, change and remove the keys that open a sealed object
///
/// Each of its keys opens the whole object. Removing one excludes owners that have not opened the
/// object before. Others may have kept the secret that the keys protect, until the object itself
/// gets another key, by `pmo key rotate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  head -c 32 /dev/urandom > ledger.key
  pmo create data.pmo ledger 1M --sealed --seal-key-file ledger.key
  pmo key list data.pmo ledger
  pmo key add data.pmo ledger --seal-key-file ledger.key --new-passphrase-file phrase --label alice
  pmo key add data.pmo ledger --seal-key-file ledger.key --new-passphrase --expires 30d
  pmo key add data.pmo ledger --seal-passphrase --new-key-command 'vault read -field=key kv/ledger'
  pmo key add data.pmo ledger --seal-key-file ledger.key --new-tpm --label 'this machine'
  pmo key change data.pmo ledger --seal-passphrase --new-passphrase
  pmo key remove data.pmo ledger 0 --seal-passphrase-file phrase
  pmo key rotate data.pmo ledger --seal-passphrase-file phrase
  pmo key renew data.pmo patient --seal-key-file 2025.key --new-key-file 2026.key
  pmo key anchor data.pmo ledger --seal-passphrase-file phrase --anchor /mnt/token/ledger
  pmo key anchor data.pmo ledger --seal-passphrase-file phrase --anchor tpm:0x1800042:ledger.anchor
  pmo key bind data.pmo ledger.copy --seal-key-file ledger.key --sealed-as ledger
  pmo key verifier --sign-key-file writer.key > writer.pub

JSON of list:
  [{\"slot\":0,\"kind\":\"key file\",\"label\":\"\",\"created\":\"2025-01-01T00:00:00Z\",\"expires\":null,\"expired\":false,\"damaged\":false}]")]
pub struct Key {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the key slots that are in use; needs no seal key
    List(Ends),
    /// Let another key open the object
    Add(Add),
    /// Replace the given key by another one, as one step
    Change(Change),
    /// Empty a key slot, but never the last one
    Remove(Remove),
    Rotate(Rotate),
    Renew(Renew),
    Anchor(Anchor),
    /// Bind an object to its name and ID: one of an earlier release or, with --sealed-as, a copy
    Bind(Bind),
    Verifier(Verifier),
    Sign(Sign),
}

#[derive(Debug, Args)]
struct Add {
    #[command(flatten)]
    ends: Ends,

    /// A label, up to 56 bytes
    #[arg(long, default_value = "", hide_default_value = true)]
    label: String,

    #[command(flatten)]
    new: NewSealArgs,

    #[command(flatten)]
    seal: SealArgs,
}

#[derive(Debug, Args)]
struct Change {
    #[command(flatten)]
    ends: Ends,

    /// A label, up to 56 bytes [default: that of the slot]
    #[arg(long)]
    label: Option<String>,

    #[command(flatten)]
    new: NewSealArgs,

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

#[derive(Debug, Args)]
struct Bind {
    #[command(flatten)]
    ends: Ends,

    #[command(flatten)]
    seal: SealArgs,
}

#[derive(Serialize)]
struct Slot {
    slot: usize,
    kind: String,
    label: String,
    created: String,
    expires: Option<String>,
    expired: bool,
    damaged: bool,
}

impl Slot {
    fn of(info: SlotInfo) -> Slot {
        let kind = info.kind_word();
        let (created, expires, expired) = (date(info.created), info.expires.map(date), info.has_expired());
        Slot { slot: info.slot, kind, label: info.label, created, expires, expired, damaged: info.damaged }
    }
}

pub fn run(context: &Context, args: &Key) -> Result {
    match &args.action {
        Action::List(ends) => list(context, ends),
        Action::Add(args) => add(context, args),
        Action::Change(args) => change(context, args),
        Action::Remove(args) => remove(context, args),
        Action::Rotate(args) => rotate::rotate(context, args),
        Action::Renew(args) => rotate::renew(context, args),
        Action::Anchor(args) => rotate::anchor(context, args),
        Action::Bind(args) => bind(context, args),
        Action::Verifier(args) => signer::verifier(context, args),
        Action::Sign(args) => signer::sign(context, args),
    }
}

fn list(context: &Context, ends: &Ends) -> Result {
    let key = ends.key.read()?;
    let pool = context.open_to_read(&ends.pool)?;
    let slots = pool.key_slots(&ends.name, &key).map_err(|error| ends.explain(&pool, error))?;
    let slots: Vec<Slot> = slots.into_iter().map(Slot::of).collect();
    show(context.json, &slots, |slots, out| {
        let heading = ["SLOT", "KIND", "CREATED", "EXPIRES", "LABEL"].map(str::to_owned).to_vec();
        let lines = slots.iter().map(|slot| {
            let state = match slot {
                Slot { damaged: true, .. } => " (damaged)",
                Slot { expired: true, .. } => " (expired)",
                _ => "",
            };
            let expires = slot.expires.clone().unwrap_or_else(|| "-".to_owned());
            let label = printable(&slot.label) + state;
            vec![slot.slot.to_string(), slot.kind.clone(), slot.created.clone(), expires, label]
        });
        out.table(
            &std::iter::once(heading).chain(lines).collect::<Vec<_>>(),
            &[true, false, false, false, false],
        )
    })
}

fn add(context: &Context, args: &Add) -> Result {
    let (ends, seal, new) = (&args.ends, args.seal.required()?, args.new.required()?);
    let key = ends.key.read()?;
    let pool = context.open(&ends.pool)?;
    let added = pool.add_key(&ends.name, &key, &seal, &new, &args.label);
    let slot = added.map_err(|error| ends.explain(&pool, error))?;
    confirm(context.json, &serde_json::json!({ "slot": slot }), |_, out| {
        out.line(&format!("key slot {slot} of {} is in use now", object(&ends.name)))
    })
}

fn change(context: &Context, args: &Change) -> Result {
    let (ends, seal, new) = (&args.ends, args.seal.required()?, args.new.required()?);
    let key = ends.key.read()?;
    let pool = context.open(&ends.pool)?;
    let changed = pool.change_key(&ends.name, &key, &seal, &new, args.label.as_deref());
    let slot = changed.map_err(|error| ends.explain(&pool, error))?;
    confirm(context.json, &serde_json::json!({ "slot": slot }), |_, out| {
        out.line(&format!("key slot {slot} of {} has the new key now", object(&ends.name)))
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

fn bind(context: &Context, args: &Bind) -> Result {
    let (ends, seal) = (&args.ends, args.seal.required()?);
    let key = ends.key.read()?;
    let pool = context.open(&ends.pool)?;
    pool.bind_name(&ends.name, &key, &seal).map_err(|error| ends.explain(&pool, error))?;
    confirm(context.json, &serde_json::json!({ "name": ends.name }), |_, out| {
        out.line(&format!("the name of {} is sealed with it now", object(&ends.name)))
    })
}
