use crate::context::Context;
use crate::ends::Ends;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::out::confirm;
use crate::progress;
use crate::sealing::{SealArgs, key_file, passphrase_file};
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
    let bar = progress::bytes("sealing anew", Some(0));
    let rotated = pool.reencrypt(&ends.name, &key, &keys, |done, all| {
        bar.set_length(all * 4096);
        bar.set_position(done * 4096);
    });
    bar.finish_and_clear();
    rotated.map_err(explained)?;
    let [kept, gone] = [&stay, &go].map(|slots| slots.len());
    confirm(context.json, &serde_json::json!({ "kept": kept, "gone": gone }), |_, out| {
        out.line(&format!("{} has a new key; key slots: {kept} kept, {gone} gone", object(&ends.name)))
    })
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
