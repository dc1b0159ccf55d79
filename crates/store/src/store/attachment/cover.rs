//! First changes of pages that are the base's: a batch has them whole, and says in the object's bitmap that they are its own.
//!
//! The bitmap's lines are lines of the batch as the object's are, so that redo, checkpoint and recovery know nothing of bases: a
//! page and its bit are durable together or not at all. The caller, who collects changes, knows nothing of them either: lines that are
//! not in the batch are the base's, and are added here.

use crate::error::Result;
use crate::format::{LINE, PAGE};
use crate::lane::Batch;
use crate::medium::Medium;
use crate::mutant::Mutant;
use crate::table::{Layers, Located, PAGES_A_LINE};
use std::collections::BTreeMap;
use std::ops::Range;

const LINES: u64 = PAGE / LINE;

/// Adds to the current section of a batch, whose runs begin at number `first`, what pages need that are not the object's own.
/// Returns them: once the batch is durable they are.
///
/// # Errors
/// The base cannot be read.
pub(super) fn cover(
    batch: &mut Batch,
    first: usize,
    object: &Located,
    layers: &Layers,
    medium: &dyn Medium,
) -> Result<Vec<u64>> {
    let start = object.entry.primary_offset();
    // Lines that the batch has of each page, one bit each.
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
    for (page, have) in &fresh {
        if *have == u64::MAX || Mutant::PageInPart.is_on() {
            continue;
        }
        layers.read(medium, page * PAGE, &mut bytes)?;
        for lines in gaps(*have) {
            let (from, to) = (lines.start * LINE, lines.end * LINE);
            batch.copy_lines(start + page * PAGE + from, &bytes[from as usize..to as usize]);
        }
    }
    let mut bits: BTreeMap<u64, [u8; LINE as usize]> = BTreeMap::new();
    for page in fresh.keys() {
        let line = bits.entry(page / PAGES_A_LINE).or_insert_with(|| layers.line_of(*page));
        line[(page % PAGES_A_LINE / 8) as usize] |= 1 << (page % 8);
    }
    for (index, line) in bits.iter().filter(|_| !Mutant::PageUnclaimed.is_on()) {
        batch.copy_lines(object.entry.bitmap_offset() + index * LINE, line);
    }
    Ok(fresh.into_keys().collect())
}

/// The bits of these lines.
fn mask(lines: Range<u64>) -> u64 {
    u64::MAX >> (LINES - (lines.end - lines.start)) << lines.start
}

/// Runs of lines whose bits are not set.
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
