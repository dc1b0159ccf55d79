//! Persistent data: the root and its types.

use indelible::Persist;
use indelible::collections::{PBTreeMap, PHashMap, PString, PVec};

pub(crate) const ROOT: &str = "words";

/// Words and files refer to each other by number.
#[derive(Persist, Default)]
#[repr(C)]
pub(crate) struct Words<'h> {
    pub(crate) step: u64,
    pub(crate) postings: u64,
    pub(crate) tokens: u64,
    pub(crate) bytes: u64,
    pub(crate) next: u32,
    pub(crate) numbers: PBTreeMap<'h, PString<'h>, u32>,
    pub(crate) words: PVec<'h, Word<'h>>,
    pub(crate) paths: PHashMap<'h, PVec<'h, u8>, u32>,
    pub(crate) files: PBTreeMap<'h, u32, File<'h>>,
}

#[derive(Persist, Default)]
#[repr(C)]
pub(crate) struct Word<'h> {
    pub(crate) count: u64,
    /// Ascending by file.
    pub(crate) postings: PVec<'h, Posting>,
}

#[derive(Persist, Clone, Copy)]
#[repr(C)]
pub(crate) struct Posting {
    pub(crate) file: u32,
    /// At most as many as a file of 64 MiB can have.
    pub(crate) count: u32,
}

#[derive(Persist)]
#[repr(C)]
pub(crate) struct File<'h> {
    pub(crate) path: PVec<'h, u8>,
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: i64,
    pub(crate) tokens: u64,
    pub(crate) bytes: u64,
    pub(crate) words: PVec<'h, u32>,
}

impl Word<'_> {
    pub(crate) fn posting(&self, file: u32) -> Option<usize> {
        self.postings.binary_search_by_key(&file, |posting| posting.file).ok()
    }
}
