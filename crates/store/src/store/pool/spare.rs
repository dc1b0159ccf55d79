//! The copy of the superblock behind the pool, in case both slots, the first 8 KiB, are lost.
//!
//! Invariant: the copy for a length is durable before the slots state that length. Only the length
//! changes it. Pools of earlier releases, and those that fill their device, have none.

use crate::error::{Result, StoreError};
use crate::format::root::Root;
use crate::format::superblock::{MAGIC, Superblock};
use crate::format::{MIN_POOL, PAGE, TABLE_LANE, TABLE_LANE_LEN, TABLE_ROOT, lane};
use crate::lane::Witnesses;
use crate::medium::{Medium, read_struct, write_fresh};
use zerocopy::{FromBytes, IntoBytes};

const PIECE: u64 = 1 << 20;

pub(in crate::store) fn has_room(medium: &dyn Medium, superblock: &Superblock) -> bool {
    superblock.length.get().checked_add(PAGE).is_some_and(|end| end <= medium.len())
}

pub(in crate::store) fn is_spared(medium: &dyn Medium, superblock: &Superblock) -> bool {
    let copy = || read_struct::<Superblock>(medium, superblock.length.get());
    has_room(medium, superblock) && copy().is_ok_and(|found| found.as_bytes() == superblock.copy().as_bytes())
}

pub(in crate::store) fn write_spare(medium: &dyn Medium, superblock: &Superblock) -> Result<()> {
    if has_room(medium, superblock) {
        let mut page = [0; PAGE as usize];
        page[..size_of::<Superblock>()].copy_from_slice(superblock.copy().as_bytes());
        write_fresh(medium, superblock.length.get(), &page)?;
    }
    Ok(())
}

pub(in crate::store) fn wipe_spare(medium: &dyn Medium, offset: u64) -> Result<()> {
    let size = size_of::<Superblock>() as u64;
    let fits = offset.checked_add(size).is_some_and(|end| end <= medium.len());
    if fits && read_struct::<Superblock>(medium, offset)?.magic == MAGIC {
        medium.write_durable(offset, &[0; size_of::<Superblock>()])?;
    }
    Ok(())
}

/// The copy, if both slots are lost; `why`: their error.
///
/// The last page first, then all from the end: on a longer medium a copy must match the table,
/// because objects may hold other pools' bytes.
pub(in crate::store) fn find_spare(medium: &dyn Medium, why: &StoreError) -> Option<Superblock> {
    let lost = match why {
        StoreError::Damaged { .. } => true,
        StoreError::NotAPool => false,
        _ => return None,
    };
    let whole = medium.len() / PAGE * PAGE;
    let last = whole.checked_sub(PAGE).filter(|last| *last >= MIN_POOL)?;
    let mut bytes = vec![0; PIECE as usize];
    let judge = |page: u64, bytes: &[u8]| {
        let (found, _) = Superblock::read_from_prefix(bytes).ok()?;
        (found.length.get() == page && found.verify(medium.len()).is_ok()).then_some(found)
    };
    if medium.read(last, &mut bytes[..PAGE as usize]).is_ok()
        && let Some(found) = judge(last, &bytes)
    {
        return Some(found);
    }
    if !lost && !has_table(medium) {
        return None;
    }
    let mut end = last;
    while end > MIN_POOL {
        let start = end.saturating_sub(PIECE).max(MIN_POOL);
        let piece = &mut bytes[..(end - start) as usize];
        if medium.read(start, piece).is_ok() {
            let pages = piece.chunks(PAGE as usize).enumerate().rev();
            let mut found = pages.filter_map(|(page, bytes)| judge(start + page as u64 * PAGE, bytes));
            if let Some(found) = found.find(|found| goes_with_table(medium, found)) {
                return Some(found);
            }
        }
        end = start;
    }
    None
}

fn has_table(medium: &dyn Medium) -> bool {
    let magic = |offset: u64| {
        let mut bytes = [0; 4];
        medium.read(offset, &mut bytes).ok().map(|()| u32::from_le_bytes(bytes))
    };
    magic(TABLE_ROOT) == Some(crate::format::root::MAGIC)
        || lane::HEADERS.iter().any(|copy| magic(TABLE_LANE + copy) == Some(lane::HEADER_MAGIC))
}

fn goes_with_table(medium: &dyn Medium, found: &Superblock) -> bool {
    let (seed, len) = (found.seed.get(), found.length.get());
    let root = read_struct::<Root>(medium, TABLE_ROOT).is_ok_and(|root| root.verify(seed, len));
    let lane = || Witnesses::read(medium, seed, TABLE_LANE, TABLE_LANE_LEN);
    root || lane().is_ok_and(|found| found.copies.iter().any(Option::is_some))
}
