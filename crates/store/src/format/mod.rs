//! The bytes on the medium, as FORMAT.md defines them. Only `verify`/`parse` functions hand out
//! trusted values.

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

/// Unit of allocation and of tree nodes, in bytes.
pub const PAGE: u64 = 4096;

/// Unit of logging, in bytes.
pub const LINE: u64 = 64;

/// The format that this code writes; an upgrade converts format 1.
pub const VERSION: u32 = 2;

/// The release, as superblocks name it.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// Offset of the lane directory.
pub const LANE_DIRECTORY: u64 = 2 * PAGE;

/// Lanes of a pool, hence most lanes of writers at one time.
pub const LANES: u32 = 128;

/// Offset of the table root page.
pub const TABLE_ROOT: u64 = LANE_DIRECTORY + LANES as u64 * 64;

/// Offset of [`root::Applied`] in the table root page.
pub const APPLIED: u64 = TABLE_ROOT + PAGE / 4;

/// Offset of the apply words, one per lane, in the table root page.
pub const APPLY_WORDS: u64 = TABLE_ROOT + PAGE / 2;

/// Offset of a lane's apply word: 16 bytes apart, those of the first 32 lanes on lines of their
/// own.
#[must_use]
pub fn apply_word(lane: u32) -> u64 {
    let (line, place) = (u64::from(lane % 32), u64::from(lane % LANES / 32));
    APPLY_WORDS + line * LINE + place * 16
}

/// Offset of a lane's revision, beside its apply word.
#[must_use]
pub fn revision(lane: u32) -> u64 {
    apply_word(lane) + 8
}

/// Offset of the table lane.
pub const TABLE_LANE: u64 = TABLE_ROOT + PAGE;

/// Length of the table lane in bytes, header page included.
pub const TABLE_LANE_LEN: u64 = 256 * 1024;

/// First byte of the data region.
pub const DATA: u64 = TABLE_LANE + TABLE_LANE_LEN;

/// The smallest pool, in bytes.
pub const MIN_POOL: u64 = 1 << 20;

/// The longest pool, in bytes.
pub const MAX_POOL: u64 = 32 << 40;

/// 64-bit XXH3 of `parts`.
#[must_use]
pub fn checksum(seed: u64, parts: &[&[u8]]) -> u64 {
    if let [one] = parts {
        return XxHash3_64::oneshot_with_seed(seed, one);
    }
    let mut sum = Checksum::new(seed);
    parts.iter().for_each(|part| sum.add(part));
    sum.get()
}

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
