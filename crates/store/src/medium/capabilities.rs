//! Properties of a medium that decide between two ways.

/// A medium's abilities and costs, fixed while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Size and alignment of writes that never tear, in bytes.
    pub tear_unit: usize,
    /// Commits share durable writes and lanes, because these are expensive.
    pub shares_commits: bool,
    /// A barrier waits for all writes, a durable write for its own.
    pub barriers_wait_for_all: bool,
    /// Reads and writes are loads and stores.
    pub byte_addressable: bool,
    /// The system writes back later, and reports failures later.
    pub writes_back_later: bool,
    /// Space can be reserved without a write (exception 7 of the [module](super)).
    pub reserves_blocks: bool,
}

impl Capabilities {
    /// A file or block device behind the page cache; disks may tear above 512 bytes.
    pub const DISK: Capabilities = Capabilities {
        tear_unit: 512,
        shares_commits: true,
        barriers_wait_for_all: true,
        byte_addressable: false,
        writes_back_later: true,
        reserves_blocks: true,
    };
    /// Memory.
    pub const MEMORY: Capabilities = Capabilities {
        tear_unit: 8,
        shares_commits: false,
        barriers_wait_for_all: false,
        byte_addressable: true,
        writes_back_later: false,
        reserves_blocks: false,
    };
}
