use crate::context::Context;
use crate::ends::Ends;
use crate::erasing::{self, LastKey};
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::out::confirm;
use crate::progress;
use crate::sealing::{NewSealArgs, SealArgs, key_file, passphrase_file};
use clap::Args;
use indelible::SlotInfo;
use std::path::PathBuf;

/// Seal the whole object anew by a new key
///
/// Owners of the former object's key, or of a seal key whose slot goes, cannot read later psyncs.
/// The given seal keys keep their slots, as only these can wrap the new key; all others go, which
/// needs --yes. An earlier copy of the pool's file opens as before. Meanwhile it
/// takes the space of the object once more; if it is interrupted, the object keeps its former key.
#[derive(Debug, Args)]
pub struct Rotate {
    #[command(flatten)]
    ends: Ends,

    /// Remove the slots of other keys
    #[arg(long)]
    yes: bool,

    /// Another key file whose slot stays; may be given more than once
    #[arg(long, value_name = "FILE")]
    keep_key_file: Vec<PathBuf>,

    /// File with another passphrase whose slot stays; may be given more than once
    #[arg(long, value_name = "FILE")]
    keep_passphrase_file: Vec<PathBuf>,

    #[command(flatten)]
    seal: SealArgs,
}

/// Seal an erasable object anew by another key file, and destroy the former one
///
/// Older states of it, in copies of the pool, snapshots and backups, open by the former key file
/// alone: once that file is overwritten and removed, with each copy that you made of it, these
/// states cannot be read. A medium may keep overwritten bytes (SSDs, file systems that copy on
/// write): keep key files where that is no danger. If the command is cut short, the object opens by
/// one of the two files, and the error of the next try says which.
#[derive(Debug, Args)]
pub struct Renew {
    #[command(flatten)]
    ends: Ends,

    #[command(flatten)]
    new: NewSealArgs,

    #[command(flatten)]
    seal: SealArgs,
}

/// Take the object's present state for the newest
///
/// For a state that was put back on purpose, an anchor that was lost, or another anchor. First find
/// out why the object's state differs from the anchor's record. With --none it has no anchor from
/// then on.
#[derive(Debug, Args)]
pub struct Anchor {
    #[command(flatten)]
    ends: Ends,

    /// Remove the anchor
    #[arg(long, conflicts_with = "anchor")]
    none: bool,

    #[command(flatten)]
    seal: SealArgs,
}

pub fn rotate(context: &Context, args: &Rotate) -> Result {
    let ends = &args.ends;
    let mut keys = vec![args.seal.required()?];
    for path in &args.keep_key_file {
        keys.push(key_file(path)?);
    }
    for path in &args.keep_passphrase_file {
        keys.push(passphrase_file(path)?);
    }
    let keys: Vec<_> = keys.iter().collect();
    let key = ends.key.read()?;
    let pool = context.open(&ends.pool)?;
    let explained = |error| ends.explain(&pool, error);
    let stay = pool.slots_of(&ends.name, &key, &keys).map_err(explained)?;
    let mut go = pool.key_slots(&ends.name, &key).map_err(explained)?;
    go.retain(|slot| !stay.contains(slot));
    if !go.is_empty() && !args.yes {
        let message = format!("{} would lose the key slots {}", object(&ends.name), list(&go));
        return Err(Failure::new(
            Exit::Usage,
            message,
            "give --keep-key-file or --keep-passphrase-file for those that are to stay, or --yes",
        ));
    }
    sealing_anew(|told| pool.reencrypt(&ends.name, &key, &keys, told)).map_err(explained)?;
    let [kept, gone] = [&stay, &go].map(|slots| slots.len());
    confirm(context.json, &serde_json::json!({ "kept": kept, "gone": gone }), |_, out| {
        out.line(&format!("{} has a new key; key slots: {kept} kept, {gone} gone", object(&ends.name)))
    })
}

fn sealing_anew(
    seal: impl FnOnce(&mut dyn FnMut(u64, u64)) -> indelible::Result<()>,
) -> indelible::Result<()> {
    let bar = progress::bytes("sealing anew", Some(0));
    let done = seal(&mut |done, all| {
        bar.set_length(all * 4096);
        bar.set_position(done * 4096);
    });
    bar.finish_and_clear();
    done
}

pub fn renew(context: &Context, args: &Renew) -> Result {
    let (ends, former) = (&args.ends, args.seal.required_file()?);
    let (seal, new, next) = (args.seal.required()?, args.new.required()?, args.new.required_file()?);
    let last = LastKey::open(&former)?;
    let key = ends.key.read()?;
    let pool = context.open(&ends.pool)?;
    let explained = |error| ends.explain(&pool, error);
    if !pool.is_erasable(&ends.name, &key).map_err(explained)? {
        return Err(not_erasable(&ends.name));
    }
    erasing::keep(next)?;
    let opens = |seal| pool.slots_of(&ends.name, &key, &[seal]).is_ok();
    if !opens(&seal) && opens(&new) {
        let message = format!("{} is sealed by {} already", object(&ends.name), next.display());
        let help = format!("if {} was its key file before, destroy it: `shred -u`", former.display());
        return Err(Failure::new(Exit::Usage, message, help));
    }
    sealing_anew(|told| pool.renew_key(&ends.name, &key, &seal, &new, told)).map_err(explained)?;
    last.destroy()?;
    let report = serde_json::json!({ "key_file": next, "destroyed": former });
    confirm(context.json, &report, |_, out| {
        let (next, former) = (next.display(), former.display());
        out.line(&format!("{} is sealed by {next} now, and {former} is destroyed", object(&ends.name)))
    })
}

/// # Errors
/// Only an erasable object is erased with its key file.
pub fn not_erasable(name: &str) -> Failure {
    let message = format!("{} is not erasable: other keys may open older copies of it", object(name));
    Failure::new(Exit::Usage, message, "objects are erasable from their creation on: `pmo create --erasable`")
}

fn list(slots: &[SlotInfo]) -> String {
    let named = slots.iter().map(|slot| format!("{} {:?}", slot.slot, slot.label));
    named.collect::<Vec<_>>().join(", ")
}

pub fn anchor(context: &Context, args: &Anchor) -> Result {
    let ends = &args.ends;
    let named = args.seal.anchor();
    let seal = args.seal.required()?;
    if named.is_none() != args.none {
        let help = "give --anchor, or --none alone";
        return Err(Failure::new(Exit::Usage, "it is not clear which anchor the object is to have", help));
    }
    let key = ends.key.read()?;
    let pool = context.open(&ends.pool)?;
    pool.set_anchor(&ends.name, &key, &seal).map_err(|error| ends.explain(&pool, error))?;
    let text = named.as_ref().map(|name| name.display().to_string());
    confirm(context.json, &serde_json::json!({ "anchor": text }), |_, out| {
        let has = text.as_ref().map_or("no anchor".to_owned(), |path| format!("the anchor {path}"));
        out.line(&format!("{} has {has} now", object(&ends.name)))
    })
}
