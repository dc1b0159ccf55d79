//! Blobs of key slots, such as a TPM makes: each lies in further slots, in parts.

use crate::format::checksum;
use crate::format::seal::{BLOB, BlobSlot, KeySlot, SLOT_BLOB, SLOT_COUNT};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// All slots of a key page.
pub(super) type Slots = [KeySlot; SLOT_COUNT];

/// The checksum of a slot of any kind.
pub(super) fn sum(slot: &KeySlot) -> u64 {
    checksum(0, &[KeySlot { checksum: U64::new(0), ..*slot }.as_bytes()])
}

pub(super) fn is_intact(slot: &KeySlot) -> bool {
    sum(slot) == slot.checksum.get()
}

/// Slots that a blob takes.
pub(super) fn slots(blob: &[u8]) -> usize {
    blob.len().div_ceil(BLOB)
}

/// Intact parts of the blob of a slot.
fn parts(slots: &Slots, owner: usize) -> impl Iterator<Item = (usize, BlobSlot)> {
    let intact =
        slots.iter().enumerate().filter(|(_, found)| found.kind.get() == SLOT_BLOB && is_intact(found));
    let read = |found: &KeySlot| BlobSlot::read_from_bytes(found.as_bytes()).ok();
    intact
        .filter_map(move |(slot, found)| Some((slot, read(found)?)))
        .filter(move |(_, part)| usize::from(part.owner.get()) == owner)
}

/// The slots that have the parts of the blob of a slot.
pub(super) fn of(slots: &Slots, owner: usize) -> Vec<usize> {
    parts(slots, owner).map(|(slot, _)| slot).collect()
}

/// The blob of a slot; `None`: a part of it is missing, or damaged.
pub(super) fn read(slots: &Slots, owner: usize) -> Option<Vec<u8>> {
    let mut found: Vec<BlobSlot> = parts(slots, owner).map(|(_, part)| part).collect();
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

/// The slots that have the blob of a slot: as many as it takes.
pub(super) fn made(owner: usize, blob: &[u8]) -> Vec<KeySlot> {
    let all = slots(blob) as u32;
    let made = (0..).zip(blob.chunks(BLOB)).map(|(number, bytes)| {
        let mut part = BlobSlot::new_zeroed();
        part.kind = U16::new(SLOT_BLOB);
        part.owner = U16::new(owner as u16);
        part.len = U32::new(bytes.len() as u32);
        (part.part, part.parts) = (U32::new(number), U32::new(all));
        part.bytes[..bytes.len()].copy_from_slice(bytes);
        let mut slot = KeySlot::new_zeroed();
        slot.as_mut_bytes().copy_from_slice(part.as_bytes());
        slot.checksum = U64::new(sum(&slot));
        slot
    });
    made.collect()
}
