//! Huge pages under holes of a file in memory (tmpfs): 32 MiB come to be, and are mapped, in 2.3
//! ms; page by page it takes 20.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use super::space;
use crate::sys::PAGE;
use crate::sys::mmap::{self, HUGE};

/// Time to fault in the pages of a huge page one by one. If memory is fragmented, the kernel may
/// spend much longer on making a huge one.
const ONE_BY_ONE: Duration = Duration::from_millis(1);

/// Fills the hole that `offset..offset + len` of the file begins with, as far as it is made of
/// whole huge pages; the file is mapped at `base`. Pages that cannot be had are left as they were.
///
/// # Errors
/// There is no room.
pub(super) fn fill(fd: BorrowedFd<'_>, base: usize, offset: u64, len: u64) -> Result<(), Errno> {
    let huge = HUGE as u64;
    if !base.is_multiple_of(HUGE) {
        return Ok(());
    }
    let (mut at, end) = (offset.next_multiple_of(huge), (offset + len) / huge * huge);
    // ENXIO: nothing but hole up to the end of the file.
    let hole_to = seek(fd, SeekFrom::Data(at)).unwrap_or(u64::MAX).min(end) / huge * huge;
    // Each call waits for the other cores once, so that later ones are for more. Once they have
    // taken as long as everything would have one by one, it is over: that bounds the loss.
    let (start, mut pages) = (Instant::now(), 1);
    let enough = ONE_BY_ONE * u32::try_from(hole_to.saturating_sub(at) / huge).unwrap_or(u32::MAX);
    while at < hole_to {
        let piece = (pages * huge).min(hole_to - at);
        for first in (at..at + piece).step_by(HUGE) {
            // The kernel does not begin with nothing at all.
            space::reserve(fd, first, PAGE as u64)?;
        }
        if mmap::collapse(base + at as usize, piece as usize).is_err() || start.elapsed() > enough {
            return Ok(());
        }
        at += piece;
        pages *= 2;
    }
    Ok(())
}
