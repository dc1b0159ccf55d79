//! The number that a description is known by.

use indelible_store::format::checksum;

/// Version of the formats of the collections: part of every fingerprint.
pub(crate) const VERSION: u32 = 1;

/// The fingerprint of a description: 128 bits of all its words, each followed by a blank.
pub(crate) fn fingerprint(text: &str) -> u128 {
    let version = VERSION.to_le_bytes();
    let half = |seed| u128::from(checksum(seed, &[&version, text.as_bytes()]));
    half(1) << 64 | half(2)
}
