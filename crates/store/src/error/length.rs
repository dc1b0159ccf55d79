/// Why a pool keeps its length.
#[derive(Debug, thiserror::Error)]
pub enum LengthError {
    /// A pool cannot shrink.
    #[error("the pool has {old} bytes already, more than {len}: a pool becomes longer, not shorter")]
    NotLonger {
        /// Length of the pool.
        old: u64,
        /// Requested length.
        len: u64,
    },
    /// The pool cannot be that long.
    #[error("{len} bytes are more than the pool can have: {limit} {max}")]
    TooLong {
        /// Requested length.
        len: u64,
        /// Greatest length.
        max: u64,
        /// The limiting resource.
        limit: &'static str,
    },
}
