//! Views of attached objects: the places of their cells in memory.

use super::marks::Marks;
use std::sync::Arc;

/// The memory that an object's cells are in.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// First byte.
    pub(super) base: usize,
    /// Bytes, whole pages.
    pub(super) len: usize,
    /// Offset of the object's entry.
    pub(super) object: u64,
    /// Lines that are to be published; `None`: each commit tells its own.
    pub(super) marks: Option<Arc<Marks>>,
}

impl View {
    pub(super) fn marks(&self) -> Option<&Marks> {
        self.marks.as_deref()
    }
}
