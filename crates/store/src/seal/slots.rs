use super::PageBytes;
use crate::format::checksum;
use crate::format::seal::{KeySlot, SLOTS};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const SLOT: usize = size_of::<KeySlot>();

pub(super) fn slot(page: &PageBytes, slot: usize) -> KeySlot {
    let at = SLOTS + slot * SLOT;
    KeySlot::read_from_bytes(&page[at..at + SLOT]).unwrap_or_else(|_| KeySlot::new_zeroed())
}

pub(super) fn put(page: &mut PageBytes, slot: usize, with: &KeySlot) {
    let at = SLOTS + slot * SLOT;
    page[at..at + SLOT].copy_from_slice(with.as_bytes());
}

pub(super) fn is_intact(slot: &KeySlot) -> bool {
    sum(slot) == slot.checksum.get()
}

pub(super) fn sum(slot: &KeySlot) -> u64 {
    checksum(0, &[KeySlot { checksum: U64::new(0), ..*slot }.as_bytes()])
}
