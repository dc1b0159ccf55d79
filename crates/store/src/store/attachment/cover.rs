//! First changes of a base's pages: the batch has the whole page, and its bit in the object's
//! bitmap, so that both are durable together.
//!
//! Where barriers are cheap, the base's page is copied to its place instead, durable before
//! publication: no reader looks there until the bit is set.

use crate::error::Result;
use crate::format::{LINE, PAGE};
use crate::lane::Batch;
use crate::medium::Medium;
use crate::mutant::Mutant;
use crate::table::{Layers, Located};
use std::collections::BTreeMap;
use std::ops::Range;

const LINES: u64 = PAGE / LINE;

pub(super) fn needs_cover(batch: &Batch, first: usize, object: &Located, layers: &Layers) -> bool {
    let start = object.entry.primary_offset();
    batch.targets().skip(first).any(|(target, lines)| {
        let (from, to) = ((target - start) / PAGE, (target - start + lines * LINE).div_ceil(PAGE));
        (from..to).any(|page| !layers.owns(page))
    })
}

pub(super) struct Covered {
    pub(super) pages: Vec<u64>,
    /// Whether copied bytes need a barrier before publication.
    pub(super) unproven: bool,
}

/// # Errors
/// The base cannot be read. `NoSpace`: nothing happened.
pub(super) fn cover(
    batch: &mut Batch,
    first: usize,
    object: &Located,
    layers: &Layers,
    medium: &dyn Medium,
    reserve: &mut dyn FnMut(u64, u64) -> Result<()>,
) -> Result<Covered> {
    let start = object.entry.primary_offset();
    let mut fresh: BTreeMap<u64, u64> = BTreeMap::new();
    for (target, lines) in batch.targets().skip(first) {
        let (from, to) = ((target - start) / LINE, (target - start) / LINE + lines);
        for page in from / LINES..=(to - 1) / LINES {
            if !layers.owns(page) {
                let (begin, end) = (page * LINES, (page + 1) * LINES);
                *fresh.entry(page).or_default() |= mask(from.max(begin) - begin..to.min(end) - begin);
            }
        }
    }
    let mut bytes = [0; PAGE as usize];
    let (ahead, mut unproven) = (medium.capabilities().byte_addressable, false);
    for (page, have) in &fresh {
        if *have == u64::MAX || Mutant::PageInPart.is_on() {
            continue;
        }
        if ahead {
            let place = start + page * PAGE;
            reserve(place, PAGE)?;
            medium.copy(layers.home(*page), place, PAGE as usize)?;
            unproven = true;
            continue;
        }
        layers.read(medium, page * PAGE, &mut bytes)?;
        for lines in gaps(*have) {
            let (from, to) = (lines.start * LINE, lines.end * LINE);
            batch.copy_lines(start + page * PAGE + from, &bytes[from as usize..to as usize]);
        }
    }
    let (first, then) = layers.claiming(fresh.keys().copied());
    for (offset, page) in &first {
        medium.reserve(*offset, page.len() as u64)?;
    }
    for (offset, bytes) in first.iter().chain(&then).filter(|_| !Mutant::PageUnclaimed.is_on()) {
        batch.copy_lines(*offset, bytes);
    }
    Ok(Covered { pages: fresh.into_keys().collect(), unproven })
}

fn mask(lines: Range<u64>) -> u64 {
    u64::MAX >> (LINES - (lines.end - lines.start)) << lines.start
}

fn gaps(have: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += (have >> at.min(LINES - 1)).trailing_ones() as u64;
        if at >= LINES {
            return None;
        }
        let from = at;
        at += u64::from((have >> from).trailing_zeros()).min(LINES - from);
        Some(from..at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_what_is_there_are_all_lines() {
        let shapes = [0, u64::MAX, 1, 1 << 63, u64::MAX >> 1, !1];
        let mixed = (1..2000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !(n << 40));
        for have in shapes.into_iter().chain(mixed) {
            let found: Vec<_> = gaps(have).collect();
            assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start), "{have:#x}: {found:?}");
            assert_eq!(found.into_iter().fold(have, |all, lines| all ^ mask(lines)), u64::MAX, "{have:#x}");
        }
    }
}
