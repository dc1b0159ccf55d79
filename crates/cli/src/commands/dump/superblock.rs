use crate::bytes::human;
use crate::context::Context;
use crate::failure::Result;
use crate::out::{Out, show};
use crate::text::{address, date, hex, printable};
use indelible::SuperblockSlot;
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
struct Slot {
    offset: u64,
    fault: Option<String>,
    magic: String,
    version: u32,
    features: u32,
    sequence: u64,
    checksum: String,
    id: String,
    seed: String,
    length: u64,
    data: u64,
    window: String,
    window_len: u64,
    created: String,
    label: String,
}

pub fn run(context: &Context, pool: &Path) -> Result {
    let slots: Vec<Slot> = indelible::superblocks(pool, &context.options)?.iter().map(slot).collect();
    show(context.json, &slots, |slots, out| {
        for (index, slot) in slots.iter().enumerate() {
            if index > 0 {
                out.line("")?;
            }
            slot_text(slot, out)?;
        }
        Ok(())
    })
}

fn slot(found: &SuperblockSlot) -> Slot {
    let superblock = &found.superblock;
    Slot {
        offset: found.offset,
        fault: found.fault.map(|fault| format!("{fault:?}")),
        magic: String::from_utf8_lossy(&superblock.magic).into_owned(),
        version: superblock.version.get(),
        features: superblock.features.get(),
        sequence: superblock.sequence.get(),
        checksum: address(superblock.checksum.get()),
        id: hex(&superblock.id),
        seed: address(superblock.seed.get()),
        length: superblock.length.get(),
        data: superblock.data.get(),
        window: address(superblock.window.get()),
        window_len: superblock.window_len.get(),
        created: date(superblock.created.get()),
        label: superblock.label(),
    }
}

fn slot_text(slot: &Slot, out: &mut Out) -> Result {
    let verdict = slot.fault.as_ref().map_or("intact".to_owned(), |fault| format!("not usable: {fault}"));
    out.fields(&[
        ("slot", format!("at {}, {verdict}", slot.offset)),
        ("magic", printable(&slot.magic)),
        ("version", slot.version.to_string()),
        ("features", format!("{:#x}", slot.features)),
        ("sequence", slot.sequence.to_string()),
        ("checksum", slot.checksum.clone()),
        ("id", slot.id.clone()),
        ("seed", slot.seed.clone()),
        ("length", slot.length.to_string()),
        ("data", format!("from {}", slot.data)),
        ("window", format!("{} and {} from there", slot.window, human(slot.window_len))),
        ("created", slot.created.clone()),
        ("label", if slot.label.is_empty() { "-".to_owned() } else { printable(&slot.label) }),
    ])
}
