//! Results of the heap's own functions.

pub(crate) use crate::error::{HeapError, Limit};

/// Result of the heap's own functions.
pub(crate) type Result<T, E = HeapError> = std::result::Result<T, E>;

/// The error for bytes that contradict themselves.
pub(crate) fn damaged<T>(offset: u64, what: &'static str) -> Result<T> {
    Err(HeapError::Damaged { offset, what })
}
