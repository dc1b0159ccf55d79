//! Pages that are brought into memory before they are touched.

use super::engine::Core;
use super::reader::ReadObject;
use super::writer::Object;
use crate::error::{Cause, Result};
use crate::shadow::Shadow;
use crate::sys::PAGE;
use std::ops::Range;

/// Bytes between which others may have the object's lock: a cut, say.
const PIECE: usize = 1 << 20;

impl Object {
    /// Brings the pages of a range of bytes, counted from the object's first, into memory, and
    /// returns how many bytes of it are there then, from its start on. Bytes beyond the object are
    /// ignored.
    ///
    /// Touching a page brings it in as well, but an unreadable page is an error here, and a signal
    /// there. And where [`doctor`](crate::doctor()) says that userfaultfd sees faults of user code
    /// only, system calls on pages of objects that are filled on demand fail with `EFAULT` unless
    /// the pages were touched, or prefaulted.
    ///
    /// Fewer bytes than asked for if [`ahead_limit`](crate::PoolOptions::ahead_limit) or
    /// [`memory_limit`](crate::PoolOptions::memory_limit) allows no more. Other threads may use the
    /// object meanwhile.
    ///
    /// # Errors
    /// `Io`, `Gone`, and so on: a page, which is named, cannot be read. Those before it are in
    /// memory. `NoSpace`: the file system is memory, and has no room for pages of a sparse object.
    pub fn prefault(&self, range: Range<usize>) -> Result<usize> {
        prefault(self.most(range), self.len(), |pages| self.prefault_piece(pages))
            .map_err(|cause| self.error("prefault", cause))
    }

    /// The part of a range of bytes that can be in memory at a time.
    fn most(&self, range: Range<usize>) -> Range<usize> {
        let limit = self.core().shadow().ok().and_then(Shadow::limit);
        first_pages(range, limit)
    }
}

/// The bytes of a range that are in its first pages, so many of them.
fn first_pages(range: Range<usize>, pages: Option<usize>) -> Range<usize> {
    let end = pages.and_then(|pages| (range.start / PAGE).checked_add(pages)?.checked_mul(PAGE));
    range.start..range.end.min(end.unwrap_or(usize::MAX))
}

impl ReadObject {
    /// As [`Object::prefault`].
    ///
    /// # Errors
    /// As for [`Object::prefault`].
    pub fn prefault(&self, range: Range<usize>) -> Result<usize> {
        let range = first_pages(range, self.limit());
        prefault(range, self.len(), |pages| self.prefault_piece(pages))
            .map_err(|cause| self.error("prefault", cause))
    }
}

impl Core {
    /// See [`Shadow::prefault`]. Pages of a sparse object that is mapped get their space, on a
    /// medium that is memory.
    pub(crate) fn prefault(&self, pages: Range<usize>) -> Result<usize, Cause> {
        let shadow = self.shadow()?;
        match shadow.prefault(pages.clone()) {
            Ok(filled) => Ok(filled),
            // Space is what they may lack: it is asked for, so that its want is an error of this
            // name.
            Err(failed) if !self.writer()?.claim(pages.start as u64, pages.len() as u64)? => {
                Err(failed.into())
            }
            Err(_) => Ok(shadow.prefault(pages)?),
        }
    }
}

/// Has `piece` fill the pages of a range of bytes of an object of `len` bytes; returns how many
/// bytes are there.
pub(crate) fn prefault(
    range: Range<usize>,
    len: usize,
    piece: impl Fn(Range<usize>) -> Result<usize, Cause>,
) -> Result<usize, Cause> {
    let end = range.end.min(len);
    let mut at = range.start;
    while at < end {
        let first = at / PAGE;
        let behind = end.min(first * PAGE + PIECE);
        let pages = first..behind.div_ceil(PAGE);
        let wanted = pages.len();
        let filled = piece(pages)?;
        at = behind.min((first + filled) * PAGE).max(at);
        if filled < wanted {
            break;
        }
    }
    Ok(at.saturating_sub(range.start))
}
