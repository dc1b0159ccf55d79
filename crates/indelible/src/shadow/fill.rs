#![allow(unsafe_code)]

use super::error::ShadowError;
use crate::dirty::Rung;
use crate::fault::{PageError, PageSource};
use crate::mapping::Mapping;
use crate::sys::PAGE;
use crate::sys::mmap::{self, Protection};
use std::ops::Range;

const PIECE: usize = 1 << 20;

pub(super) fn protection(rung: Option<Rung>) -> Protection {
    match rung {
        Some(rung) if !rung.starts_read_only() => Protection::ReadWrite,
        _ => Protection::Read,
    }
}

pub(super) fn protect(mapping: &Mapping, from: usize, rung: Option<Rung>) -> Result<(), ShadowError> {
    let wanted = protection(rung);
    if wanted == Protection::ReadWrite {
        return Ok(());
    }
    // SAFETY: our own mapping, filled a moment ago and not handed out yet.
    unsafe { mmap::protect(mapping.addr() + from, mapping.len() - from, wanted) }
        .map_err(ShadowError::Protect)
}

pub(super) fn fill(
    mapping: &Mapping,
    range: Range<usize>,
    source: &dyn PageSource,
) -> Result<(), ShadowError> {
    assert!(range.end <= mapping.len(), "bytes beyond the object");
    let mut at = range.start;
    while at < range.end {
        let n = PIECE.min(range.end - at);
        // SAFETY: mapped, writable, and not handed out yet: no other code knows of these bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(mapping.base().as_ptr().add(at), n) };
        source.read(at / PAGE, bytes)?;
        at += n;
    }
    Ok(())
}

pub(super) fn populate(base: usize, pages: Range<usize>) -> Result<usize, PageError> {
    let done =
        |pages: Range<usize>| mmap::populate_for_reading(base + pages.start * PAGE, pages.len() * PAGE);
    let mut at = pages.start;
    while at < pages.end {
        let piece = at..pages.end.min(at + PIECE / PAGE);
        match done(piece.clone()) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EPERM | libc::ENOSYS)) => {
                break;
            }
            Err(_) => {
                for page in piece.clone() {
                    done(page..page + 1).map_err(|error| PageError { page, source: error.into() })?;
                }
            }
            Ok(()) => {}
        }
        at = piece.end;
    }
    Ok(pages.len())
}
