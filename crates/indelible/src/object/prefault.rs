use super::engine::Core;
use super::reader::ReadObject;
use super::writer::Object;
use crate::error::{Cause, Result};
use crate::shadow::Shadow;
use crate::sys::PAGE;
use std::ops::Range;

const PIECE: usize = 1 << 20;

impl Object {
    /// Brings the pages of a range of bytes into memory; returns how many of its bytes, from its
    /// start, are there: fewer by [`ahead_limit`](crate::PoolOptions::ahead_limit) or
    /// [`memory_limit`](crate::PoolOptions::memory_limit). System calls need this if
    /// [`doctor`](crate::doctor()) says that userfaultfd sees faults of user code only.
    ///
    /// # Errors
    /// `Io`, `Gone`, and others: the named page cannot be read; those before it are in memory.
    /// `NoSpace` for a sparse object in memory.
    pub fn prefault(&self, range: Range<usize>) -> Result<usize> {
        prefault(self.most(range), self.len(), |pages| self.prefault_piece(pages))
            .map_err(|cause| self.error("prefault", cause))
    }

    fn most(&self, range: Range<usize>) -> Range<usize> {
        let limit = self.core().shadow().ok().and_then(Shadow::limit);
        first_pages(range, limit)
    }
}

fn first_pages(range: Range<usize>, pages: Option<usize>) -> Range<usize> {
    let end = pages.and_then(|pages| (range.start / PAGE).checked_add(pages)?.checked_mul(PAGE));
    range.start..range.end.min(end.unwrap_or(usize::MAX))
}

impl ReadObject {
    /// As [`Object::prefault`].
    pub fn prefault(&self, range: Range<usize>) -> Result<usize> {
        let range = first_pages(range, self.limit());
        prefault(range, self.len(), |pages| self.prefault_piece(pages))
            .map_err(|cause| self.error("prefault", cause))
    }
}

impl Core {
    /// On a medium that is memory, pages of a mapped sparse object get their space.
    pub(crate) fn prefault(&self, pages: Range<usize>) -> Result<usize, Cause> {
        let shadow = self.shadow()?;
        match shadow.prefault(pages.clone()) {
            Ok(filled) => Ok(filled),
            // They may lack space: asking for it gives the proper error.
            Err(failed) if !self.writer()?.claim(pages.start as u64, pages.len() as u64)? => {
                Err(failed.into())
            }
            Err(_) => Ok(shadow.prefault(pages)?),
        }
    }
}

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
