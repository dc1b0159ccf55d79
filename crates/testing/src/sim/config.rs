use indelible_store::medium::Transfers;

/// Sizes that split short batches into many pieces and fill the write combiner often.
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
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            TearUnit::Word => 8,
            TearUnit::Line => 64,
            TearUnit::Sector => 512,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    Keep,
    Zero,
    Noise,
    /// One of the above, by the seed, for each call.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimConfig {
    pub tear_unit: TearUnit,
    /// A disk behind a page cache, or memory.
    pub disk: bool,
    pub discard: Discard,
    pub transfers: Transfers,
    /// Seed of undefined bytes: discarded contents, visible parts of failed writes.
    pub seed: u64,
}

impl Default for SimConfig {
    fn default() -> Self {
        let transfers = Transfers::SHIPPED;
        Self { tear_unit: TearUnit::Sector, disk: false, discard: Discard::Any, transfers, seed: 0 }
    }
}
