//! Finding entries and lanes by reading every page.

use crate::error::Result;
use crate::format::batch;
use crate::format::entry::{Entry, FREE_MAGIC, MAGIC, SIZE};
use crate::format::lane::{BODY, HEADER_MAGIC, HEADERS, Header};
use crate::format::{DATA, PAGE};
use crate::medium::Medium;
use crate::store::check::{Object, is_clean};
use std::collections::BTreeMap;
use zerocopy::FromBytes;

const PIECE: u64 = 1 << 20;

#[derive(Default)]
pub(super) struct Scanned {
    /// Intact entries, ascending; their own offset and the pool's checksum exclude look-alikes.
    pub objects: Vec<Object>,
    /// Damaged slots beside intact or free ones.
    pub damaged: Vec<u64>,
    /// Unreadable pages, perhaps with entries.
    pub unreadable: Vec<u64>,
}

fn pages(medium: &dyn Medium, from: u64, to: u64, look: &mut dyn FnMut(u64, &[u8])) -> Vec<u64> {
    let mut unreadable = Vec::new();
    let mut buffer = vec![0; PIECE as usize];
    let mut at = from;
    while at < to {
        let piece = &mut buffer[..(to - at).min(PIECE) as usize];
        if medium.read(at, piece).is_ok() {
            for (index, page) in piece.chunks_exact(PAGE as usize).enumerate() {
                look(at + index as u64 * PAGE, page);
            }
        } else {
            for (index, page) in piece.chunks_exact_mut(PAGE as usize).enumerate() {
                let offset = at + index as u64 * PAGE;
                match medium.read(offset, page) {
                    Ok(()) => look(offset, page),
                    Err(_) => unreadable.push(offset),
                }
            }
        }
        at += PIECE;
    }
    unreadable
}

pub(super) fn entries(
    medium: &dyn Medium,
    seed: u64,
    len: u64,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Scanned> {
    let mut found = Scanned::default();
    let mut suspects = Vec::new();
    let unreadable = pages(medium, DATA, len, &mut |offset, page| {
        if offset % PIECE == 0 {
            progress(offset, len);
        }
        let magic = |slot: &[u8]| u32::from_le_bytes([slot[0], slot[1], slot[2], slot[3]]);
        if !page.chunks_exact(SIZE as usize).any(|slot| matches!(magic(slot), MAGIC | FREE_MAGIC)) {
            return;
        }
        let mut odd = Vec::new();
        let before = found.objects.len();
        let mut free = 0;
        for (index, slot) in page.chunks_exact(SIZE as usize).enumerate() {
            let at = offset + index as u64 * SIZE;
            let Ok((entry, _)) = Entry::read_from_prefix(slot) else { continue };
            if entry.verify(seed, at, len) && entry.primary.get() >= DATA / PAGE {
                found.objects.push(Object::of(at, &entry, seed));
            } else if is_clean(&entry, at) {
                free += 1;
            } else {
                odd.push(at);
            }
        }
        if found.objects.len() > before || free > 0 {
            suspects.extend(odd);
        }
    });
    progress(len, len);
    found.damaged = suspects;
    found.unreadable = unreadable;
    Ok(found)
}

/// Possible lanes: (offset, end of the range, highest generation), by header or first batch.
pub(super) fn lanes(medium: &dyn Medium, seed: u64, ranges: &[(u64, u64)]) -> Vec<(u64, u64, u64)> {
    let mut found: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for &(first, end) in ranges {
        let (first, end) = (first * PAGE, end * PAGE);
        // Reported as lost.
        let _ = pages(medium, first, end, &mut |offset, page| {
            let headers = HEADERS.map(|copy| {
                let bytes = &page[copy as usize..copy as usize + size_of::<Header>()];
                let magic = bytes[..4] == HEADER_MAGIC.to_le_bytes();
                Header::read_from_bytes(bytes).ok().filter(|_| magic)?.generation(seed, offset)
            });
            let batch =
                batch::Header::read_from_prefix(page).ok().map(|(header, _)| header).filter(|header| {
                    let generation = header.generation.get();
                    header.magic.get() == batch::MAGIC && header.verify(seed, generation, 0, end - offset)
                });
            let header = headers.into_iter().flatten().max().map(|generation| (offset, generation));
            let batch = batch.filter(|_| offset >= first + BODY).map(|b| (offset - BODY, b.generation.get()));
            for (lane, generation) in header.into_iter().chain(batch) {
                let known = found.entry(lane).or_insert((end, 0));
                known.1 = known.1.max(generation);
            }
        });
    }
    found.into_iter().map(|(offset, (end, generation))| (offset, end, generation)).collect()
}
