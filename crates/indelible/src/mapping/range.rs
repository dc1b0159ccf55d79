//! Possible ranges of mappings, and the files behind them.

use super::MappingError;
use crate::sys::PAGE;
use crate::sys::fork::ForkFd;
use crate::sys::mmap;
use std::io;
use std::os::fd::BorrowedFd;

pub(super) fn leave_out(addr: usize, len: usize) -> io::Result<()> {
    mmap::dont_dump(addr, len)?;
    // Without the right, pages may be swapped out: `doctor` names the devices.
    let _ = mmap::lock_when_touched(addr, len);
    Ok(())
}

pub(super) fn duplicate(file: BorrowedFd<'_>) -> io::Result<ForkFd> {
    ForkFd::new(rustix::io::fcntl_dupfd_cloexec(file, 3)?)
}

pub(super) fn check(addr: usize, len: usize) -> Result<(), MappingError> {
    let bad = |why| Err(MappingError::Range { addr, len, why });
    if !addr.is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) {
        return bad("address and length must be multiples of the page size");
    }
    if addr == 0 || len == 0 {
        return bad("it is empty or begins at address 0");
    }
    match addr.checked_add(len) {
        Some(end) if end <= user_end() => Ok(()),
        _ => bad("it reaches beyond the user address space"),
    }
}

pub(crate) fn user_end() -> usize {
    1 << crate::sys::va_bits()
}
