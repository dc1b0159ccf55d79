//! Compares a shadow's pages with the primary, line by line.
//!
//! Other threads may store to these pages against the contract, so assembly reads them, never
//! references: a torn line is found again by the next psync.

#![allow(unsafe_code)]

use crate::sys::PAGE;
use crate::sys::flush::{self, LINE};

/// Bit `i` for bytes `[64 i, 64 i + 64)`. `ahead`: the next two pages, as a hint.
///
/// # Safety
/// Shadow and primary are valid for reads of 4096 bytes, and aligned to 8.
#[inline]
pub(crate) unsafe fn lines_changed(shadow: *const u8, primary: *const u8, ahead: [*const u8; 2]) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { flush::lines_changed(shadow, primary, ahead) }
}

/// As [`lines_changed`], of these lines alone.
///
/// # Safety
/// As for [`lines_changed`].
#[inline]
pub(crate) unsafe fn lines_changed_among(shadow: *const u8, primary: *const u8, lines: u64) -> u64 {
    let (mut rest, mut changed) = (lines, 0);
    while rest != 0 {
        let at = rest.trailing_zeros() as usize * LINE;
        let differs = (0..LINE).step_by(8).any(|word| {
            // SAFETY: within the pages, which are aligned; volatile, as others may store there.
            unsafe {
                shadow.add(at + word).cast::<u64>().read_volatile()
                    != primary.add(at + word).cast::<u64>().read_volatile()
            }
        });
        changed |= u64::from(differs) << (at / LINE);
        rest &= rest - 1;
    }
    changed
}

/// Samples one line of eight, at varying places, so that records of a power-of-two size do not
/// mislead.
///
/// # Safety
/// Both are valid for reads of 4096 bytes, and aligned to 8.
#[inline]
pub(crate) unsafe fn all_changed(shadow: *const u8, primary: *const u8) -> bool {
    (0..8).all(|group| {
        let at = (group * 8 + group * 5 % 8) * LINE;
        // SAFETY: within the pages; volatile, as others may store there.
        unsafe {
            shadow.add(at).cast::<u64>().read_volatile() != primary.add(at).cast::<u64>().read_volatile()
        }
    })
}

/// `None`: `out` is too short, and nothing was copied.
///
/// # Safety
/// `shadow` is valid for reads of 4096 bytes, and `out` lies outside every shadow.
#[inline]
pub(crate) unsafe fn copy_lines(shadow: *const u8, mask: u64, out: &mut [u8]) -> Option<usize> {
    let bytes = mask.count_ones() as usize * LINE;
    let out = out.get_mut(..bytes)?;
    let mut at = 0;
    each_run(mask, |first, count| {
        // SAFETY: the runs lie within the page and, being `bytes` together, within `out`.
        unsafe { flush::copy(out.as_mut_ptr().add(at), shadow.add(first * LINE), count * LINE) };
        at += count * LINE;
    });
    Some(bytes)
}

/// Copies a whole page.
///
/// # Safety
/// As for [`copy_lines`].
#[inline]
pub(crate) unsafe fn copy_page(shadow: *const u8, out: &mut [u8; PAGE]) {
    // SAFETY: the caller's promise.
    unsafe { flush::copy(out.as_mut_ptr(), shadow, PAGE) }
}

/// # Safety
/// `shadow` is valid for reads of `out`'s bytes, and `out` lies outside every shadow.
pub(crate) unsafe fn copy_bytes(shadow: *const u8, out: &mut [u8]) {
    // SAFETY: the caller's promise.
    unsafe { flush::copy(out.as_mut_ptr(), shadow, out.len()) }
}

#[inline]
pub(crate) fn each_run(mask: u64, mut each: impl FnMut(usize, usize)) {
    let mut rest = mask;
    while rest != 0 {
        let first = rest.trailing_zeros();
        let count = (rest >> first).trailing_ones();
        each(first as usize, count as usize);
        if first + count == 64 {
            return;
        }
        rest &= u64::MAX << (first + count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_fall_into_runs() {
        for (mask, runs) in [
            (0, vec![]),
            (1, vec![(0, 1)]),
            (u64::MAX, vec![(0, 64)]),
            (0b1011_0110, vec![(1, 2), (4, 2), (7, 1)]),
            (1 << 63 | 1, vec![(0, 1), (63, 1)]),
            (3 << 62, vec![(62, 2)]),
        ] {
            let mut found = vec![];
            each_run(mask, |first, count| found.push((first, count)));
            assert_eq!(found, runs, "{mask:b}");
        }
    }

    #[test]
    fn the_lines_of_a_mask_are_copied_in_order() {
        let page: Vec<u8> = (0..PAGE).map(|i| (i / LINE) as u8).collect();
        let mut out = [0xff; 4 * LINE];
        let mask = 1 << 3 | 1 << 4 | 1 << 63;
        // SAFETY: the page has 4096 bytes.
        unsafe {
            assert_eq!(copy_lines(page.as_ptr(), mask, &mut out), Some(3 * LINE));
            assert_eq!(copy_lines(page.as_ptr(), mask, &mut out[..LINE]), None);
        }
        assert!(out[..LINE].iter().all(|b| *b == 3) && out[LINE..2 * LINE].iter().all(|b| *b == 4));
        assert!(
            out[2 * LINE..3 * LINE].iter().all(|b| *b == 63) && out[3 * LINE..].iter().all(|b| *b == 0xff)
        );
    }
}
