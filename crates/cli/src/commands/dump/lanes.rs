use crate::bytes::human;
use crate::context::Context;
use crate::failure::Result;
use crate::out::{Out, show};
use crate::text::count;
use indelible_store::format::batch::kind;
use indelible_store::store::LaneDump;
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
struct Lane {
    /// `null`: the table's lane.
    index: Option<u32>,
    offset: u64,
    length: u64,
    generation: u64,
    pid: u32,
    held: bool,
    since: u64,
    batches: Vec<Batch>,
}

#[derive(Serialize)]
struct Batch {
    sequence: u64,
    lines: u64,
    sections: Vec<Section>,
}

#[derive(Serialize)]
struct Section {
    kind: &'static str,
    entry: u64,
    binding: u64,
    published: u64,
    psyncs: u64,
    direct: u64,
}

pub fn run(context: &Context, pool: &Path) -> Result {
    let pool = context.look(pool)?;
    let lanes: Vec<Lane> = pool.insides("dump", |store| store.lanes())?.iter().map(lane).collect();
    show(context.json, &lanes, |lanes, out| lanes.iter().try_for_each(|lane| lane_text(lane, out)))
}

fn lane(found: &LaneDump) -> Lane {
    let batches = found.batches.iter().map(|batch| Batch {
        sequence: batch.sequence,
        lines: batch.lines,
        sections: batch.sections.iter().map(section).collect(),
    });
    Lane {
        index: found.index,
        offset: found.offset,
        length: found.len,
        generation: found.generation,
        pid: found.pid,
        held: found.held,
        since: found.since,
        batches: batches.collect(),
    }
}

fn section(found: &indelible_store::format::batch::Section) -> Section {
    Section {
        kind: match found.kind.get() {
            kind::TABLE => "table",
            kind::PSYNC => "psync",
            kind::INTENT => "intent",
            kind::SPILL => "spill",
            _ => "unknown",
        },
        entry: found.entry.get(),
        binding: found.binding.get(),
        published: found.published.get(),
        psyncs: found.psyncs.get(),
        direct: found.direct.get(),
    }
}

fn lane_text(lane: &Lane, out: &mut Out) -> Result {
    let name = lane.index.map_or("table lane".to_owned(), |index| format!("lane {index}"));
    let place = format!("{} at {}", human(lane.length), lane.offset);
    let who = match (lane.index, lane.held) {
        (None, _) => String::new(),
        (_, true) => format!(", held by process {}", lane.pid),
        (_, false) => format!(", free, last held by process {}", lane.pid),
    };
    let batches = match lane.batches.len() {
        1 => "1 batch".to_owned(),
        n => format!("{n} batches"),
    };
    out.line(&format!("{name}: {place}, generation {}{who}; {batches}", lane.generation))?;
    for batch in &lane.batches {
        let lines = count(batch.lines, "line");
        let sections: Vec<_> = batch.sections.iter().map(section_text).collect();
        out.line(&format!("  batch {}: {lines}; {}", batch.sequence, sections.join("; ")))?;
    }
    Ok(())
}

fn section_text(section: &Section) -> String {
    match section.kind {
        "table" => "table".to_owned(),
        "spill" => format!("table, {} bytes at {}", section.binding, section.entry),
        "psync" => format!(
            "psync {} of the object at {} (binding {}), published up to {}",
            section.psyncs, section.entry, section.binding, section.published
        ),
        kind => format!(
            "{kind} for the object at {} (binding {}), from {} to {}",
            section.entry, section.binding, section.published, section.direct
        ),
    }
}
