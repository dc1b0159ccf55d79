use crate::bytes::human;
use crate::context::Context;
use crate::failure::Result;
use crate::out::{Out, show};
use crate::text::{address, date, hex, printable};
use indelible_store::format::entry::{
    Entry, FLAG_BASE, FLAG_CONTENT, FLAG_DELETED, FLAG_ECC, FLAG_FOREIGN, FLAG_HIDDEN, FLAG_OVERLAY,
    FLAG_POSITION_INDEPENDENT, FLAG_READ_ONLY, FLAG_READABLE, FLAG_SEALED, FLAG_SPARSE, FLAG_TYPED,
    FLAG_VOLATILE, NO_LANE,
};
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
struct EntryReport {
    entry: u64,
    name: String,
    id: String,
    state: u8,
    class: u8,
    retention: u8,
    flags: u32,
    checksum: String,
    size: u64,
    pages: u64,
    primary: u64,
    shadow: u64,
    address: String,
    reserved: u64,
    binding: u64,
    lane: Option<u32>,
    pid: u32,
    boot: String,
    created: String,
    read_key: bool,
    write_key: bool,
    fingerprint: String,
    ties: u64,
    sealed: bool,
}

pub fn run(context: &Context, pool: &Path, name: &str) -> Result {
    let pool = context.look(pool)?;
    // Reports a missing object.
    pool.stat(name)?;
    let found = pool.insides("dump", |store| store.find(name))?;
    show(context.json, &entry(found.offset, &found.entry), entry_text)
}

fn entry(offset: u64, entry: &Entry) -> EntryReport {
    EntryReport {
        entry: offset,
        name: entry.name(),
        id: hex(&entry.id),
        state: entry.state,
        class: entry.class,
        retention: entry.retention,
        flags: entry.flags.get(),
        checksum: address(entry.checksum.get()),
        size: entry.size.get(),
        pages: entry.pages.get(),
        primary: entry.primary.get(),
        shadow: entry.shadow.get(),
        address: address(entry.address.get()),
        reserved: entry.reserved.get(),
        binding: entry.binding.get(),
        lane: Some(entry.lane.get()).filter(|lane| *lane != NO_LANE),
        pid: entry.pid.get(),
        boot: hex(&entry.boot),
        created: date(entry.created.get()),
        read_key: entry.read_key != [0; 16],
        write_key: entry.write_key != [0; 16],
        fingerprint: hex(&entry.fingerprint),
        ties: entry.ties.get(),
        sealed: entry.has(FLAG_SEALED),
    }
}

fn entry_text(entry: &EntryReport, out: &mut Out) -> Result {
    let has = |there: bool| if there { "yes" } else { "no" }.to_owned();
    let mut flags = Vec::new();
    let known = [
        (FLAG_READ_ONLY, "read-only"),
        (FLAG_SPARSE, "sparse"),
        (FLAG_TYPED, "typed"),
        (FLAG_HIDDEN, "hidden"),
        (FLAG_BASE, "base"),
        (FLAG_OVERLAY, "overlay"),
        (FLAG_FOREIGN, "foreign"),
        (FLAG_DELETED, "deleted"),
        (FLAG_VOLATILE, "volatile"),
        (FLAG_ECC, "ecc"),
        (FLAG_POSITION_INDEPENDENT, "position-independent"),
        (FLAG_CONTENT, "by content"),
        (FLAG_READABLE, "readable outside"),
    ];
    for (flag, word) in known {
        if entry.flags & flag != 0 {
            flags.push(word);
        }
    }
    out.fields(&[
        ("entry", format!("at {}", entry.entry)),
        ("name", printable(&entry.name)),
        ("id", entry.id.clone()),
        ("state", format!("{} ({})", entry.state, ["D", "R", "W"].get(entry.state as usize).unwrap_or(&"?"))),
        ("class", entry.class.to_string()),
        ("retention", entry.retention.to_string()),
        ("flags", format!("{:#x} {}", entry.flags, flags.join(" ")).trim_end().to_owned()),
        ("checksum", entry.checksum.clone()),
        ("size", entry.size.to_string()),
        ("primary", format!("{} pages from page {}", entry.pages, entry.primary)),
        ("shadow", entry.shadow.to_string()),
        ("address", format!("{} ({} reserved)", entry.address, human(entry.reserved))),
        ("binding", entry.binding.to_string()),
        ("lane", entry.lane.map_or("-".to_owned(), |lane| lane.to_string())),
        ("pid", entry.pid.to_string()),
        ("boot", entry.boot.clone()),
        ("created", entry.created.clone()),
        ("read key", has(entry.read_key)),
        ("write key", has(entry.write_key)),
        ("fingerprint", entry.fingerprint.clone()),
        ("ties", entry.ties.to_string()),
        ("sealed", has(entry.sealed)),
    ])
}
