//! The bytes on the medium. FORMAT.md is the normative description; `tests/format.rs` holds it
//! against this module. Every persisted struct is plain little-endian data without padding and
//! carries no run-time field.
//!
//! Parsed-but-untrusted is a type here: the structs hold bytes as read; only the `verify`/`parse`
//! functions beside each struct hand out values the rest of the crate may act on.

pub mod batch;
pub mod ecc;
pub mod entry;
mod flags;
pub mod lane;
pub mod node;
pub mod root;
pub mod seal;
pub mod superblock;
pub mod v1;

use twox_hash::XxHash3_64;

/// Unit of allocation and of tree nodes, in bytes. Equal to the smallest page of the machines
/// Indelible runs on.
pub const PAGE: u64 = 4096;

/// Unit of logging, in bytes: the smallest redo record.
pub const LINE: u64 = 64;

/// The format this code writes, and the only one it uses. Pools of format 1 are converted by an
/// upgrade.
pub const VERSION: u32 = 2;

/// The release whose format this is, as superblocks name it to the software that does not know
/// their version.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// Offset of the lane directory.
pub const LANE_DIRECTORY: u64 = 2 * PAGE;

/// Number of lanes a pool can have, hence of lanes in use by writers at one time.
pub const LANES: u32 = 128;

/// Offset of the table root page.
pub const TABLE_ROOT: u64 = LANE_DIRECTORY + LANES as u64 * 64;

/// Offset of the record of the newest batch of the table that was applied, in the table root page.
pub const APPLIED: u64 = TABLE_ROOT + PAGE / 4;

/// Offset of the apply words, in the table root page: one for each lane.
pub const APPLY_WORDS: u64 = TABLE_ROOT + PAGE / 2;

/// Offset of a lane's apply word: 16 bytes apart, the words of the first 32 lanes in lines of their
/// own.
#[must_use]
pub fn apply_word(lane: u32) -> u64 {
    let (line, place) = (u64::from(lane % 32), u64::from(lane % LANES / 32));
    APPLY_WORDS + line * LINE + place * 16
}

/// Offset of a lane's revision, beside its apply word. It rises before a process that holds the
/// lane's primaries still changes entries of objects on it.
#[must_use]
pub fn revision(lane: u32) -> u64 {
    apply_word(lane) + 8
}

/// Offset of the table lane.
pub const TABLE_LANE: u64 = TABLE_ROOT + PAGE;

/// Length of the table lane in bytes, its header page included.
pub const TABLE_LANE_LEN: u64 = 256 * 1024;

/// First byte of the data region.
pub const DATA: u64 = TABLE_LANE + TABLE_LANE_LEN;

/// The smallest pool, in bytes.
pub const MIN_POOL: u64 = 1 << 20;

/// The longest pool, in bytes.
pub const MAX_POOL: u64 = 32 << 40;

/// 64-bit XXH3 over `parts`, seeded so that bytes of another pool, or of another role, do not pass.
#[must_use]
pub fn checksum(seed: u64, parts: &[&[u8]]) -> u64 {
    if let [one] = parts {
        return XxHash3_64::oneshot_with_seed(seed, one);
    }
    let mut sum = Checksum::new(seed);
    parts.iter().for_each(|part| sum.add(part));
    sum.get()
}

/// A [`checksum`] of bytes that come one after the other.
pub(crate) struct Checksum(XxHash3_64);

impl Checksum {
    pub(crate) fn new(seed: u64) -> Self {
        Checksum(XxHash3_64::with_seed(seed))
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        std::hash::Hasher::write(&mut self.0, bytes);
    }

    pub(crate) fn get(&self) -> u64 {
        std::hash::Hasher::finish(&self.0)
    }
}

/// `bytes` rounded up to whole pages.
#[must_use]
pub fn pages_for(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE)
}
