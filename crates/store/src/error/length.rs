/// Why a pool keeps its length.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages tell")]
pub enum LengthError {
    #[error("the pool has {old} bytes already, more than {len}: a pool becomes longer, not shorter")]
    NotLonger { old: u64, len: u64 },
    #[error("{len} bytes are more than the pool can have: {limit} {max}")]
    TooLong { len: u64, max: u64, limit: &'static str },
}
