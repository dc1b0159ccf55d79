//! The properties of a medium that decide between two ways to do the same.

/// Abilities of a medium, and costs; fixed while it is open. Each part of the store asks for the
/// one property that decides its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Bytes that never tear: a write of this size, aligned to it, is durable wholly or not at all.
    pub tear_unit: usize,
    /// A durable write costs so much that concurrent commits should share it, and the lane that it
    /// goes to.
    pub shares_commits: bool,
    /// A barrier waits for all processes' writes to the medium, a durable write for its own bytes
    /// alone.
    pub barriers_wait_for_all: bool,
    /// Reads and writes are loads and stores: nothing is gained by keeping pages in memory, and a
    /// batch may borrow the bytes that it consists of.
    pub byte_addressable: bool,
    /// The system writes bytes back later than it accepts them, and reports a failure to the next
    /// caller that asks for durability.
    pub writes_back_later: bool,
    /// Space can be reserved without a write. Its first write then counts for more than any other
    /// (exception 7 of the [module](super)).
    pub reserves_blocks: bool,
}

impl Capabilities {
    /// A file, or a block device, behind the system's page cache. No disk is allowed to tear 512
    /// bytes.
    pub const DISK: Capabilities = Capabilities {
        tear_unit: 512,
        shares_commits: true,
        barriers_wait_for_all: true,
        byte_addressable: false,
        writes_back_later: true,
        reserves_blocks: true,
    };
    /// Memory, whose durability is the processor's business.
    pub const MEMORY: Capabilities = Capabilities {
        tear_unit: 8,
        shares_commits: false,
        barriers_wait_for_all: false,
        byte_addressable: true,
        writes_back_later: false,
        reserves_blocks: false,
    };
}
