//! Blobs of key slots, such as a TPM's, in parts in further slots.

use super::PageBytes;
use super::slots::{is_intact, put, slot, sum};
use crate::format::seal::{BLOB, BlobSlot, KeySlot, SLOT_BLOB, SLOT_COUNT};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

pub(super) fn slots(blob: &[u8]) -> usize {
    blob.len().div_ceil(BLOB)
}

fn parts(page: &PageBytes, owner: usize) -> impl Iterator<Item = (usize, BlobSlot)> {
    let all = (0..SLOT_COUNT).map(|number| (number, slot(page, number)));
    let intact = all.filter(|(_, found)| found.kind.get() == SLOT_BLOB && is_intact(found));
    let read = |found: &KeySlot| BlobSlot::read_from_bytes(found.as_bytes()).ok();
    intact
        .filter_map(move |(slot, found)| Some((slot, read(&found)?)))
        .filter(move |(_, part)| usize::from(part.owner.get()) == owner)
}

pub(super) fn of(page: &PageBytes, owner: usize) -> Vec<usize> {
    parts(page, owner).map(|(slot, _)| slot).collect()
}

/// A slot's blob; `None`: a part is missing or damaged.
pub(super) fn read(page: &PageBytes, owner: usize) -> Option<Vec<u8>> {
    let mut found: Vec<BlobSlot> = parts(page, owner).map(|(_, part)| part).collect();
    found.sort_by_key(|part| part.part.get());
    let mut blob = Vec::new();
    for (number, part) in (0..).zip(&found) {
        if part.part.get() != number || part.parts.get() as usize != found.len() {
            return None;
        }
        blob.extend_from_slice(part.bytes.get(..part.len.get() as usize)?);
    }
    (!found.is_empty()).then_some(blob)
}

pub(super) fn write(page: &mut PageBytes, owner: usize, into: &[usize], blob: &[u8]) {
    for ((number, bytes), slot) in (0..).zip(blob.chunks(BLOB)).zip(into) {
        let mut part = BlobSlot::new_zeroed();
        part.kind = U16::new(SLOT_BLOB);
        part.owner = U16::new(owner as u16);
        part.len = U32::new(bytes.len() as u32);
        (part.part, part.parts) = (U32::new(number), U32::new(into.len() as u32));
        part.bytes[..bytes.len()].copy_from_slice(bytes);
        let mut slot_bytes = KeySlot::new_zeroed();
        slot_bytes.as_mut_bytes().copy_from_slice(part.as_bytes());
        slot_bytes.checksum = U64::new(sum(&slot_bytes));
        put(page, *slot, &slot_bytes);
    }
}
