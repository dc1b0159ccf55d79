//! Lengths that a pool cannot be given.

/// A pool stays as long as it is.
#[derive(Debug, thiserror::Error)]
pub enum LengthError {
    /// It becomes no shorter.
    #[error("the pool has {old} bytes already, more than {len}: a pool becomes longer, not shorter")]
    NotLonger {
        /// Length of the pool.
        old: u64,
        /// Length asked for.
        len: u64,
    },
    /// It cannot be as long.
    #[error("{len} bytes are more than the pool can have: {limit} {max}")]
    TooLong {
        /// Length asked for.
        len: u64,
        /// Greatest length.
        max: u64,
        /// The thing that has no more.
        limit: &'static str,
    },
}
