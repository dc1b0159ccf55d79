pub(crate) use crate::error::{HeapError, Limit};

pub(crate) type Result<T, E = HeapError> = std::result::Result<T, E>;

pub(crate) fn damaged<T>(offset: u64, what: &'static str) -> Result<T> {
    Err(HeapError::Damaged { offset, what })
}
