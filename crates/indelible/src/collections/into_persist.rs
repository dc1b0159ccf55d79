use super::persist::Persist;
use super::place::HeapRef;
use crate::error::Result;

/// A value that becomes a `T` when stored in a heap: `&str` a [`PString`](super::PString), every
/// `T` itself.
pub trait IntoPersist<'h, T>: Sized {
    /// The value, with its blocks allocated in `heap`.
    ///
    /// # Errors
    /// `HeapFull`.
    fn into_persist(self, heap: HeapRef<'h>) -> Result<T>;
}

impl<'h, T: Persist<'h>> IntoPersist<'h, T> for T {
    #[inline]
    fn into_persist(self, _: HeapRef<'h>) -> Result<T> {
        Ok(self)
    }
}
