//! The word of a far pointer: the number of an entry in the object's table of other objects,
//! and an offset in bytes.

const OFFSET_BITS: u32 = 40;
pub const MOST_OFFSET: u64 = (1 << OFFSET_BITS) - 1;
/// The largest number of an entry; 0 is the object itself.
pub const MOST_INDEX: u32 = (1 << (u64::BITS - OFFSET_BITS)) - 1;

pub const fn pack(index: u32, offset: u64) -> u64 {
    (index as u64) << OFFSET_BITS | offset
}

#[inline]
pub const fn index(word: u64) -> u32 {
    (word >> OFFSET_BITS) as u32
}

#[inline]
pub const fn offset(word: u64) -> u64 {
    word & MOST_OFFSET
}

#[inline]
pub fn own(word: u64) -> Option<u64> {
    (index(word) == 0).then(|| offset(word))
}
