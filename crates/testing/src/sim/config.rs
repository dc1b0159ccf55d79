//! Properties of a simulated medium.

use indelible_store::medium::Transfers;

/// Sizes at which batches of a few kilobytes are written, read and redone in many pieces, and the
/// write combiner is full again and again: for programs so short that every image they leave can be
/// judged.
pub const SMALL: Transfers =
    Transfers::SHIPPED.with_append(256).with_scan(4 << 10).with_direct(2 << 10).with_combine(8 << 10);

/// The largest aligned piece that never tears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TearUnit {
    /// 8 bytes: a DAX device.
    Word,
    /// 64 bytes: a cache line.
    Line,
    /// 512 bytes: a block device.
    Sector,
}

impl TearUnit {
    /// Size in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            TearUnit::Word => 8,
            TearUnit::Line => 64,
            TearUnit::Sector => 512,
        }
    }
}

/// Content of a discarded range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// The old content.
    Keep,
    /// Zeros.
    Zero,
    /// Bytes that were never written.
    Noise,
    /// One of the above, by the seed, anew for each call.
    Any,
}

/// Properties of a medium, fixed when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimConfig {
    /// Unit at which writes tear.
    pub tear_unit: TearUnit,
    /// Whether it is like a disk, behind a page cache, or like memory.
    pub disk: bool,
    /// Content of a discarded range.
    pub discard: Discard,
    /// How many bytes are moved at a time.
    pub transfers: Transfers,
    /// Decides everything that is undefined while the medium runs: discarded contents, how much of
    /// a failed write is visible.
    pub seed: u64,
}

impl Default for SimConfig {
    /// A block device with undefined discards, and transfers as they are shipped.
    fn default() -> Self {
        let transfers = Transfers::SHIPPED;
        Self { tear_unit: TearUnit::Sector, disk: false, discard: Discard::Any, transfers, seed: 0 }
    }
}
